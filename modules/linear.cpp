#include <cmath>

#include <tenon/core/base/module_path.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/shape.h>
#include <tenon/modules/init.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

Linear::Linear(int64_t in, int64_t out, const WeightOptions& options)
    : in_features(in), out_features(out) {
  require(in >= 0, "Linear", "in_features", static_cast<double>(in), "at least 0");
  require(out >= 0, "Linear", "out_features", static_cast<double>(out), "at least 0");
  // kaiming_uniform_ with a = sqrt(5) is U(-k, k) too; PyTorch writes it that way.
  double bound = in ? 1 / std::sqrt(static_cast<double>(in)) : 0;
  weight = Parameter(init::uniform_(empty({out, in}, options.tensor), -bound, bound));
  if (options.bias) bias = Parameter(init::uniform_(empty({out}, options.tensor), -bound, bound));
}

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight, bias); }

void Linear::fields(FieldVisitor& v) { v("weight", weight)("bias", bias); }

std::string Linear::extra_repr() const {
  return fmt::format("in_features={}, out_features={}, bias={}", in_features, out_features,
                     repr(bias.defined()));
}

Bilinear::Bilinear(int64_t in1, int64_t in2, int64_t out, const WeightOptions& options)
    : in1_features(in1), in2_features(in2), out_features(out) {
  require(in1 >= 1, "Bilinear", "in1_features", static_cast<double>(in1), "at least 1");
  require(in2 >= 1, "Bilinear", "in2_features", static_cast<double>(in2), "at least 1");
  require(out >= 1, "Bilinear", "out_features", static_cast<double>(out), "at least 1");
  const double bound = 1 / std::sqrt(static_cast<double>(in1));
  weight = Parameter(init::uniform_(empty({out, in1, in2}, options.tensor), -bound, bound));
  if (options.bias) bias = Parameter(init::uniform_(empty({out}, options.tensor), -bound, bound));
}

Tensor Bilinear::forward(const Tensor& x1, const Tensor& x2) const {
  const int64_t rank = x1.dim();
  Shape batch = x1.shape();
  if (rank > 0) batch.erase(batch.size() - 1);
  Shape first = batch, second = batch, result = batch;
  first.push_back(in1_features), second.push_back(in2_features), result.push_back(out_features);
  if (rank == 0 || !(x1.shape() == first) || !(x2.shape() == second))
    throw ShapeError(
        fmt::format("Bilinear: expected inputs of shapes (…, {}) and (…, {}), got {} and {}{}",
                    in1_features, in2_features, x1.shape(), x2.shape(), path_suffix()));
  const int64_t rows = batch.numel();
  // (rows, in1) (in1, out in2), then each output's row times x2.
  const Tensor flat =
      weight.permute({1, 0, 2}).reshape({in1_features, out_features * in2_features});
  const Tensor mixed =
      matmul(x1.reshape({rows, in1_features}), flat).reshape({rows, out_features, in2_features});
  const Tensor y = matmul(mixed, x2.reshape({rows, in2_features, 1})).reshape(result);
  return bias.defined() ? y + bias : y;
}

void Bilinear::fields(FieldVisitor& v) { v("weight", weight)("bias", bias); }

std::string Bilinear::extra_repr() const {
  return fmt::format("in1_features={}, in2_features={}, out_features={}, bias={}", in1_features,
                     in2_features, out_features, repr(bias.defined()));
}

}  // namespace tenon::nn
