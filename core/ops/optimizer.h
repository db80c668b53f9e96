// Optimizer steps over all parameters at once, in place: one plan, one pass over memory. For
// modules/optim; formulas are those of PyTorch's documentation of torch.optim.SGD, Adam and AdamW.
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
  bool first = false;  // the first step of these buffers: each becomes the gradient
};

struct AdamArgs {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool decoupled = false;  // weight decay as AdamW's
  bool maximize = false;
  int64_t step = 1;  // counts from 1
};

// All tensors of a call share one floating type and one device; entry i of each list has the shape
// of params[i]. Not recorded; versions of parameters and state are raised. `momentum_buffers` is
// empty exactly where args.momentum is 0, `max_exp_avg_sq` unless amsgrad. ValueError, ShapeError
// or DTypeError names the entry that does not fit.
TENON_API void sgd_step(std::span<const Tensor> params, std::span<const Tensor> grads,
                        std::span<const Tensor> momentum_buffers, const SgdArgs& args);
TENON_API void adam_step(std::span<const Tensor> params, std::span<const Tensor> grads,
                         std::span<const Tensor> exp_avg, std::span<const Tensor> exp_avg_sq,
                         std::span<const Tensor> max_exp_avg_sq, const AdamArgs& args);

}  // namespace tenon
