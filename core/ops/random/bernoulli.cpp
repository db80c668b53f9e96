// Draws of given probabilities (core/ops/random.h).
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

Tensor bernoulli(const Tensor& x) {
  require_tensor("bernoulli", x);
  const DType dtype = dtype_of(x);
  if (!is_floating_point(dtype))
    throw DTypeError(
        fmt::format("bernoulli: x must hold probabilities of a floating type, found {}; {}", dtype,
                    conversion_to(f32)));
  NoGrad guard;
  // In a half type, samples next to 1 would be rounded to it.
  const DType wide = dtype == f64 ? f64 : f32;
  return lt(rand(shape_of(x), {.dtype = wide, .device = device_read_on(x)}), x.to(wide)).to(dtype);
}

}  // namespace tenon
