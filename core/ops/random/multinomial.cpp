// Draws of classes (core/ops/random.h).
#include <limits>

#include <tenon/core/dispatch/replica.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/scan.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/sort.h>

namespace tenon {

namespace {

Tensor uniform_like(const Tensor& x, const Shape& shape) {
  return rand(shape, {.dtype = dtype_of(x), .device = x.device()});
}

// The largest of weight / e for samples e of the exponential distribution: class i is the first
// with its probability, and the others follow as if drawn from what is left (Efraimidis and
// Spirakis, "Weighted random sampling with a reservoir", 2006).
Tensor draw_without_replacement(const Tensor& weights, int64_t count) {
  const Tensor times = maximum(neg(log(1 - uniform_like(weights, shape_of(weights)))),
                               static_cast<double>(std::numeric_limits<float>::min()));
  const Tensor keys = weights / times;
  return count == 1 ? argmax(keys, -1, true) : topk(keys, count, -1).indices;
}

// Where a number between 0 and the sum of all weights lies among the sums of the first ones.
Tensor draw_with_replacement(const Tensor& weights, int64_t count) {
  const Tensor sums = cumsum(weights.to(f64), -1);
  Shape shape = shape_of(weights);
  shape[-1] = count;
  // A little less than all, so that rounding does not lead beyond the last class.
  const Tensor numbers =
      uniform_like(sums, shape) * (1 - 0x1p-40) * narrow(sums, -1, shape_of(sums)[-1] - 1, 1);
  return searchsorted(sums, numbers, {.right = true});
}

}  // namespace

Tensor multinomial(const Tensor& x, int64_t num_samples, bool replacement) {
  require_tensor("multinomial", x);
  const Shape& shape = shape_of(x);
  if (shape.empty() || shape.size() > 2)
    throw ShapeError(fmt::format(
        "multinomial: expects weights of shape (classes) or (rows, classes), found {}", shape));
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(
        fmt::format("multinomial: x must hold weights of a floating type, found {}; {}",
                    dtype_of(x), conversion_to(f32)));
  const int64_t classes = shape.back();
  if (num_samples <= 0 || classes == 0 || (!replacement && num_samples > classes))
    throw ValueError(
        fmt::format("multinomial: num_samples must be positive{}, found {} for {} classes",
                    replacement ? "" : " and, without replacement, at most the number of classes",
                    num_samples, classes));
  NoGrad guard;
  const Tensor weights =
      resolve_replica(x, device_read_on(x)).to(dtype_of(x) == f64 ? f64 : f32).contiguous();
  return replacement && num_samples > 1 ? draw_with_replacement(weights, num_samples)
                                        : draw_without_replacement(weights, num_samples);
}

}  // namespace tenon
