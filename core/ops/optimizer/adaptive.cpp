// The steps of RMSprop, Adagrad, NAdam, RAdam and Lion (core/ops/optimizer.h).
//
// What depends on the number of the step alone is computed here, once for all backends: the scalars
// of nadam_step and radam_step are factors, as docs/operators.md lists them.
#include <cmath>

#include <tenon/core/ops/optimizer.h>
#include <tenon/core/ops/optimizer/lists.h>
#include <tenon/core/ops/pointwise.h>

namespace tenon {

namespace {

// The gradient that a step uses: with its sign, and the parameter's share.
Tensor decayed(const Call& call, const ListsInPlace& lists, size_t i, double decay) {
  const Tensor g = call.attrs.get_bool("maximize") ? neg(lists(1, i)) : lists(1, i);
  return decay == 0 ? g : g + lists(0, i) * decay;
}

void average(Tensor target, const Tensor& value, double beta) {
  target.copy_(target * beta + value * (1.0 - beta));
}

void decompose_rmsprop(const Call& call, Outputs& out) {
  const ListsInPlace lists(call);
  const auto number = [&](size_t i) { return call.scalars[i].value.f; };
  const double lr = number(0), alpha = number(1), eps = number(2), momentum = number(4);
  const bool centered = call.attrs.get_bool("centered");
  for (size_t i = 0; i < lists.n; ++i) {
    Tensor p = lists(0, i), v = lists(2, i), g = decayed(call, lists, i, number(3));
    average(v, square(g), alpha);
    Tensor variance = v;
    if (centered) {
      average(lists(3, i), g, alpha);
      variance = maximum(v - square(lists(3, i)), 0);
    }
    Tensor change = g / (sqrt(variance) + eps);
    if (call.attrs.get_bool("momentum")) {
      Tensor buffer = lists(centered ? 4 : 3, i);
      buffer.copy_(buffer * momentum + change);
      change = buffer;
    }
    p.copy_(p - change * lr);
  }
  lists.outputs(out);
}

void decompose_adagrad(const Call& call, Outputs& out) {
  const ListsInPlace lists(call);
  const double rate = call.scalars[0].value.f, eps = call.scalars[1].value.f,
               weight_decay = call.scalars[2].value.f;
  for (size_t i = 0; i < lists.n; ++i) {
    Tensor p = lists(0, i), sum = lists(2, i), g = decayed(call, lists, i, weight_decay);
    sum.copy_(sum + square(g));
    p.copy_(p - g * rate / (sqrt(sum) + eps));
  }
  lists.outputs(out);
}

void decompose_nadam(const Call& call, Outputs& out) {
  const ListsInPlace lists(call);
  const auto number = [&](size_t i) { return call.scalars[i].value.f; };
  const double eps = number(2), shrink = number(4), grad_rate = number(5), average_rate = number(6),
               root_bias2 = number(7);
  for (size_t i = 0; i < lists.n; ++i) {
    Tensor p = lists(0, i), m = lists(2, i), v = lists(3, i);
    const Tensor g = decayed(call, lists, i, number(3));
    average(m, g, number(0));
    average(v, square(g), number(1));
    p.copy_(p * shrink - (g * grad_rate + m * average_rate) / (sqrt(v) / root_bias2 + eps));
  }
  lists.outputs(out);
}

void decompose_radam(const Call& call, Outputs& out) {
  const ListsInPlace lists(call);
  const auto number = [&](size_t i) { return call.scalars[i].value.f; };
  const double eps = number(2), shrink = number(4), rate = number(5);
  const bool adaptive = call.scalars[6].value.i != 0;
  for (size_t i = 0; i < lists.n; ++i) {
    Tensor p = lists(0, i), m = lists(2, i), v = lists(3, i);
    const Tensor g = decayed(call, lists, i, number(3));
    average(m, g, number(0));
    average(v, square(g), number(1));
    p.copy_(p * shrink - (adaptive ? m * rate / (sqrt(v) + eps) : m * rate));
  }
  lists.outputs(out);
}

void decompose_lion(const Call& call, Outputs& out) {
  const ListsInPlace lists(call);
  const double lr = call.scalars[0].value.f, beta1 = call.scalars[1].value.f,
               beta2 = call.scalars[2].value.f, shrink = call.scalars[3].value.f;
  for (size_t i = 0; i < lists.n; ++i) {
    Tensor p = lists(0, i), m = lists(2, i);
    const Tensor g = decayed(call, lists, i, 0);
    const Tensor towards = m * beta1 + g * (1.0 - beta1);
    // The sign, by what every backend has.
    const Tensor zero = zeros_like(p), below = le(towards, 0), above = le(neg(towards), 0);
    const Tensor change = where(below, where(above, zero, -lr), where(above, lr, zero));
    p.copy_(p * shrink - change);
    average(m, g, beta2);
  }
  lists.outputs(out);
}

// | `rmsprop_step` | p×n, g×n, v×n, then mean×n?, then momentum×n? -> p×n, v×n, then mean×n?, then
//   momentum×n? | `n`, `centered` (mean), `momentum`, `maximize` bool; lr, alpha, eps,
//   weight_decay, momentum | |
const Op rmsprop_step_op{{.name = "rmsprop_step",
                          .infer = infer_in_place,
                          .by_element = true,
                          .decompose = decompose_rmsprop,
                          .scalars = 5,
                          .numbers = "lr alpha eps weight_decay momentum"}};
// | `adagrad_step` | p×n, g×n, sum×n -> p×n, sum×n | `n`, `maximize` bool; rate, eps, weight_decay
//   | |
const Op adagrad_step_op{{.name = "adagrad_step",
                          .infer = infer_in_place,
                          .by_element = true,
                          .decompose = decompose_adagrad,
                          .scalars = 3}};
// | `nadam_step` | p×n, g×n, m×n, v×n -> p×n, m×n, v×n | `n`, `maximize` bool; beta1, beta2, eps,
//   decay, shrink, grad_rate, average_rate, root_bias2 | |
const Op nadam_step_op{{.name = "nadam_step",
                        .infer = infer_in_place,
                        .by_element = true,
                        .decompose = decompose_nadam,
                        .scalars = 8}};
// | `radam_step` | p×n, g×n, m×n, v×n -> p×n, m×n, v×n | `n`, `maximize` bool; beta1, beta2, eps,
//   decay, shrink, rate, adaptive:i | |
const Op radam_step_op{{.name = "radam_step",
                        .infer = infer_in_place,
                        .by_element = true,
                        .decompose = decompose_radam,
                        .scalars = 7}};
// | `lion_step` | p×n, g×n, m×n -> p×n, m×n | `n`, `maximize` bool; lr, beta1, beta2, shrink | |
const Op lion_step_op{{.name = "lion_step",
                       .infer = infer_in_place,
                       .by_element = true,
                       .decompose = decompose_lion,
                       .scalars = 4}};

Attrs step_attrs(TensorList params, bool maximize) {
  Attrs attrs;
  attrs.set("n", static_cast<int64_t>(params.size())).set("maximize", maximize);
  return attrs;
}

}  // namespace

void rmsprop_step(TensorList params, TensorList grads, TensorList square_avg, TensorList grad_avg,
                  TensorList momentum_buffers, const RmspropArgs& args) {
  if (params.empty()) return;
  require_list("rmsprop_step", "gradients", !grads.empty(), true);
  require_list("rmsprop_step", "averages of squares", !square_avg.empty(), true);
  require_list("rmsprop_step", "averages of gradients", !grad_avg.empty(), args.centered);
  require_list("rmsprop_step", "momentum buffers", !momentum_buffers.empty(), args.momentum != 0);
  NoGrad guard;
  auto inputs =
      gather_inputs("rmsprop_step", {params, grads, square_avg, grad_avg, momentum_buffers});
  Attrs attrs = step_attrs(params, args.maximize);
  attrs.set("centered", args.centered).set("momentum", args.momentum != 0);
  Scalar scalars[] = {args.lr, args.alpha, args.eps, args.weight_decay, args.momentum};
  run_all({rmsprop_step_op, inputs, attrs, scalars});
}

void adagrad_step(TensorList params, TensorList grads, TensorList sum, const AdagradArgs& args) {
  if (params.empty()) return;
  require_list("adagrad_step", "gradients", !grads.empty(), true);
  require_list("adagrad_step", "sums", !sum.empty(), true);
  require_step("adagrad_step", args.step);
  NoGrad guard;
  auto inputs = gather_inputs("adagrad_step", {params, grads, sum});
  const double rate = args.lr / (1 + static_cast<double>(args.step - 1) * args.lr_decay);
  Scalar scalars[] = {rate, args.eps, args.weight_decay};
  run_all({adagrad_step_op, inputs, step_attrs(params, args.maximize), scalars});
}

void nadam_step(TensorList params, TensorList grads, TensorList exp_avg, TensorList exp_avg_sq,
                const NadamArgs& args) {
  if (params.empty()) return;
  require_list("nadam_step", "gradients", !grads.empty(), true);
  require_list("nadam_step", "first moments", !exp_avg.empty(), true);
  require_list("nadam_step", "second moments", !exp_avg_sq.empty(), true);
  require_step("nadam_step", args.step);
  NoGrad guard;
  auto inputs = gather_inputs("nadam_step", {params, grads, exp_avg, exp_avg_sq});
  const double mu = nadam_mu(args.beta1, args.momentum_decay, args.step),
               next = nadam_mu(args.beta1, args.momentum_decay, args.step + 1),
               product = args.mu_product * mu;
  Scalar scalars[] = {args.beta1,
                      args.beta2,
                      args.eps,
                      args.decoupled ? 0 : args.weight_decay,
                      args.decoupled ? 1 - args.lr * args.weight_decay : 1.0,
                      args.lr * (1 - mu) / (1 - product),
                      args.lr * next / (1 - product * next),
                      std::sqrt(1 - std::pow(args.beta2, static_cast<double>(args.step)))};
  run_all({nadam_step_op, inputs, step_attrs(params, args.maximize), scalars});
}

void radam_step(TensorList params, TensorList grads, TensorList exp_avg, TensorList exp_avg_sq,
                const RadamArgs& args) {
  if (params.empty()) return;
  require_list("radam_step", "gradients", !grads.empty(), true);
  require_list("radam_step", "first moments", !exp_avg.empty(), true);
  require_list("radam_step", "second moments", !exp_avg_sq.empty(), true);
  require_step("radam_step", args.step);
  NoGrad guard;
  auto inputs = gather_inputs("radam_step", {params, grads, exp_avg, exp_avg_sq});
  const double step = static_cast<double>(args.step), power2 = std::pow(args.beta2, step),
               rho_inf = 2 / (1 - args.beta2) - 1, rho = rho_inf - 2 * step * power2 / (1 - power2);
  double rate = args.lr / (1 - std::pow(args.beta1, step));
  const bool adaptive = rho > 5;
  if (adaptive)
    rate *= std::sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) *
            std::sqrt(1 - power2);
  Scalar scalars[] = {args.beta1,
                      args.beta2,
                      args.eps,
                      args.decoupled ? 0 : args.weight_decay,
                      args.decoupled ? 1 - args.lr * args.weight_decay : 1.0,
                      rate,
                      Scalar::integer(adaptive)};
  run_all({radam_step_op, inputs, step_attrs(params, args.maximize), scalars});
}

void lion_step(TensorList params, TensorList grads, TensorList exp_avg, const LionArgs& args) {
  if (params.empty()) return;
  require_list("lion_step", "gradients", !grads.empty(), true);
  require_list("lion_step", "averages", !exp_avg.empty(), true);
  NoGrad guard;
  auto inputs = gather_inputs("lion_step", {params, grads, exp_avg});
  Scalar scalars[] = {args.lr, args.beta1, args.beta2, 1 - args.lr * args.weight_decay};
  run_all({lion_step_op, inputs, step_attrs(params, args.maximize), scalars});
}

}  // namespace tenon
