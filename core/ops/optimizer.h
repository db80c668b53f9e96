// Optimizer steps that change all parameters in place. The optimizers of modules/optim call them;
// the formulas are those of PyTorch's documentation of torch.optim.
//
// All tensors of a call have one floating dtype and one device, and entry i of each list has the
// shape of params[i]. All but the gradients are changed in place, which raises their versions;
// nothing is recorded for autograd. Lists of state that the settings do not use are empty. Each
// function throws a ValueError, ShapeError or DTypeError for a list or an entry that does not fit,
// and a ValueError if args.step, which counts from 1, is less than 1.
//
// sgd_step, adam_step, rmsprop_step, adagrad_step, nadam_step, radam_step and lion_step are
// operators with kernels, which take all parameters in one pass over memory. The others, which are
// used less, are made of other operators.
//
// Fields that several of the arguments have: lr is the learning rate; weight_decay is the share of
// the parameter that is added to its gradient, or with `decoupled` and in lion_step subtracted from
// the parameter itself, times lr; maximize says whether to go along the gradient instead of against
// it; eps keeps divisors away from 0; beta1 and beta2 are how much of the averages of gradients and
// of their squares is kept in a step, except in lion_step; step is the number of the step, which
// starts at 1.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include <tenon/core/tensor.h>

namespace tenon {

// The settings of sgd_step.
struct SgdArgs {
  double lr = 1e-3;
  double momentum = 0;   // how much of the momentum buffer is kept in a step
  double dampening = 0;  // how much of the gradient does not enter the momentum buffer
  double weight_decay = 0;
  bool nesterov = false;  // whether the momentum is Nesterov's
  bool maximize = false;
  bool first = false;  // whether this is the first step: each momentum buffer becomes the gradient
};

// The settings of adam_step.
struct AdamArgs {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;    // whether the largest average of squares so far is divided by
  bool decoupled = false;  // whether weight decay is AdamW's (Loshchilov and Hutter, 1711.05101)
  bool maximize = false;
  int64_t step = 1;  // the number of this step, which starts at 1
};

// The settings of rmsprop_step.
struct RmspropArgs {
  double lr = 1e-2;
  double alpha = 0.99;  // how much of the averages is kept in a step
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;    // how much of the momentum buffer is kept in a step
  bool centered = false;  // whether the average of squares becomes a variance
  bool maximize = false;
};

// The settings of adagrad_step.
struct AdagradArgs {
  double lr = 1e-2;
  double lr_decay = 0;  // lr is divided by 1 + (step - 1) lr_decay
  double weight_decay = 0;
  double eps = 1e-10;
  bool maximize = false;
  int64_t step = 1;
};

// The settings of nadam_step.
struct NadamArgs {
  double lr = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;  // how fast the momentum grows, as nadam_mu takes it
  double mu_product = 1;         // the product of nadam_mu of all earlier steps
  bool decoupled = false;        // whether weight decay is AdamW's
  bool maximize = false;
  int64_t step = 1;
};
// Returns the momentum of step number `step` of NAdam, beta1 (1 - 0.96^(step momentum_decay) / 2).
inline double nadam_mu(double beta1, double momentum_decay, int64_t step) {
  return beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * momentum_decay));
}

// The settings of radam_step.
struct RadamArgs {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  // whether weight decay is AdamW's
  bool maximize = false;
  int64_t step = 1;
};

// The settings of lion_step.
struct LionArgs {
  double lr = 1e-4;
  double beta1 = 0.9;   // the share of the average in the direction of a step
  double beta2 = 0.99;  // how much of the average is kept in a step
  double weight_decay = 0;
  bool maximize = false;
};

// The settings of adadelta_step.
struct AdadeltaArgs {
  double lr = 1;
  double rho = 0.9;  // how much of the averages is kept in a step
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;
};

// The settings of adamax_step.
struct AdamaxArgs {
  double lr = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;
  int64_t step = 1;
};

