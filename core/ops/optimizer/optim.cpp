// The steps of SGD, Adam and AdamW (core/ops/optimizer.h).
#include <cmath>

#include <tenon/core/ops/optimizer.h>
#include <tenon/core/ops/optimizer/lists.h>
#include <tenon/core/ops/pointwise.h>

namespace tenon {

namespace {

void decompose_sgd(const Call& call, Outputs& out) {
  const ListsInPlace lists(call);
  double lr = call.scalars[0].value.f, momentum = call.scalars[1].value.f,
         dampening = call.scalars[2].value.f, weight_decay = call.scalars[3].value.f;
  for (size_t i = 0; i < lists.n; ++i) {
    Tensor p = lists(0, i), g = call.attrs.get_bool("maximize") ? neg(lists(1, i)) : lists(1, i);
    if (weight_decay != 0) g = g + p * weight_decay;
    if (lists.has(2)) {
      Tensor buffer = lists(2, i);
      buffer.copy_(call.scalars[4].value.i ? g : buffer * momentum + g * (1.0 - dampening));
      g = call.attrs.get_bool("nesterov") ? g + buffer * momentum : buffer;
    }
    p.copy_(p - g * lr);
  }
  lists.outputs(out);
}

void decompose_adam(const Call& call, Outputs& out) {
  const ListsInPlace lists(call);
  double lr = call.scalars[0].value.f, beta1 = call.scalars[1].value.f,
         beta2 = call.scalars[2].value.f, eps = call.scalars[3].value.f,
         weight_decay = call.scalars[4].value.f;
  double step = static_cast<double>(call.scalars[5].value.i);
  double correction1 = 1.0 - std::pow(beta1, step), correction2 = 1.0 - std::pow(beta2, step);
  for (size_t i = 0; i < lists.n; ++i) {
    Tensor p = lists(0, i), m = lists(2, i), v = lists(3, i);
    Tensor g = call.attrs.get_bool("maximize") ? neg(lists(1, i)) : lists(1, i);
    if (weight_decay != 0 && call.attrs.get_bool("decoupled"))
      p.copy_(p * (1.0 - lr * weight_decay));
    if (weight_decay != 0 && !call.attrs.get_bool("decoupled")) g = g + p * weight_decay;
    m.copy_(m * beta1 + g * (1.0 - beta1));
    v.copy_(v * beta2 + square(g) * (1.0 - beta2));
    Tensor largest = v;
    if (call.attrs.get_bool("amsgrad")) {
      largest = lists(4, i);
      largest.copy_(maximum(largest, v));
    }
    p.copy_(p - m * (lr / correction1) / (sqrt(largest) / std::sqrt(correction2) + eps));
  }
  lists.outputs(out);
}

// | `sgd_step` | p×n, g×n, then momentum×n? -> p×n, then momentum×n? | `n`, `nesterov` bool,
//   `maximize` bool; lr, momentum, dampening, weight_decay, first:i | |
const Op sgd_step_op{{.name = "sgd_step",
                      .infer = infer_in_place,
                      .by_element = true,
                      .decompose = decompose_sgd,
                      .scalars = 5,
                      .numbers = "lr momentum dampening weight_decay first"}};
// | `adam_step` | p×n, g×n, m×n, v×n, then vmax×n? -> p×n, m×n, v×n, then vmax×n? | `n`, `amsgrad`,
//   `decoupled` (AdamW), `maximize` bool; lr, beta1, beta2, eps, weight_decay, step:i | |
const Op adam_step_op{{.name = "adam_step",
                       .infer = infer_in_place,
                       .by_element = true,
                       .decompose = decompose_adam,
                       .scalars = 6,
                       .numbers = "lr betas.0 betas.1 eps weight_decay step"}};

}  // namespace

void sgd_step(TensorList params, TensorList grads, TensorList momentum_buffers,
              const SgdArgs& args) {
  if (params.empty()) return;
  require_list("sgd_step", "gradients", !grads.empty(), true);
  require_list("sgd_step", "momentum buffers", !momentum_buffers.empty(), args.momentum != 0);
  NoGrad guard;
  auto inputs = gather_inputs("sgd_step", {params, grads, momentum_buffers});
  Attrs attrs;
  attrs.set("n", static_cast<int64_t>(params.size()))
      .set("nesterov", args.nesterov)
      .set("maximize", args.maximize);
  Scalar scalars[] = {args.lr, args.momentum, args.dampening, args.weight_decay,
                      Scalar::integer(args.first)};
  run_all({sgd_step_op, inputs, attrs, scalars});
}

void adam_step(TensorList params, TensorList grads, TensorList exp_avg, TensorList exp_avg_sq,
               TensorList max_exp_avg_sq, const AdamArgs& args) {
  if (params.empty()) return;
  require_list("adam_step", "gradients", !grads.empty(), true);
  require_list("adam_step", "first moments", !exp_avg.empty(), true);
  require_list("adam_step", "second moments", !exp_avg_sq.empty(), true);
  require_list("adam_step", "largest second moments", !max_exp_avg_sq.empty(), args.amsgrad);
  require_step("adam_step", args.step);
  NoGrad guard;
  auto inputs = gather_inputs("adam_step", {params, grads, exp_avg, exp_avg_sq, max_exp_avg_sq});
  Attrs attrs;
  attrs.set("n", static_cast<int64_t>(params.size()))
      .set("amsgrad", args.amsgrad)
      .set("decoupled", args.decoupled)
      .set("maximize", args.maximize);
  Scalar scalars[] = {args.lr,  args.beta1,        args.beta2,
                      args.eps, args.weight_decay, Scalar::integer(args.step)};
  run_all({adam_step_op, inputs, attrs, scalars});
}

}  // namespace tenon
