// A tensor on another device than the rest of a call. Not installed: users catch DeviceError.
#pragma once

#include <string>
#include <utility>

#include <tenon/core/error.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Carries the tensor, so that who knows its name can add it to the text.
class TENON_API MisplacedError : public DeviceError {
 public:
  MisplacedError(const std::string& text, Tensor tensor) : DeviceError(text), tensor_(std::move(tensor)) {}
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

}  // namespace tenon
