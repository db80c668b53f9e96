#include <tenon/core/format.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/modules/activation.h>

namespace tenon::nn {

Tensor ReLU::forward(const Tensor& x) const { return relu(x); }
Tensor Sigmoid::forward(const Tensor& x) const { return sigmoid(x); }
Tensor Tanh::forward(const Tensor& x) const { return tanh(x); }
Tensor SiLU::forward(const Tensor& x) const { return silu(x); }
Tensor GELU::forward(const Tensor& x) const { return gelu(x, approximate); }
Tensor Softmax::forward(const Tensor& x) const { return softmax(x, dim); }
Tensor LogSoftmax::forward(const Tensor& x) const { return log_softmax(x, dim); }

GELU::GELU(std::string a) : approximate(std::move(a)) {
  if (approximate != "none" && approximate != "tanh")
    throw ValueError(
        fmt::format("GELU: approximate is \"{}\"; it has to be \"none\" or \"tanh\"", approximate));
}

std::string GELU::extra_repr() const { return fmt::format("approximate='{}'", approximate); }
std::string Softmax::extra_repr() const { return fmt::format("dim={}", dim); }
std::string LogSoftmax::extra_repr() const { return fmt::format("dim={}", dim); }

}  // namespace tenon::nn
