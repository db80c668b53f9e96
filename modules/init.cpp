#include <cmath>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/format.h>
#include <tenon/modules/init.h>
#include <tenon/modules/repr.h>

namespace tenon::nn::init {

Tensor uniform_(const Tensor& tensor, double low, double high) {
  NoGrad guard;
  Tensor t = tensor;
  return t.uniform_(low, high);
}

Tensor normal_(const Tensor& tensor, double mean, double std) {
  NoGrad guard;
  Tensor t = tensor;
  return t.normal_(mean, std);
}

Tensor constant_(const Tensor& tensor, double value) {
  NoGrad guard;
  Tensor t = tensor;
  return t.fill_(value);
}

Tensor zeros_(const Tensor& tensor) { return constant_(tensor, 0); }
Tensor ones_(const Tensor& tensor) { return constant_(tensor, 1); }

double calculate_gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::tanh:
      return 5.0 / 3;
    case Nonlinearity::relu:
      return std::sqrt(2.0);
    case Nonlinearity::leaky_relu:
      return std::sqrt(2.0 / (1 + slope * slope));
    case Nonlinearity::selu:
      return 3.0 / 4;
    default:
      return 1;
  }
}

Fans calculate_fans(const Tensor& weight) {
  const Shape& s = weight.shape();
  if (s.size() < 2)
    throw ShapeError(
        fmt::format("init: a weight of shape {} has no fan-in and fan-out; it needs at least two "
                    "dimensions (out, in, kernel…)",
                    s));
  int64_t kernel = 1;
  for (size_t i = 2; i < s.size(); ++i) kernel *= s[i];
  return {s[1] * kernel, s[0] * kernel};
}

namespace {

// 0 for a weight without elements, which has no variance to keep.
double xavier_std(const char* name, const Tensor& weight, double gain) {
  require_not_negative(gain, name, "gain");
  Fans fans = calculate_fans(weight);
  return fans.in + fans.out ? gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out)) : 0;
}

double kaiming_std(const char* name, const Tensor& weight, const KaimingOptions& options) {
  require(std::isfinite(options.a), name, "a", options.a, "finite");
  Fans fans = calculate_fans(weight);
  int64_t fan = options.mode == Fan::in ? fans.in : fans.out;
  return fan ? calculate_gain(options.nonlinearity, options.a) / std::sqrt(static_cast<double>(fan))
             : 0;
}

// U(-b, b) has the standard deviation b / sqrt(3).
Tensor symmetric_(const Tensor& weight, double std) {
  double bound = std::sqrt(3.0) * std;
  return uniform_(weight, -bound, bound);
}

}  // namespace

Tensor xavier_uniform_(const Tensor& weight, double gain) {
  return symmetric_(weight, xavier_std("xavier_uniform_", weight, gain));
}
Tensor xavier_normal_(const Tensor& weight, double gain) {
  return normal_(weight, 0, xavier_std("xavier_normal_", weight, gain));
}
Tensor kaiming_uniform_(const Tensor& weight, KaimingOptions options) {
  return symmetric_(weight, kaiming_std("kaiming_uniform_", weight, options));
}
Tensor kaiming_normal_(const Tensor& weight, KaimingOptions options) {
  return normal_(weight, 0, kaiming_std("kaiming_normal_", weight, options));
}

}  // namespace tenon::nn::init
