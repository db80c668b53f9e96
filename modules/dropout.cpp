#include <tenon/core/format.h>
#include <tenon/core/ops/random.h>
#include <tenon/modules/dropout.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

Dropout::Dropout(double p) : p(p) {
  require(p >= 0 && p <= 1, "Dropout", "p", p, "a probability, from 0 to 1");
}

Tensor Dropout::forward(const Tensor& x) const { return dropout(x, p, training); }

std::string Dropout::extra_repr() const { return fmt::format("p={}, inplace=False", repr(p)); }

}  // namespace tenon::nn
