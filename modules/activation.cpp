#include <tenon/core/base/module_path.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/activation.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/modules/activation.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

Tensor ReLU::forward(const Tensor& x) const { return relu(x); }
Tensor Sigmoid::forward(const Tensor& x) const { return sigmoid(x); }
Tensor Tanh::forward(const Tensor& x) const { return tanh(x); }
Tensor SiLU::forward(const Tensor& x) const { return silu(x); }
Tensor GELU::forward(const Tensor& x) const { return gelu(x, approximate); }
Tensor Softmax::forward(const Tensor& x) const { return softmax(x, dim); }
Tensor Softmax2d::forward(const Tensor& x) const {
  if (x.dim() != 3 && x.dim() != 4)
    throw ShapeError(fmt::format(
        "Softmax2d: expected an input of shape (N, C, H, W) or (C, H, W), got one of shape {}{}",
        x.shape(), path_suffix()));
  return softmax(x, -3);
}
Tensor LogSoftmax::forward(const Tensor& x) const { return log_softmax(x, dim); }

GELU::GELU(std::string a) : approximate(std::move(a)) {
  if (approximate != "none" && approximate != "tanh")
    throw ValueError(
        fmt::format("GELU: approximate is \"{}\"; it has to be \"none\" or \"tanh\"", approximate));
}

std::string GELU::extra_repr() const { return fmt::format("approximate='{}'", approximate); }
std::string Softmax::extra_repr() const { return fmt::format("dim={}", dim); }
std::string LogSoftmax::extra_repr() const { return fmt::format("dim={}", dim); }

Tensor ELU::forward(const Tensor& x) const { return elu(x, alpha); }
Tensor SELU::forward(const Tensor& x) const { return selu(x); }
Tensor CELU::forward(const Tensor& x) const { return celu(x, alpha); }
Tensor LeakyReLU::forward(const Tensor& x) const { return leaky_relu(x, negative_slope); }
Tensor Softplus::forward(const Tensor& x) const { return softplus(x, beta, threshold); }
Tensor LogSigmoid::forward(const Tensor& x) const { return logsigmoid(x); }
Tensor Mish::forward(const Tensor& x) const { return mish(x); }
Tensor Hardsigmoid::forward(const Tensor& x) const { return hardsigmoid(x); }
Tensor Hardswish::forward(const Tensor& x) const { return hardswish(x); }
Tensor Hardtanh::forward(const Tensor& x) const { return hardtanh(x, min_val, max_val); }
Tensor ReLU6::forward(const Tensor& x) const { return relu6(x); }
Tensor Hardshrink::forward(const Tensor& x) const { return hardshrink(x, lambd); }
Tensor Softshrink::forward(const Tensor& x) const { return softshrink(x, lambd); }
Tensor Threshold::forward(const Tensor& x) const { return tenon::threshold(x, threshold, value); }
Tensor Tanhshrink::forward(const Tensor& x) const { return tanhshrink(x); }
Tensor Softsign::forward(const Tensor& x) const { return softsign(x); }
Tensor GLU::forward(const Tensor& x) const { return glu(x, dim); }
Tensor Softmin::forward(const Tensor& x) const { return softmin(x, dim); }
Tensor PReLU::forward(const Tensor& x) const { return prelu(x, weight); }

std::string ELU::extra_repr() const { return fmt::format("alpha={}", repr(alpha)); }
std::string CELU::extra_repr() const { return fmt::format("alpha={}", repr(alpha)); }
std::string LeakyReLU::extra_repr() const {
  return fmt::format("negative_slope={}", repr(negative_slope));
}
std::string Softplus::extra_repr() const {
  return fmt::format("beta={}, threshold={}", repr(beta), repr(threshold));
}
std::string Hardtanh::extra_repr() const {
  return fmt::format("min_val={}, max_val={}", repr(min_val), repr(max_val));
}
std::string Hardshrink::extra_repr() const { return fmt::format("lambd={}", repr(lambd)); }
std::string Softshrink::extra_repr() const { return fmt::format("lambd={}", repr(lambd)); }
std::string Threshold::extra_repr() const {
  return fmt::format("threshold={}, value={}", repr(threshold), repr(value));
}
std::string GLU::extra_repr() const { return fmt::format("dim={}", dim); }
std::string Softmin::extra_repr() const { return fmt::format("dim={}", dim); }

PReLU::PReLU(int64_t n, double init, const TensorOptions& options) : num_parameters(n) {
  require(n >= 1, "PReLU", "num_parameters", static_cast<double>(n), "at least 1");
  weight = Parameter(full({n}, init, options));
}
std::string PReLU::extra_repr() const { return fmt::format("num_parameters={}", num_parameters); }

}  // namespace tenon::nn
