// A function of tensors computed by the cuda plugin and by the cpu plugin, forward and backward.
#pragma once

#include "cuda/compare.h"

namespace tenon::test {

// Runs f on both devices with the same inputs. Results agree, and so do the gradients of all
// floating inputs.
inline void require_agreement(const std::string& what, const Function& f,
                              const std::vector<Tensor>& inputs, double allowed) {
  std::vector<Tensor> here, there, leaves_here, leaves_there;
  for (auto& x : inputs) {
    here.push_back(x.detach());
    there.push_back(x.detach().to(kGpu));
    if (!is_floating_point(x.dtype())) continue;
    leaves_here.push_back(here.back().requires_grad_());
    leaves_there.push_back(there.back().requires_grad_());
  }
  Tensor y = f(here), z = f(there);
  require_same(z.detach(), y.detach(), what, allowed);
  if (!y.requires_grad()) return;
  Tensor g = sample(y.shape(), 0.9).to(y.dtype()), g_there = g.to(kGpu);
  auto expected = grad(std::span(&y, 1), leaves_here, std::span(&g, 1), {.allow_unused = true});
  auto found = grad(std::span(&z, 1), leaves_there, std::span(&g_there, 1), {.allow_unused = true});
  for (size_t i = 0; i < expected.size(); ++i) {
    BOOST_REQUIRE_MESSAGE(found[i].defined() == expected[i].defined(),
                          what << ": gradient " << i << " is there on one device only");
    if (expected[i].defined())
      require_same(found[i], expected[i], what + ", gradient " + std::to_string(i), allowed);
  }
}

// For sums of many numbers.
inline double loose(DType t) { return t == DType::f32 ? 2e-5 : 1e-11; }

// The same values, but not at the start of an allocation: no pack of them is aligned.
inline Tensor misaligned(const Tensor& x) {
  Tensor whole = zeros({x.numel() + 1}, {.dtype = x.dtype(), .device = x.device()});
  Tensor view = whole.narrow(0, 1, x.numel()).view(x.shape());
  view.copy_(x);
  return view;
}

}  // namespace tenon::test
