#include <cmath>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>
#include <tenon/modules/clip_grad.h>
#include <tenon/modules/repr.h>

namespace tenon::nn::utils {

namespace {

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  for (auto& p : parameters)
    if (Tensor g = p.grad(); g.defined()) gradients.push_back(std::move(g));
  return gradients;
}

}  // namespace

Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type,
                      bool error_if_nonfinite) {
  const NoGrad guard;
  const Device device = tensors.empty() ? default_device() : tensors[0].device();
  DType dtype = f32;
  for (auto& t : tensors)
    if (t.dtype() == f64) dtype = f64;
  std::vector<Tensor> norms;
  for (auto& t : tensors)
    if (t.numel() > 0) {
      // The squares of a half type would overflow at 256.
      const Tensor wide = t.dtype() == f64 ? t.detach() : t.detach().to(f32);
      norms.push_back(norm(wide, norm_type).to(device).to(dtype));
    }
  const Tensor total =
      norms.empty() ? zeros({}, {.dtype = dtype, .device = device}) : norm(stack(norms), norm_type);
  if (error_if_nonfinite && !std::isfinite(total.item()))
    throw ValueError(fmt::format(
        "the total norm of order {} of the gradients is {}, so they cannot be clipped; give "
        "error_if_nonfinite = false to scale them by it nevertheless",
        repr(norm_type), repr(total.item())));
  return total;
}

void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm,
                           const Tensor& total_norm) {
  require(max_norm >= 0, "clip_grad_norm_", "max_norm", max_norm, "at least 0");
  const NoGrad guard;
  // As in PyTorch: a product by 1 costs less than to wait for the norm.
  const Tensor factor = minimum(max_norm / (total_norm.detach() + 1e-6), 1);
  for (Tensor& g : gradients_of(parameters)) g.copy_(g * factor.to(g.device()).to(g.dtype()));
}

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  require(max_norm >= 0, "clip_grad_norm_", "max_norm", max_norm, "at least 0");
  const Tensor total = get_total_norm(gradients_of(parameters), norm_type, error_if_nonfinite);
  clip_grads_with_norm_(parameters, max_norm, total);
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  require(clip_value >= 0, "clip_grad_value_", "clip_value", clip_value, "at least 0");
  const NoGrad guard;
  for (Tensor& g : gradients_of(parameters)) g.copy_(clamp(g, -clip_value, clip_value));
}

}  // namespace tenon::nn::utils
