// What several operator families share: checks of arguments, shape rules, pieces of gradient rules.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <tenon/core/dispatch/op.h>
#include <tenon/core/dispatch/promotion.h>
#include <tenon/core/number.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ---- checks and conversions of arguments ----

// Throws the ValueError "<op>: <name> is an undefined tensor …".
[[noreturn]] void throw_undefined(const char* op, const char* name);
// The same of an element of a list, "tensors[2]".
[[noreturn]] void throw_undefined(const char* op, const char* list, size_t i);
// Throws the same unless x is defined. Inline, because every public function begins with it.
inline void require_tensor(const char* op, const Tensor& x, const char* name = "x") {
  if (!x.defined()) [[unlikely]]
    throw_undefined(op, name);
}
inline void require_tensor(const char* op, const Tensor& x, const char* list, size_t i) {
  if (!x.defined()) [[unlikely]]
    throw_undefined(op, list, i);
}
// An argument with its name.
struct NamedArgument {
  const char* name;
  const Tensor& tensor;
};
inline void require_defined(const char* op, std::initializer_list<NamedArgument> arguments) {
  for (auto& each : arguments) require_tensor(op, each.tensor, each.name);
}
// Throws the Error that is being handled again, with the name of the function that the user called
// before that of the operator of which it is made: "kl_div: sub: shapes …". For the handler of a
// function that leaves it to its operators to check what they get. An error of earlier work is not
// the function's, and is not changed.
[[noreturn]] void rethrow_in(const char* function);
inline DType dtype_of(const Tensor& x) { return impl_of(x).dtype; }
inline const Shape& shape_of(const Tensor& x) { return impl_of(x).shape; }
inline DType dtype_of(const TensorDesc& x) { return x.dtype; }
inline const Shape& shape_of(const TensorDesc& x) { return x.shape; }
// Whether autograd records what is computed from x: operators then make the outputs that only their
// gradient rule needs.
inline bool wants_gradient(const Tensor& x) {
  return x.defined() && grad_enabled() && x.requires_grad();
}

// Throws a ValueError unless both are defined, and a DTypeError unless they have one dtype.
void require_same_dtype(const char* op, const NamedArgument& a, const NamedArgument& b);
// Returns the distance from 1 to the next number of a floating dtype.
double epsilon_of(DType dtype);

// Returns `dims` as plugins get them: not negative, sorted, and all dimensions for an empty list.
// Throws an IndexError for one that is out of range, a ValueError for one that is listed twice.
Shape wrap_dims(const Shape& dims, int64_t rank, const char* op);
// Returns the dtype that `x op number` computes in.
DType result_type(const Tensor& x, Number number);
// Returns the operand as plugins get it: an int64 for integers and bool, a double otherwise. Throws
// a ValueError for a number that int64 cannot hold.
Scalar scalar_for(DType dtype, Number number);
// Returns whether an integer dtype holds the number, truncated; every other dtype holds all
// numbers.
bool holds(DType dtype, Number number);
// Throws a ValueError unless the dtype holds the number.
void require_held(const char* op, DType dtype, Number number);
// Returns the dimension of x as wrap_dim does; a tensor without dimensions takes 0 and -1.
int64_t wrap_dim_of(const Tensor& x, int64_t dim, const char* op);
// Returns the position in [0, rank] of a new dimension, of which there are then rank + 1; throws an
// IndexError as wrap_dim does.
int64_t wrap_new_dim(int64_t dim, int64_t rank, const char* op);
// Returns a number as a tensor without dimensions, for use inside an operator: unlike `full` it may
// be called in any gradient mode.
Tensor constant(Number number, DType dtype, Device device);
// Throws a DTypeError unless the index is i64 or i32.
void require_index(const char* op, const Tensor& index, const char* name);
// Changing values in place is not recorded. Throws an AutogradError if a gradient would silently be
// lost.
void require_mutable(const char* op, const Tensor& target);
// Throws the DTypeError "<op>: x is f32, weight f64; …".
[[noreturn]] void refuse_dtypes(const char* op, const Tensor& x, const Tensor& weight,
                                const Tensor& bias);
// Throws the same unless x, the weight and the bias, which may be undefined, have one dtype.
inline void require_one_dtype(const char* op, const Tensor& x, const Tensor& weight,
                              const Tensor& bias) {
  const DType dtype = dtype_of(x);
  if (dtype != dtype_of(weight) || (bias.defined() && dtype != dtype_of(bias))) [[unlikely]]
    refuse_dtypes(op, x, weight, bias);
}

// Returns whether x is f16 or bf16.
inline bool is_half(const Tensor& x) {
  return dtype_of(x) == DType::f16 || dtype_of(x) == DType::bf16;
}
// The size of dimension `dim`, 1 where x has no dimensions.
inline int64_t size_along(const Tensor& x, int64_t dim) {
  return shape_of(x).empty() ? 1 : shape_of(x)[dim];
}

// ---- decompositions ----

// Copies `values` into a part of a result that is put together piece by piece. If `values` failed,
// the part has failed too, while copy_ would leave what its target held before.
void write_part(const Tensor& part, const Tensor& values);

// ---- shape rules ----

// The output has the shape and dtype of input 0, which is floating.
void infer_floating(Infer& infer);
// As infer_floating, of a gradient and what the forward operator saved: inputs 0 and 1 have one
// dtype.
void infer_slope(Infer& infer);
// The output has the shape and dtype of input 0, which is floating or integer.
void infer_numeric(Infer& infer);
// The output has the shape that run_as was given, and the dtype of input 0.
void infer_given_shape(Infer& infer);
// Throws a ShapeError unless input 2, if it is there, is a bias (o) for a weight (o, …).
void require_bias(Infer& infer, const Shape& weight);

// ---- pieces of gradient rules ----

// Returns a tensor that was reduced over `dims`, with these dimensions back, expanded to `shape`.
Tensor unreduce(const Tensor& reduced, const Shape& dims, const Shape& shape);
// Returns `shape` with size 1 in place of each dimension of `dims`.
Shape keepdim_shape(const Shape& shape, const Shape& dims);
// Returns sqrt(x) with a gradient of 0 instead of NaN (0 * inf) at 0, as PyTorch's std and norm
// have it.
Tensor sqrt_with_zero_gradient(const Tensor& x);

}  // namespace tenon
