// Optimizer steps that change all parameters in place in one pass over memory. The optimizers of
// modules/optim call them; the formulas are those of PyTorch's documentation of torch.optim.SGD,
// Adam and AdamW.
#pragma once

#include <cstdint>
#include <span>

#include <tenon/core/tensor.h>

namespace tenon {

struct SgdArgs {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool first = false;  // whether this is the first step: each momentum buffer becomes the gradient
};

struct AdamArgs {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool decoupled = false;  // whether weight decay is AdamW's (Loshchilov and Hutter, 1711.05101)
  bool maximize = false;
  int64_t step = 1;  // the number of this step, which starts at 1
};

// Takes a step of stochastic gradient descent. All tensors have one floating dtype and one device,
// and entry i of each list has the shape of params[i]. `momentum_buffers` is empty if args.momentum
// is 0 and has an entry for each parameter otherwise. Parameters and buffers are changed in place,
// which raises their versions; nothing is recorded for autograd. Throws a ValueError, ShapeError or
// DTypeError for a list or an entry that does not fit.
TENON_API void sgd_step(std::span<const Tensor> params, std::span<const Tensor> grads,
                        std::span<const Tensor> momentum_buffers, const SgdArgs& args);

// Takes a step of Adam (Kingma and Ba, arXiv:1412.6980), or of AdamW if args.decoupled is true. All
// tensors have one floating dtype and one device, and entry i of each list has the shape of
// params[i]. `max_exp_avg_sq` is empty unless args.amsgrad is true. All but the gradients are
// changed in place, which raises their versions; nothing is recorded for autograd. Throws a
// ValueError, ShapeError or DTypeError for a list or an entry that does not fit, and a ValueError
// if args.step is less than 1.
TENON_API void adam_step(std::span<const Tensor> params, std::span<const Tensor> grads,
                         std::span<const Tensor> exp_avg, std::span<const Tensor> exp_avg_sq,
                         std::span<const Tensor> max_exp_avg_sq, const AdamArgs& args);

}  // namespace tenon
