// The attribute "precision" of products: see set_float32_matmul_precision in linalg.h.
#pragma once

#include <tenon/core/dispatch/op.h>
#include <tenon/core/dtype.h>

namespace tenon {

// Adds precision = "high" if the user asked for it and the dtype is f32. Otherwise it adds nothing,
// so that plans made without the attribute stay valid.
void add_precision(DType dtype, Attrs& attrs);
// Attributes that hold the precision alone.
Attrs precision_of(DType dtype);

}  // namespace tenon
