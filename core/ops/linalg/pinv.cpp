// Matrices of any rank (core/ops/decomposition.h).
#include <algorithm>

#include <tenon/core/format.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/linalg/matrices.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>

namespace tenon {

namespace {

Attrs attrs_of(const char* op, const Tensor& x, const RankOptions& options) {
  const double atol = options.atol.value_or(0);
  const auto longer = static_cast<double>(std::max(shape_of(x)[-1], shape_of(x)[-2]));
  const double rtol = options.rtol.value_or(atol > 0 ? 0 : longer * epsilon_of(dtype_of(x)));
  if (!(atol >= 0) || !(rtol >= 0))
    throw ValueError(
        fmt::format("{}: atol and rtol must not be negative, found {} and {}", op, atol, rtol));
  return Attrs().set("atol", atol).set("rtol", rtol).set("hermitian", options.hermitian);
}

// Which of the singular values (…, k), in any order, count as more than 0.
Tensor counted(const Tensor& values, const Attrs& attrs) {
  if (shape_of(values).numel() == 0) return gt(values, 0);
  const Tensor bound = amax(values, -1, true) * attrs.get_float("rtol");
  return gt(values, maximum(bound, attrs.get_float("atol")));
}
Tensor inverted(const Tensor& values, const Tensor& which) {
  return where(which, reciprocal(where(which, values, 1)), 0);
}

// The pseudoinverse, and the singular values.
void execute_pinv(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  if (call.attrs.get_bool("hermitian")) {
    const auto [w, v] = eigh(x);
    const Tensor size = abs(w);
    const Tensor inverse = inverted(w, counted(size, call.attrs));
    out.push_back(matmul(v * unsqueeze(inverse, -2), turned(v)));
    out.push_back(size);
    return;
  }
  const auto [u, s, vh] = svd(x, false);
  const Tensor inverse = inverted(s, counted(s, call.attrs));
  out.push_back(matmul(turned(vh) * unsqueeze(inverse, -2), turned(u)));
  out.push_back(s);
}

// Golub and Pereyra 1973, theorem 4.3, with products of the smaller size first.
void pinv_gradient(const GradContext& c, Grads g) {
  const Tensor &a = c.input(0), &p = c.output(0), gt = turned(c.grad()), pt = turned(p);
  if (shape_of(a)[-2] <= shape_of(a)[-1]) {
    const Tensor k = matmul(gt, p), kpt = matmul(k, pt);
    g[0] = kpt - turned(matmul(p, k)) - matmul(matmul(a, p), kpt) +
           matmul(matmul(pt, p), gt - matmul(k, a));
  } else {
    const Tensor k = matmul(p, gt), ptk = matmul(pt, k);
    g[0] = ptk - turned(matmul(k, p)) + matmul(matmul(gt - matmul(a, k), p), pt) -
           matmul(matmul(ptk, p), a);
  }
}
const Op pinv_op{{
    .name = "pinv",
    .gradient = pinv_gradient,
    .saves_inputs = 1,
    .saves_outputs = 1,
    .execute = execute_pinv,
}};

Outputs run_pinv(const Tensor& x, const Attrs& attrs) {
  const Tensor* input = &x;
  return run_all({pinv_op, {&input, 1}, attrs});
}

void require_options(const char* op, const Tensor& x, const RankOptions& options) {
  options.hermitian ? require_square(op, x) : require_matrices(op, x);
}

}  // namespace

Tensor pinv(const Tensor& x, const RankOptions& options) {
  require_options("pinv", x, options);
  return run_pinv(x, attrs_of("pinv", x, options))[0];
}

Tensor matrix_rank(const Tensor& x, const RankOptions& options) try {
  require_options("matrix_rank", x, options);
  const NoGrad guard;
  const Tensor values = options.hermitian ? abs(eigvalsh(x)) : svdvals(x);
  return sum(counted(values, attrs_of("matrix_rank", x, options)), -1);
} catch (const Error&) {
  rethrow_in("matrix_rank");
}

Lstsq lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond,
            std::string_view driver) try {
  require_matrices("lstsq", a, "a");
  require_tensor("lstsq", b, "b");
  if (driver != "gels" && driver != "gelsy" && driver != "gelsd" && driver != "gelss")
    throw ValueError(fmt::format(
        "lstsq: driver must be \"gels\", \"gelsy\", \"gelsd\" or \"gelss\", found \"{}\"", driver));
  if (is_vector_for(a, b)) {
    Lstsq y = lstsq(a, unsqueeze(b, -1), rcond, driver);
    y.solution = squeeze(y.solution, -1);
    return y;
  }
  require_system("lstsq", a, b, true);
  const Attrs attrs = attrs_of("lstsq", a, {.rtol = rcond});
  const Outputs inverse = run_pinv(a, attrs);
  const Tensor solution = matmul(inverse[0], b);
  Tensor residuals = zeros({0}, {.dtype = dtype_of(a), .device = solution.device()});
  if (shape_of(a)[-2] > shape_of(a)[-1]) residuals = sum(square(matmul(a, solution) - b), -2);
  return {solution, residuals, sum(counted(inverse[1], attrs), -1), inverse[1]};
} catch (const Error&) {
  rethrow_in("lstsq");
}

}  // namespace tenon
