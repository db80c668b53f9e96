// What the values of tensors are like, tensor by tensor.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>

#include <tenon/core/base/printable.h>
#include <tenon/core/tensor.h>
#include <tenon/serialization/conversion.h>

#include "checkpoint_commands.h"

namespace tenon::tools {
namespace {

using nlohmann::json;

// Computed from the finite elements; NaN where there are too few.
struct Stats {
  double least = std::numeric_limits<double>::quiet_NaN(), most = least, mean = least, std = least;
  int64_t nans = 0, infinities = 0;
};

// Welford's sums, which do not lose digits where the mean is large.
Stats stats_of(const Tensor& tensor) {
  Stats stats;
  int64_t count = 0;
  double mean = 0, squares = 0;
  in_parts<double>(tensor, [&](const std::vector<double>& values) {
    for (const double value : values) {
      stats.nans += std::isnan(value);
      stats.infinities += std::isinf(value);
      if (!std::isfinite(value)) continue;
      stats.least = count ? std::min(stats.least, value) : value;
      stats.most = count ? std::max(stats.most, value) : value;
      const double from_mean = value - mean;
      mean += from_mean / static_cast<double>(++count);
      squares += from_mean * (value - mean);
    }
  });
  if (count > 0) stats.mean = mean;
  if (count > 1) stats.std = std::sqrt(squares / static_cast<double>(count - 1));
  return stats;
}

}  // namespace

void print_stats(const FileChoice& choice, const std::string& only, bool as_json) {
  const TensorFile file = open_all(choice);
  KeySide side{{}, file.wrappers};
  for (const FileTensor& tensor : file.tensors)
    side.tensors.push_back({tensor.key, tensor.shape, tensor.dtype});
  const Conversion taken(side, {.only = only});
  require_some(taken, only, file, choice.path);
  json list = json::array();
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "dtype", "shape", "min", "max", "mean", "std", "NaN", "inf"}};
  for (size_t i = 0; i < taken.side().tensors.size(); ++i) {
    const FileTensor& tensor = file.tensors[taken.position(i)];
    if (!tensor.fault.empty()) {
      rows.push_back({tensor.key, tensor.fault});
      list.push_back({{"key", tensor.key}, {"unreadable", tensor.fault}});
      continue;
    }
    const Stats stats = stats_of(file.read(taken.position(i)));
    rows.push_back({tensor.key, std::string(name_of(tensor.dtype)), tensor.shape.str(),
                    number_of(stats.least), number_of(stats.most), number_of(stats.mean),
                    number_of(stats.std), std::to_string(stats.nans),
                    std::to_string(stats.infinities)});
    json shape = json::array();
    for (int64_t dim : tensor.shape) shape.push_back(dim);
    list.push_back({{"key", tensor.key},
                    {"dtype", name_of(tensor.dtype)},
                    {"shape", shape},
                    {"min", json_number(stats.least)},
                    {"max", json_number(stats.most)},
                    {"mean", json_number(stats.mean)},
                    {"std", json_number(stats.std)},
                    {"nan", stats.nans},
                    {"inf", stats.infinities}});
  }
  file.verify_rest();
  if (as_json)
    print_json({{"format", name_of(file.format)}, {"tensors", std::move(list)}});
  else
    print_table(rows);
}

}  // namespace tenon::tools
