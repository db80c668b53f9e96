// Functions of one operand (core/ops/pointwise.h), but for the activations.
#include <cmath>
#include <numbers>

#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

using Grads = std::span<Tensor>;

// Step functions: the gradient is 0 wherever there is one.
void zero_gradient(const GradContext& c, Grads grads) { grads[0] = zeros_like(c.grad()); }

void infer_bool(Infer& infer) { infer.output(DType::boolean, shape_of(infer.in(0))); }

const Op neg_op{{.name = "neg",
                 .infer = infer_numeric,
                 .gradient = [](const GradContext& c, Grads g) { g[0] = neg(c.grad()); },
                 .pointwise = true}};

const Op abs_op{
    {.name = "abs",
     .infer = infer_numeric,
     .gradient = [](const GradContext& c, Grads g) { g[0] = c.grad() * sign(c.input(0)); },
     .saves_inputs = 1,
     .pointwise = true}};

const Op sign_op{
    {.name = "sign", .infer = infer_numeric, .gradient = zero_gradient, .pointwise = true}};
const Op floor_op{
    {.name = "floor", .infer = infer_floating, .gradient = zero_gradient, .pointwise = true}};
const Op ceil_op{
    {.name = "ceil", .infer = infer_floating, .gradient = zero_gradient, .pointwise = true}};
const Op round_op{
    {.name = "round", .infer = infer_floating, .gradient = zero_gradient, .pointwise = true}};
const Op logical_not_op{{.name = "logical_not", .infer = infer_bool, .pointwise = true}};

const Op square_op{
    {.name = "square",
     .infer = infer_numeric,
     .gradient = [](const GradContext& c, Grads g) { g[0] = c.grad() * (c.input(0) * 2.0); },
     .saves_inputs = 1,
     .pointwise = true,
     .decompose = [](const Call& call,
                     Outputs& out) { out.push_back(mul(call.in(0), call.in(0))); }}};

const Op reciprocal_op{
    {.name = "reciprocal",
     .infer = infer_floating,
     .gradient = [](const GradContext& c, Grads g) { g[0] = neg(c.grad() * square(c.output(0))); },
     .saves_outputs = 1,
     .pointwise = true,
     .promotion = Promotion::floating,
     .decompose = [](const Call& call, Outputs& out) { out.push_back(1.0 / call.in(0)); }}};

const Op exp_op{{.name = "exp",
                 .infer = infer_floating,
                 .gradient = [](const GradContext& c, Grads g) { g[0] = c.grad() * c.output(0); },
                 .saves_outputs = 1,
                 .pointwise = true,
                 .promotion = Promotion::floating}};

const Op log_op{{.name = "log",
                 .infer = infer_floating,
                 .gradient = [](const GradContext& c, Grads g) { g[0] = c.grad() / c.input(0); },
                 .saves_inputs = 1,
                 .pointwise = true,
                 .promotion = Promotion::floating}};

const Op sqrt_op{
    {.name = "sqrt",
     .infer = infer_floating,
     .gradient = [](const GradContext& c, Grads g) { g[0] = c.grad() / (c.output(0) * 2.0); },
     .saves_outputs = 1,
     .pointwise = true,
     .promotion = Promotion::floating}};

const Op rsqrt_op{
    {.name = "rsqrt",
     .infer = infer_floating,
     .gradient = [](const GradContext& c,
                    Grads g) { g[0] = c.grad() * (pow(c.output(0), 3.0) * -0.5); },
     .saves_outputs = 1,
     .pointwise = true,
     .promotion = Promotion::floating,
     .decompose = [](const Call& call, Outputs& out) { out.push_back(1.0 / sqrt(call.in(0))); }}};

const Op sin_op{
    {.name = "sin",
     .infer = infer_floating,
     .gradient = [](const GradContext& c, Grads g) { g[0] = c.grad() * cos(c.input(0)); },
     .saves_inputs = 1,
     .pointwise = true,
     .promotion = Promotion::floating}};

const Op cos_op{
    {.name = "cos",
     .infer = infer_floating,
     .gradient = [](const GradContext& c, Grads g) { g[0] = neg(c.grad() * sin(c.input(0))); },
     .saves_inputs = 1,
     .pointwise = true,
     .promotion = Promotion::floating}};

const Op erf_op{{.name = "erf",
                 .infer = infer_floating,
                 .gradient =
                     [](const GradContext& c, Grads g) {
                       g[0] = c.grad() *
                              (exp(neg(square(c.input(0)))) * (2.0 * std::numbers::inv_sqrtpi));
                     },
                 .saves_inputs = 1,
                 .pointwise = true,
                 .promotion = Promotion::floating}};

Tensor unary(const Op& op, const Tensor& x) {
  require_tensor(op.name, x);
  return run(op, {&x});
}

Tensor rounding(const Op& op, const Tensor& x) {
  require_tensor(op.name, x);
  return is_integer(dtype_of(x)) ? x : run(op, {&x});
}

}  // namespace

Tensor neg(const Tensor& x) { return unary(neg_op, x); }
Tensor abs(const Tensor& x) { return unary(abs_op, x); }
Tensor sign(const Tensor& x) { return unary(sign_op, x); }
Tensor square(const Tensor& x) { return unary(square_op, x); }
Tensor logical_not(const Tensor& x) { return unary(logical_not_op, x); }
Tensor reciprocal(const Tensor& x) { return unary(reciprocal_op, x); }
Tensor exp(const Tensor& x) { return unary(exp_op, x); }
Tensor log(const Tensor& x) { return unary(log_op, x); }
Tensor sqrt(const Tensor& x) { return unary(sqrt_op, x); }
Tensor rsqrt(const Tensor& x) { return unary(rsqrt_op, x); }
Tensor sin(const Tensor& x) { return unary(sin_op, x); }
Tensor cos(const Tensor& x) { return unary(cos_op, x); }
Tensor erf(const Tensor& x) { return unary(erf_op, x); }
Tensor floor(const Tensor& x) { return rounding(floor_op, x); }
Tensor ceil(const Tensor& x) { return rounding(ceil_op, x); }
Tensor round(const Tensor& x) { return rounding(round_op, x); }

Tensor Tensor::exp() const { return tenon::exp(*this); }
Tensor Tensor::log() const { return tenon::log(*this); }
Tensor Tensor::sqrt() const { return tenon::sqrt(*this); }
Tensor Tensor::square() const { return tenon::square(*this); }
Tensor Tensor::abs() const { return tenon::abs(*this); }

}  // namespace tenon
