// gru and gru_step (core/ops/recurrent.h).
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/recurrent/layers.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void infer_gru_step(Infer& infer) {
  const TensorDesc& h = infer.in(2);
  infer.require_dtype(is_floating_point(dtype_of(h)), 2, "a floating type");
  const Shape& s = shape_of(h);
  for (size_t i = 0; i < 2; ++i) {
    infer.require_dtype(dtype_of(infer.in(i)) == dtype_of(h), i, "of the hidden state's type",
                        dtype_of(h));
    if (s.size() != 2 || !(shape_of(infer.in(i)) == Shape{s[0], 3 * s[1]}))
      infer.shape_error(
          fmt::format("needs gates (batch, 3 hidden) and a hidden state (batch, hidden); found {}, "
                      "{} and {}",
                      shape_of(infer.in(0)), shape_of(infer.in(1)), s));
  }
  infer.output(dtype_of(h), s);
}

struct GruGates {
  Tensor r, z, n, hidden_n;
};
GruGates gru_gates_of(const Tensor& input, const Tensor& hidden) {
  const int64_t n = shape_of(input)[1] / 3;
  const Tensor r = sigmoid(input.narrow(1, 0, n) + hidden.narrow(1, 0, n));
  const Tensor z = sigmoid(input.narrow(1, n, n) + hidden.narrow(1, n, n));
  const Tensor hidden_n = hidden.narrow(1, 2 * n, n);
  return {r, z, tanh(input.narrow(1, 2 * n, n) + r * hidden_n), hidden_n};
}

void decompose_gru_step(const Call& call, Outputs& out) {
  const auto gates = gru_gates_of(call.in(0), call.in(1));
  out = {gates.n + gates.z * (call.in(2) - gates.n)};
}

void gru_composed_backward(const Tensor& g, const Tensor& input, const Tensor& hidden,
                           const Tensor& h, Grads out) {
  const auto [r, z, n, hidden_n] = gru_gates_of(input, hidden);
  const Tensor gn = g * (1.0 - z) * (1.0 - square(n)), gz = g * (h - n) * z * (1.0 - z);
  const Tensor gr = gn * hidden_n * r * (1.0 - r);
  out[0] = cat({gr, gz, gn}, 1);
  out[1] = cat({gr, gz, gn * r}, 1);
  out[2] = g * z;
}

void infer_gru_step_backward(Infer& infer) {
  for (size_t i = 1; i < 4; ++i) infer.output(dtype_of(infer.in(i)), shape_of(infer.in(i)));
}

void decompose_gru_step_backward(const Call& call, Outputs& out) {
  out.resize(3);
  gru_composed_backward(call.in(0), call.in(1), call.in(2), call.in(3), out);
}

// | `gru_step_backward` | g, input_gates, hidden_gates, h -> ginput_gates, ghidden_gates, gh | | |
const Op gru_step_backward_op{{
    .name = "gru_step_backward",
    .infer = infer_gru_step_backward,
    .decompose = decompose_gru_step_backward,
}};

void gru_step_backward(const Tensor& gh, const Tensor& input, const Tensor& hidden, const Tensor& h,
                       Grads g) {
  if (grad_enabled()) return gru_composed_backward(gh, input, hidden, h, g);
  const Tensor* inputs[] = {&gh, &input, &hidden, &h};
  auto grads = run_all({gru_step_backward_op, inputs});
  for (size_t i = 0; i < 3; ++i) g[i] = grads[i];
}
void gru_step_gradient(const GradContext& c, Grads g) {
  gru_step_backward(c.grad(), c.input(0), c.input(1), c.input(2), g);
}

// | `gru_step` | input_gates(n,3h), hidden_gates(n,3h), h(n,h) -> h'(n,h) | | gates r, z, n: r and
//   z are sigmoids of the sums, n = tanh(n_x + r n_h), h' = (1 - z) n + z h |
const Op gru_step_op{{
    .name = "gru_step",
    .inputs = "input_gates hidden_gates h",
    .infer = infer_gru_step,
    .gradient = gru_step_gradient,
    .saves_inputs = 7,
    .autocast = AutocastRule::lower,
    .decompose = decompose_gru_step,
}};

std::vector<Tensor> step_gru(const RecurrentStep& step) {
  return {gru_step(step.input_gates, step.hidden_gates, step.states[0])};
}
RecurrentStepGrads step_gru_backward(const std::vector<Tensor>& grads, const RecurrentStep& step,
                                     const std::vector<Tensor>&) {
  std::vector<Tensor> g(3);
  gru_step_backward(grads[0], step.input_gates, step.hidden_gates, step.states[0], g);
  return {g[0], g[1], {g[2]}};
}
constexpr RecurrentKind kGru = {"gru", 3, 1, false, false, step_gru, step_gru_backward};

}  // namespace

Tensor gru_step(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& h) {
  require_defined("gru_step",
                  {{"input_gates", input_gates}, {"hidden_gates", hidden_gates}, {"h", h}});
  return run(gru_step_op, {&input_gates, &hidden_gates, &h});
}

std::pair<Tensor, Tensor> gru(const Tensor& x, const Tensor& h0, const std::vector<Tensor>& weights,
                              const RecurrentOptions& options) try {
  if (const Autocasting cast{"gru", {&x, &h0}})
    return gru(cast(x), cast(h0), cast(weights), options);
  const Tensor initial[] = {h0};
  auto result = run_layers(kGru, x, initial, weights, options);
  return {result.y, result.states[0]};
} catch (const Error&) {
  rethrow_in("gru");
}

}  // namespace tenon
