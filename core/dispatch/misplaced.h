// A tensor on another device than the rest of a call. Not installed: users catch DeviceError.
#pragma once

#include <cstddef>
#include <string>

#include <tenon/core/error.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Carries what it is about, so that who knows what the tensor is to a module can say it better.
// `where` ends the text.
class TENON_API MisplacedError : public DeviceError {
 public:
  MisplacedError(const char* op, size_t argument, const Tensor& tensor, Device wanted,
                 const std::string& where);

  const std::string op;
  const std::string argument;  // "argument 1, f32 of shape (3, 4),"
  const Tensor tensor;
  const Device wanted;     // where the operator runs: that of another argument
  bool explained = false;  // the text says what the tensor is to a module
};

}  // namespace tenon