// The settings of asgd_step.
struct AsgdArgs {
  double eta = 1e-2;    // the learning rate of this step
  double lambd = 1e-4;  // the share of the parameter that is subtracted from it, times eta
  double mu = 1;  // the weight of the new parameter in the average; 1: it replaces the average
  double weight_decay = 0;
  bool maximize = false;
};

// The settings of rprop_step.
struct RpropArgs {
  double etaminus = 0.5;        // the factor of a step size where the gradient has turned
  double etaplus = 1.2;         // the factor of a step size where it has not
  double step_size_min = 1e-6;  // the least step size
  double step_size_max = 50;    // the largest step size
  bool maximize = false;
};

using TensorList = std::span<const Tensor>;

// Takes a step of stochastic gradient descent. `momentum_buffers` is empty if args.momentum is 0.
TENON_API void sgd_step(TensorList params, TensorList grads, TensorList momentum_buffers,
                        const SgdArgs& args);

// Takes a step of Adam (Kingma and Ba, arXiv:1412.6980), or of AdamW if args.decoupled is true.
// `exp_avg` and `exp_avg_sq` hold averages of the gradients and of their squares, zeros before the
// first step. `max_exp_avg_sq`, the largest of the latter, is empty unless args.amsgrad is true.
TENON_API void adam_step(TensorList params, TensorList grads, TensorList exp_avg,
                         TensorList exp_avg_sq, TensorList max_exp_avg_sq, const AdamArgs& args);

// Takes a step of RMSprop (Hinton's lecture 6e; centered: Graves, arXiv:1308.0850). `grad_avg` is
// empty unless args.centered is true, and `momentum_buffers` if args.momentum is 0.
TENON_API void rmsprop_step(TensorList params, TensorList grads, TensorList square_avg,
                            TensorList grad_avg, TensorList momentum_buffers,
                            const RmspropArgs& args);

// Takes a step of Adagrad (Duchi et al., JMLR 12, 2011). `sum` holds the sums of squared gradients.
TENON_API void adagrad_step(TensorList params, TensorList grads, TensorList sum,
                            const AdagradArgs& args);

// Takes a step of NAdam (Dozat 2016). `exp_avg` and `exp_avg_sq` are as in adam_step.
TENON_API void nadam_step(TensorList params, TensorList grads, TensorList exp_avg,
                          TensorList exp_avg_sq, const NadamArgs& args);

// Takes a step of RAdam (Liu et al., arXiv:1908.03265). `exp_avg` and `exp_avg_sq` are as in
// adam_step.
TENON_API void radam_step(TensorList params, TensorList grads, TensorList exp_avg,
                          TensorList exp_avg_sq, const RadamArgs& args);

// Takes a step of Lion (Chen et al., arXiv:2302.06675). `exp_avg` holds averages of the gradients.
TENON_API void lion_step(TensorList params, TensorList grads, TensorList exp_avg,
                         const LionArgs& args);

// Takes a step of Adadelta (Zeiler, arXiv:1212.5701). `square_avg` and `acc_delta` hold averages of
// the squares of gradients and of changes.
TENON_API void adadelta_step(TensorList params, TensorList grads, TensorList square_avg,
                             TensorList acc_delta, const AdadeltaArgs& args);

// Takes a step of Adamax (Kingma and Ba, arXiv:1412.6980, section 7.1). `exp_avg` holds averages of
// the gradients, and `exp_inf` their largest absolute values, which fade by beta2 in a step.
TENON_API void adamax_step(TensorList params, TensorList grads, TensorList exp_avg,
                           TensorList exp_inf, const AdamaxArgs& args);

// Takes a step of averaged SGD (Polyak and Juditsky 1992); `ax` are the averages.
TENON_API void asgd_step(TensorList params, TensorList grads, TensorList ax, const AsgdArgs& args);

// Takes a step of Rprop (Riedmiller and Braun 1993). `prev` holds the last gradients, zeros before
// the first step, and `step_size` the size of each element's next step.
TENON_API void rprop_step(TensorList params, TensorList grads, TensorList prev,
                          TensorList step_size, const RpropArgs& args);

}  // namespace tenon
