// The steps of Adadelta, Adamax, ASGD and Rprop (core/ops/optimizer.h), made of other operators.
// The parameter is written before its state: where it cannot be written, nothing has changed.
#include <cmath>

#include <tenon/core/ops/optimizer.h>
#include <tenon/core/ops/optimizer/lists.h>
#include <tenon/core/ops/pointwise.h>

namespace tenon {

namespace {

Tensor gradient_of(const Tensor& p, const Tensor& grad, bool maximize, double weight_decay) {
  const Tensor g = maximize ? neg(grad) : grad;
  return weight_decay == 0 ? g : g + p * weight_decay;
}

void write(Tensor target, const Tensor& values) { target.copy_(values); }

}  // namespace

void adadelta_step(TensorList params, TensorList grads, TensorList square_avg, TensorList acc_delta,
                   const AdadeltaArgs& args) {
  if (params.empty()) return;
  require_list("adadelta_step", "gradients", !grads.empty(), true);
  require_list("adadelta_step", "averages of squares", !square_avg.empty(), true);
  require_list("adadelta_step", "averages of changes", !acc_delta.empty(), true);
  NoGrad guard;
  require_fitting("adadelta_step", {params, grads, square_avg, acc_delta});
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    const Tensor g = gradient_of(p, grads[i], args.maximize, args.weight_decay);
    const Tensor v = square_avg[i] * args.rho + square(g) * (1 - args.rho);
    const Tensor delta = sqrt(acc_delta[i] + args.eps) / sqrt(v + args.eps) * g;
    write(p, p - delta * args.lr);
    write(square_avg[i], v);
    write(acc_delta[i], acc_delta[i] * args.rho + square(delta) * (1 - args.rho));
  }
}

void adamax_step(TensorList params, TensorList grads, TensorList exp_avg, TensorList exp_inf,
                 const AdamaxArgs& args) {
  if (params.empty()) return;
  require_list("adamax_step", "gradients", !grads.empty(), true);
  require_list("adamax_step", "first moments", !exp_avg.empty(), true);
  require_list("adamax_step", "norms", !exp_inf.empty(), true);
  require_step("adamax_step", args.step);
  NoGrad guard;
  require_fitting("adamax_step", {params, grads, exp_avg, exp_inf});
  const double rate = args.lr / (1 - std::pow(args.beta1, static_cast<double>(args.step)));
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    const Tensor g = gradient_of(p, grads[i], args.maximize, args.weight_decay);
    const Tensor m = exp_avg[i] * args.beta1 + g * (1 - args.beta1);
    const Tensor norm = maximum(exp_inf[i] * args.beta2, abs(g) + args.eps);
    write(p, p - m * rate / norm);
    write(exp_avg[i], m);
    write(exp_inf[i], norm);
  }
}

void asgd_step(TensorList params, TensorList grads, TensorList ax, const AsgdArgs& args) {
  if (params.empty()) return;
  require_list("asgd_step", "gradients", !grads.empty(), true);
  require_list("asgd_step", "averages", !ax.empty(), true);
  NoGrad guard;
  require_fitting("asgd_step", {params, grads, ax});
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    const Tensor g = gradient_of(p, grads[i], args.maximize, args.weight_decay);
    write(p, p * (1 - args.lambd * args.eta) - g * args.eta);
    write(ax[i], args.mu == 1 ? p : ax[i] + (p - ax[i]) * args.mu);
  }
}

void rprop_step(TensorList params, TensorList grads, TensorList prev, TensorList step_size,
                const RpropArgs& args) {
  if (params.empty()) return;
  require_list("rprop_step", "gradients", !grads.empty(), true);
  require_list("rprop_step", "last gradients", !prev.empty(), true);
  require_list("rprop_step", "step sizes", !step_size.empty(), true);
  NoGrad guard;
  require_fitting("rprop_step", {params, grads, prev, step_size});
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    Tensor g = gradient_of(p, grads[i], args.maximize, 0);
    const Tensor same = g * prev[i], turned = same < 0;
    const Tensor size = clamp(where(same > 0, step_size[i] * args.etaplus,
                                    where(turned, step_size[i] * args.etaminus, step_size[i])),
                              args.step_size_min, args.step_size_max);
    g = where(turned, 0, g);
    write(p, p - sign(g) * size);
    write(prev[i], g);
    write(step_size[i], size);
  }
}

}  // namespace tenon
