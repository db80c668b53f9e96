#include <cmath>

#include <tenon/core/base/module_path.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/modules/dropout.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

namespace {

double probability(double p, const char* layer) {
  require(p >= 0 && p <= 1, layer, "p", p, "a probability, from 0 to 1");
  return p;
}

std::string dropout_repr(double p) { return fmt::format("p={}, inplace=False", repr(p)); }

// Drops all elements that share the first `kept` dimensions together.
Tensor drop_channels(const Tensor& x, int64_t kept, double p, bool training) {
  if (!training || p == 0) return x;
  Shape shape = x.shape();
  for (size_t d = static_cast<size_t>(kept); d < shape.size(); ++d) shape[d] = 1;
  return x * dropout(ones(shape, {.dtype = x.dtype(), .device = x.device()}), p);
}

void require_dims(const Tensor& x, int64_t low, int64_t high, const char* layer,
                  const char* wanted) {
  if (x.dim() >= low && x.dim() <= high) return;
  throw ShapeError(fmt::format("{}: expected an input of shape {}, got one of shape {}{}", layer,
                               wanted, x.shape(), path_suffix()));
}

}  // namespace

Dropout::Dropout(double p) : p(probability(p, "Dropout")) {}
Dropout1d::Dropout1d(double p) : p(probability(p, "Dropout1d")) {}
Dropout2d::Dropout2d(double p) : p(probability(p, "Dropout2d")) {}
Dropout3d::Dropout3d(double p) : p(probability(p, "Dropout3d")) {}
AlphaDropout::AlphaDropout(double p) : p(probability(p, "AlphaDropout")) {}

Tensor Dropout1d::forward(const Tensor& x) const {
  require_dims(x, 2, 3, "Dropout1d", "(N, C, L) or (C, L)");
  return drop_channels(x, x.dim() - 1, p, training);
}
Tensor Dropout2d::forward(const Tensor& x) const {
  require_dims(x, 3, 4, "Dropout2d", "(N, C, H, W) or (N, C, L)");
  return drop_channels(x, 2, p, training);
}
Tensor Dropout3d::forward(const Tensor& x) const {
  require_dims(x, 4, 5, "Dropout3d", "(N, C, D, H, W) or (C, D, H, W)");
  return drop_channels(x, x.dim() - 3, p, training);
}

Tensor AlphaDropout::forward(const Tensor& x) const {
  if (!training || p == 0) return x;
  if (p == 1) return x * 0;
  constexpr double kLowest = -1.7580993408473766;  // SELU of minus infinity: -scale alpha
  const double a = 1 / std::sqrt((kLowest * kLowest * p + 1) * (1 - p));
  const TensorOptions like{.dtype = x.dtype(), .device = x.device()};
  // 1 where an element stays; dropout has scaled it up.
  const Tensor stays = dropout(ones(x.shape(), like), p) * (1 - p);
  return (x * stays + (1 - stays) * kLowest - kLowest * p) * a;
}

Tensor Dropout::forward(const Tensor& x) const { return dropout(x, p, training); }

std::string Dropout::extra_repr() const { return dropout_repr(p); }
std::string Dropout1d::extra_repr() const { return dropout_repr(p); }
std::string Dropout2d::extra_repr() const { return dropout_repr(p); }
std::string Dropout3d::extra_repr() const { return dropout_repr(p); }
std::string AlphaDropout::extra_repr() const { return dropout_repr(p); }

}  // namespace tenon::nn
