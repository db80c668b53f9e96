#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/linalg/inverse.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// The elimination of Gauss and Jordan with row pivots, of all matrices (n, m, m) at once: steps on
// the whole of [x | 1], so that nothing has to be read on the host.
Tensor eliminate(const Tensor& x) {
  const int64_t n = x.size(0), m = x.size(1);
  const TensorOptions same{.dtype = dtype_of(x), .device = x.device()},
      index{.dtype = i64, .device = x.device()};
  const Tensor rows = arange(0, m, 1, index).reshape({1, m, 1});
  Tensor a = cat({x, eye(m, same).expand({n, m, m})}, -1);
  for (int64_t k = 0; k < m; ++k) {
    const Tensor column = a.narrow(1, k, m - k).select(2, k);
    const Tensor pivot = (argmax(abs(column), 1) + k).reshape({n, 1, 1});
    const Tensor chosen = gather(a, 1, pivot.expand({n, 1, 2 * m})), first = a.narrow(1, k, 1);
    const Tensor scaled = chosen / chosen.narrow(2, k, 1);
    a = where(eq(rows, pivot), first, a);  // the rows are exchanged; `scaled` takes the place k
    a = where(eq(rows, k), scaled, a - a.narrow(2, k, 1) * scaled);
  }
  return a.narrow(2, m, m).contiguous();
}

void execute_inverse(const Call& call, Outputs& out) {
  const Shape& shape = shape_of(call.in(0));
  const int64_t m = shape.back();
  if (shape.numel() == 0) return out.push_back(clone(call.in(0)));
  out.push_back(eliminate(reshape(call.in(0), {-1, m, m})).reshape(shape).view(shape));
}
void inverse_gradient(const GradContext& c, Grads g) {
  const Tensor turned = transpose(c.output(0), -1, -2);
  g[0] = neg(matmul(matmul(turned, c.grad()), turned));
}
const Op inverse_op{{
    .name = "inverse",
    .gradient = inverse_gradient,
    .saves_outputs = 1,
    .execute = execute_inverse,
}};

}  // namespace

Tensor inverse(const Tensor& x) { return run(inverse_op, {&x}); }

}  // namespace tenon
