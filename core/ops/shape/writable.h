#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Throws unless `target` is a tensor that may be changed in place and whose elements lie apart.
void require_writable(const char* op, const Tensor& target);

}  // namespace tenon
