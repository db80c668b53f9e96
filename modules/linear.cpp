#include <cmath>

#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
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

}  // namespace tenon::nn
