#include "kernels/pointwise/finish.h"

#include <algorithm>

namespace tenon::cpu {
namespace {

// Elements between two looks at the same ones: they stay in the first-level cache.
constexpr int64_t kAtOnce = 2048;
// The time of an addition, whose operand comes from memory.
constexpr double kAddNs = 0.1;

template <class T>
void add_rows(void* y, const void* residual, int64_t n) {
  T* to = static_cast<T*>(y);
  const T* from = static_cast<const T*>(residual);
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

Finish activation_of(std::string_view op, tn_dtype dtype) {
  for (auto* find : {finish_by_activation, finish_by_smooth, finish_by_clamp})
    if (const Finish finish = find(op, dtype)) return finish;
  sdk::unsupported("has no rows of the activation \"{}\"", op);
}

}  // namespace

void Finish::change(char* y, int64_t n, const Run& with) const {
  for (int64_t left = n; left > 0; left -= kAtOnce, y += kAtOnce * size) {
    const int64_t some = add && rows ? std::min(left, kAtOnce) : left;
    if (add) add(y, with.residual + (y - with.result), some);
    if (rows) rows(kernel, y, some, with.numbers);
    if (some == left) return;
  }
}

Finish finish_of(const sdk::Request& request, uint32_t inputs, uint32_t own_scalars) {
  const auto asked = sdk::ActivationRequest::after(request, own_scalars);
  const auto residual = sdk::ResidualRequest::from(request, inputs);
  if (!asked && !residual) return {};
  const tn_dtype dtype = request.output(0).dtype;
  if (dtype != TN_F32 && dtype != TN_F64)
    sdk::unsupported("finishes results of f32 and f64 alone, not of {}", sdk::dtype_name(dtype));
  Finish finish = asked ? activation_of(asked.op, dtype) : Finish{};
  finish.own_scalars = own_scalars;
  finish.size = static_cast<uint32_t>(sdk::dtype_size(dtype));
  if (!residual) return finish;
  finish.add = dtype == TN_F32 ? add_rows<float> : add_rows<double>;
  finish.residual = residual.input;
  finish.ns += kAddNs * finish.size / 4;
  return finish;
}

}  // namespace tenon::cpu
