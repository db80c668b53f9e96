#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <tenon/core/base/number_text.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/core/tensor_methods.h>
#include <tenon/data/mix.h>

namespace tenon::data {
namespace {

double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform64(0, 1)));
  return radius * std::cos(2 * std::numbers::pi * random.uniform64(0, 1));
}

// Returns the logarithm of a number from the Gamma distribution (Marsaglia, Tsang 2000). For a
// small alpha the number itself would be 0.
double log_gamma_sample(double alpha, Random& random) {
  const double d = alpha + 1 - 1. / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(random), base = 1 + c * x;
    if (base <= 0) continue;
    const double v = base * base * base;
    if (std::log(1 - random.uniform64(0, 1)) < x * x / 2 + d - d * v + d * std::log(v))
      return std::log(d * v) + std::log(1 - random.uniform64(0, 1)) / alpha;
  }
}

double beta_sample(double alpha, Random& random) {
  const double x = log_gamma_sample(alpha, random), y = log_gamma_sample(alpha, random);
  return 1 / (1 + std::exp(y - x));
}

void require_options(const char* what, const MixOptions& options) {
  if (options.num_classes < 0)
    throw ValueError(
        fmt::format("{}: num_classes has to be at least 0, but is {}", what, options.num_classes));
  if (!(options.alpha > 0 && std::isfinite(options.alpha)))
    throw ValueError(fmt::format("{}: alpha has to be finite and positive, but is {}", what,
                                 number_text(options.alpha)));
}

Tensor require_data(const char* what, const Batch& batch) {
  if (batch.data.dtype() != DType::f32)
    throw DTypeError(fmt::format(
        "{}: the data has to be f32, but is {}; put Normalize at the end of the transforms", what,
        batch.data.dtype()));
  if (batch.data.dim() == 0 || batch.target.dim() == 0 ||
      batch.data.size(0) != batch.target.size(0))
    throw ShapeError(fmt::format("{}: data of shape {} and target of shape {} are no batch", what,
                                 batch.data.shape(), batch.target.shape()));
  return on_host(batch.data);
}

// to[i] = share · from[i] + (1 - share) · from[i - 1], row by row.
void mix_rows(const float* from, float* to, int64_t count, int64_t row, float share) {
  for (int64_t i = 0; i < count; ++i) {
    const float *own = from + i * row, *other = from + (i == 0 ? count - 1 : i - 1) * row;
    for (int64_t j = 0; j < row; ++j) *to++ = share * own[j] + (1 - share) * other[j];
  }
}

Tensor mix_targets(const char* what, const Tensor& target, int64_t classes, double share) {
  const int64_t count = target.size(0);
  Tensor probabilities;
  if (target.dim() == 2 && target.dtype() == DType::f32 &&
      (classes == 0 || classes == target.size(1))) {
    probabilities = on_host(target);
  } else if (target.dim() == 1 && (target.dtype() == DType::i64 || target.dtype() == DType::i32) &&
             classes > 0) {
    const std::vector<int64_t> labels = target.to_vector<int64_t>();
    const HostTensor hot = make_host_tensor({count, classes}, DType::f32);
    auto* to = static_cast<float*>(hot.values);
    std::fill_n(to, count * classes, 0.f);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t label = labels[static_cast<size_t>(i)];
      if (label < 0 || label >= classes)
        throw IndexError(fmt::format("{}: label {} of example {} of the batch is not in [0, {})",
                                     what, label, i, classes));
      to[i * classes + label] = 1;
    }
    probabilities = hot.tensor;
  } else {
    throw ShapeError(
        fmt::format("{}: the target has to be labels (N) of i64 or i32, with num_classes given, or "
                    "probabilities (N, C) of f32; it is {} of shape {}, and num_classes is {}",
                    what, target.dtype(), target.shape(), classes));
  }
  const HostTensor mixed = make_host_tensor(probabilities.shape(), DType::f32);
  mix_rows(static_cast<const float*>(host_values(probabilities)), static_cast<float*>(mixed.values),
           count, count ? probabilities.numel() / count : 0, static_cast<float>(share));
  return mixed.tensor;
}

}  // namespace

MixUp::MixUp(const MixOptions& options) : options_(options) { require_options("MixUp", options); }

Batch MixUp::operator()(const Batch& batch, Random& random) const {
  const Tensor data = require_data("MixUp", batch);
  const double share = beta_sample(options_.alpha, random);
  const HostTensor mixed = make_host_tensor(data.shape(), DType::f32);
  const int64_t count = data.size(0);
  mix_rows(static_cast<const float*>(host_values(data)), static_cast<float*>(mixed.values), count,
           count ? data.numel() / count : 0, static_cast<float>(share));
  return {mixed.tensor, mix_targets("MixUp", batch.target, options_.num_classes, share)};
}

CutMix::CutMix(const MixOptions& options) : options_(options) {
  require_options("CutMix", options);
}

Batch CutMix::operator()(const Batch& batch, Random& random) const {
  const Tensor data = require_data("CutMix", batch);
  if (data.dim() != 4 || data.numel() == 0)
    throw ShapeError(fmt::format("CutMix: the data has to be images (N, C, H, W), but has shape {}",
                                 data.shape()));
  const int64_t count = data.size(0), channels = data.size(1), height = data.size(2),
                width = data.size(3);
  const double half = 0.5 * std::sqrt(1 - beta_sample(options_.alpha, random));
  auto range = [&](int64_t side) {
    const auto middle = static_cast<int64_t>(random.below(static_cast<uint64_t>(side))),
               reach = static_cast<int64_t>(half * static_cast<double>(side));
    return std::pair(std::max<int64_t>(middle - reach, 0), std::min(middle + reach, side));
  };
  const auto [left, right] = range(width);
  const auto [top, bottom] = range(height);
  const double share = 1 - static_cast<double>((right - left) * (bottom - top)) /
                               static_cast<double>(width * height);
  const HostTensor mixed = make_host_tensor(data.shape(), DType::f32);
  auto* from = static_cast<const float*>(host_values(data));
  auto* to = static_cast<float*>(mixed.values);
  std::copy_n(from, data.numel(), to);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t y = top; y < bottom; ++y) {
        const int64_t other = i == 0 ? count - 1 : i - 1;
        std::copy(from + ((other * channels + c) * height + y) * width + left,
                  from + ((other * channels + c) * height + y) * width + right,
                  to + ((i * channels + c) * height + y) * width + left);
      }
  return {mixed.tensor, mix_targets("CutMix", batch.target, options_.num_classes, share)};
}

}  // namespace tenon::data
