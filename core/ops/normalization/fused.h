// What the operators of normalization share.
#pragma once

#include <span>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/dispatch/op.h>
#include <tenon/core/format.h>

namespace tenon {

// Returns how many of the last dimensions of x are normalized. In a file it may be any number.
inline int64_t normalized_ndim(const Infer& infer, const TensorDesc& x) {
  const int64_t count = infer.attrs.get_int("normalized_ndim");
  if (count < 0 || std::cmp_greater(count, x.shape.size()))
    infer.shape_error(
        fmt::format("{} dimensions are normalized, and x has shape {}", count, x.shape));
  return count;
}

// Throws unless inputs [1, end) that are there have one dtype: that of x or, where this is a half
// type, f32, in which weights and running statistics of mixed precision are.
inline void require_parameter_dtypes(const Infer& infer, size_t end) {
  const DType x = infer.in(0).dtype;
  DType wanted = x;
  for (size_t i = 1; i < end; ++i)
    if (infer.has(i) && infer.in(i).dtype == computation_type(x)) wanted = computation_type(x);
  for (size_t i = 1; i < end; ++i)
    if (infer.has(i))
      infer.require_dtype(infer.in(i).dtype == wanted, i,
                          is_half(x)
                              ? "of the input's type, or f32 as are all weights and statistics"
                              : "of the input's type",
                          wanted);
}

// The dtype of the gradients of weight and bias, of the inputs (g, x, weight?, …): that of the
// weight. Without one, the type of the bias is not known here, and its gradient is converted to it.
inline DType parameter_gradient_type(const Infer& infer) {
  return infer.has(2) ? infer.in(2).dtype : computation_type(infer.in(1).dtype);
}

// The gradients of x, weight and bias by one operator (g, x, weight?, mean, invstd), for a forward
// (x, weight?, bias?, …) that keeps mean and invstd as its outputs 1 and 2. Those that nobody needs
// stay undefined.
inline void fused_gradient(const Op& backward, const GradContext& c, const Attrs& attrs,
                           std::span<Tensor> g) {
  const Tensor& weight = c.input(1);
  const Tensor* inputs[] = {&c.grad(), &c.input(0), weight.defined() ? &weight : nullptr,
                            &c.output(1), &c.output(2)};
  uint32_t wanted = 0;
  for (size_t i = 0; i < 3; ++i) wanted |= static_cast<uint32_t>(c.needs(i)) << i;
  auto grads = run_all({backward, inputs, attrs, {}, wanted});
  for (size_t i = 0; i < 3; ++i) g[i] = grads[i];
}

// The rows of a matrix normalized by the operator of layer_norm, without weight and bias: y, and
// mean and invstd of each row.
Outputs normalize_rows(const Tensor& x, double eps);
// The gradient of its x; it has none itself.
Tensor normalize_rows_backward(const Tensor& g, const Tensor& x, const Tensor& mean,
                               const Tensor& invstd);

// The operator of group_norm, as it stands after the checks of its function.
Tensor run_group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                      double eps);

}  // namespace tenon
