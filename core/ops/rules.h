// What several operator families share: checks on the way in, shape rules, pieces of gradient
// rules. Not installed.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/core/dispatch/op.h>
#include <tenon/core/dispatch/promotion.h>
#include <tenon/core/number.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

// ---- on the way in ----
[[noreturn]] void throw_undefined(const char* op, size_t argument);
// Inline, because every public function begins with it.
inline void require_tensor(const char* op, const Tensor& x, size_t argument = 0) {
  if (!x.defined()) [[unlikely]]
    throw_undefined(op, argument);
}
inline DType dtype_of(const Tensor& x) { return impl_of(x).dtype; }
inline const Shape& shape_of(const Tensor& x) { return impl_of(x).shape; }
inline DType dtype_of(const TensorDesc& x) { return x.dtype; }
inline const Shape& shape_of(const TensorDesc& x) { return x.shape; }
// Where a gradient will be asked for: operators then make the outputs that only their gradient rule
// needs.
inline bool wants_gradient(const Tensor& x) {
  return x.defined() && grad_enabled() && x.requires_grad();
}

// `dims` as the ABI wants them: in range, sorted, each once; all of them where `dims` is empty.
// IndexError, ValueError.
Shape wrap_dims(const Shape& dims, int64_t rank, const char* op);
// The type that `x op number` computes in.
DType result_type(const Tensor& x, Number number);
// The operand as the ABI wants it: an int64 for integers and bool, a double otherwise.
Scalar scalar_for(DType dtype, Number number);
// A number as a tensor without dimensions, for use inside an operator: unlike `full` it asks for no
// gradient mode.
Tensor constant(Number number, DType dtype, Device device);
// DTypeError where integer indices are wanted.
void require_index(const char* op, const Tensor& index, const char* name);
// Changing values in place is not recorded: AutogradError where a gradient would silently be lost.
void require_mutable(const char* op, const Tensor& target);

// ---- decompositions ----
// Copies `values` into a part of a result that is put together piece by piece. Unlike copy_, it
// leaves a part without values where `values` were never made: what it held before is of no meaning
// to anybody.
void write_part(const Tensor& part, const Tensor& values);

// ---- shape rules ----
void infer_floating(Infer& infer);  // output like input 0, which is floating
void infer_numeric(Infer& infer);   // …, floating or integer
// Output has the shape that run_as was given, and input 0's type.
void infer_given_shape(Infer& infer);

// ---- pieces of gradient rules ----
// A reduced tensor again at the rank of what was reduced (each dim of `dims` 1), expanded to
// `shape`.
Tensor unreduce(const Tensor& reduced, const Shape& dims, const Shape& shape);
Shape keepdim_shape(const Shape& shape, const Shape& dims);
// sqrt whose gradient at 0 is 0 rather than NaN (0 * inf), as PyTorch's std and norm have it.
Tensor sqrt_with_zero_gradient(const Tensor& x);

}  // namespace tenon
