// Half types in public functions that are made of several operators. Each operator would round its
// result, and numbers that are small or large in between would become 0 or infinite: 1e-12 is 0 in
// f16. Such a function calls itself once more in f32 and rounds the result once, as a kernel does:
//
//   if (const Widening wide{&x, &y}) return wide.rounded(mse_loss(wide(x), wide(y), reduction));
//
// The gradients of the inputs are computed in f32 in the same way, and rounded once.
#pragma once

#include <initializer_list>
#include <optional>

#include <tenon/core/dtype.h>
#include <tenon/core/tensor.h>

namespace tenon {

class Widening {
 public:
  // `tensors` are the arguments, of which undefined ones and those that are not floating do not
  // count. Nothing is widened unless the others have one half type: together with a wider one,
  // promotion makes them that.
  Widening(std::initializer_list<const Tensor*> tensors) {
    for (const Tensor* x : tensors) {
      if (!x->defined() || !is_floating_point(x->dtype())) continue;
      if (!is_half(x->dtype()) || (type_ && *type_ != x->dtype())) {
        type_.reset();
        return;
      }
      type_ = x->dtype();
    }
  }
  explicit operator bool() const { return type_.has_value(); }

  // Returns a half in f32, and anything else as it is.
  Tensor operator()(const Tensor& x) const {
    return x.defined() && is_half(x.dtype()) ? x.to(DType::f32) : x;
  }
  // Returns a result in the half type.
  Tensor rounded(const Tensor& y) const { return y.to(*type_); }

 private:
  std::optional<DType> type_;
};

}  // namespace tenon
