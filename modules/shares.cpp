#include <cmath>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/modules/repr.h>
#include <tenon/modules/shares.h>

namespace tenon::nn::detail {

std::vector<int64_t> share_ends(int64_t size, size_t parts, const std::vector<double>& weights) {
  std::vector<int64_t> ends;
  const auto n = static_cast<int64_t>(parts);
  long double total = 0, before = 0;  // sums of doubles do not overflow
  for (double w : weights) total += w;
  int64_t end = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (weights.empty()) {
      end += size / n + (i < size % n);
    } else {  // rounding the borders instead of the sizes keeps their sum
      before += weights[static_cast<size_t>(i)];
      end = i + 1 == n ? size : std::llround(static_cast<long double>(size) * before / total);
    }
    ends.push_back(end);
  }
  return ends;
}

void check_weights(const char* function, const std::vector<double>& weights, size_t devices) {
  if (weights.empty()) return;
  if (weights.size() != devices)
    throw ValueError(
        fmt::format("{}: {} weights given for {} devices", function, weights.size(), devices));
  double sum = 0;
  for (double w : weights) {
    require(w >= 0 && std::isfinite(w), function, "a weight", w, "a finite number of at least 0");
    sum += w;
  }
  require(sum > 0, function, "the sum of weights", sum, "above 0");
}

}  // namespace tenon::nn::detail
