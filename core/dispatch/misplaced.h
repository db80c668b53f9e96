// The error for a tensor that is on another device than the rest of a call. Users catch
// DeviceError.
#pragma once

#include <cstddef>
#include <string>

#include <tenon/core/error.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Holds the parts of its text, so that code which knows the name of the tensor in a module can
// write a better one. The text ends with `where`.
class TENON_API MisplacedError : public DeviceError {
 public:
  MisplacedError(const char* op, const std::string& input, const Tensor& tensor, Device wanted,
                 const std::string& where);
  // The same in a function that is made of the operator: "kl_div: sub: argument 1, …".
  MisplacedError(const char* function, const MisplacedError& inside);

  const std::string op;
  const std::string argument;  // "weight, f32 of shape (3, 4),"
  const Tensor tensor;
  const Device wanted;     // the device on which the operator runs, that of another argument
  bool explained = false;  // the text contains the name of the tensor in its module
};

}  // namespace tenon
