// A parameter, and a step of an optimizer with a given gradient.
#pragma once

#include <tenon/modules/optim/optimizer.h>

namespace tenon::test {

inline Tensor leaf(const Tensor& values) {
  Tensor t = values.clone();
  t.requires_grad_();
  return t;
}

inline void step_with(optim::Optimizer& opt, Tensor& param, const Tensor& grad) {
  param.set_grad(grad.clone());
  opt.step();
}

}  // namespace tenon::test
