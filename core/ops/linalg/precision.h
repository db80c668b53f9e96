// The attribute "precision" of products: see set_float32_matmul_precision in linalg.h. Not
// installed.
#pragma once

#include <tenon/core/dispatch/op.h>
#include <tenon/core/dtype.h>

namespace tenon {

// Adds precision = "high" where that is asked for and the dtype is f32; else nothing, so that plans
// are those of old.
void add_precision(DType dtype, Attrs& attrs);
Attrs precision_of(DType dtype);

}  // namespace tenon
