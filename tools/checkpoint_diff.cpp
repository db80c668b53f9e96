// In what two files of tensors differ.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <unordered_map>

#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/tensor.h>

#include "checkpoint_commands.h"

namespace tenon::tools {
namespace {

using nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How far two tensors of one shape are apart.
struct Distance {
  double absolute = 0, relative = 0;  // the largest ones
  int64_t elements = 0;               // that differ
};

// Adds a difference of two elements, if it counts.
void add(Distance& distance, double difference, double larger, bool counts) {
  if (!counts) return;
  ++distance.elements;
  distance.absolute = std::max(distance.absolute, difference);
  distance.relative = std::max(distance.relative, larger > 0 ? difference / larger : 0);
}

void compare(double a, double b, const DiffOptions& options, Distance& distance) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return;
  if (!std::isfinite(a) || !std::isfinite(b)) {
    ++distance.elements;
    distance.absolute = distance.relative = kInfinity;
    return;
  }
  const double difference = std::abs(a - b);
  add(distance, difference, std::max(std::abs(a), std::abs(b)),
      difference > options.atol + options.rtol * std::abs(b));
}
void compare(int64_t a, int64_t b, const DiffOptions& options, Distance& distance) {
  if (a == b) return;
  // The difference of any two fits 64 bits without a sign.
  const auto difference = static_cast<double>(static_cast<uint64_t>(std::max(a, b)) -
                                              static_cast<uint64_t>(std::min(a, b)));
  const double size_b = std::abs(static_cast<double>(b));
  add(distance, difference, std::max(std::abs(static_cast<double>(a)), size_b),
      difference > options.atol + options.rtol * size_b);
}

bool is_whole(DType dtype) {
  return dtype == DType::i64 || dtype == DType::i32 || dtype == DType::u8 ||
         dtype == DType::boolean;
}

template <class T>
Distance distance_of(const Tensor& a, const Tensor& b, const DiffOptions& options) {
  constexpr int64_t kElements = 1 << 20;
  const Tensor flat_a = a.reshape({a.numel()}), flat_b = b.reshape({b.numel()});
  Distance distance;
  for (int64_t at = 0; at < a.numel(); at += kElements) {
    const int64_t count = std::min(kElements, a.numel() - at);
    const auto x = flat_a.narrow(0, at, count).to_vector<T>(),
               y = flat_b.narrow(0, at, count).to_vector<T>();
    for (size_t i = 0; i < x.size(); ++i) compare(x[i], y[i], options, distance);
  }
  return distance;
}

// One line of the result.
struct Difference {
  std::string key, what;
  json details;
};

json described(const FileTensor& tensor) {
  json shape = json::array();
  for (int64_t dim : tensor.shape) shape.push_back(dim);
  return {{"shape", shape}, {"dtype", name_of(tensor.dtype)}, {"unreadable", tensor.fault}};
}

// Returns what differs, or an empty text.
std::string difference_of(const TensorFile& a, size_t i, const TensorFile& b, size_t j,
                          const DiffOptions& options, json& details) {
  const FileTensor &left = a.tensors[i], &right = b.tensors[j];
  std::string what;
  auto say = [&](const std::string& part) { what += (what.empty() ? "" : "; ") + part; };
  if (left.dtype != right.dtype)
    say(fmt::format("dtype {} and {}", name_of(left.dtype), name_of(right.dtype)));
  if (left.shape != right.shape) {
    say(fmt::format("shape {} and {}", left.shape.str(), right.shape.str()));
    return what;
  }
  const Tensor x = a.read(i), y = b.read(j);
  const Distance distance = is_whole(left.dtype) && is_whole(right.dtype)
                                ? distance_of<int64_t>(x, y, options)
                                : distance_of<double>(x, y, options);
  details["elements"] = distance.elements;
  details["absolute"] = json_number(distance.absolute);
  details["relative"] = json_number(distance.relative);
  if (distance.elements > 0)
    say(fmt::format("{} of {} values, by at most {} (relative {})", distance.elements, x.numel(),
                    number_of(distance.absolute), number_of(distance.relative)));
  return what;
}

std::vector<Difference> differences(const TensorFile& a, const TensorFile& b,
                                    const DiffOptions& options) {
  std::vector<Difference> found;
  std::unordered_map<std::string_view, size_t> in_b;
  for (size_t j = 0; j < b.tensors.size(); ++j) in_b.emplace(b.tensors[j].key, j);
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const std::string& key = a.tensors[i].key;
    const auto other = in_b.find(key);
    if (other == in_b.end()) {
      found.push_back(
          {key, "only in the first file", {{"a", described(a.tensors[i])}, {"b", nullptr}}});
      continue;
    }
    json details = {{"a", described(a.tensors[i])}, {"b", described(b.tensors[other->second])}};
    const std::string what = difference_of(a, i, b, other->second, options, details);
    in_b.erase(other);
    if (!what.empty()) found.push_back({key, what, std::move(details)});
  }
  for (const FileTensor& tensor : b.tensors)
    if (in_b.contains(tensor.key))
      found.push_back(
          {tensor.key, "only in the second file", {{"a", nullptr}, {"b", described(tensor)}}});
  return found;
}

}  // namespace

bool diff_checkpoints(const DiffOptions& options) {
  const TensorFile a = open_all(options.a), b = open_all(options.b);
  const std::vector<Difference> found = differences(a, b, options);
  a.verify_rest();
  b.verify_rest();
  if (options.as_json) {
    json list = json::array();
    for (const Difference& difference : found) {
      json line = {{"key", difference.key}, {"what", difference.what}};
      line.update(difference.details);
      list.push_back(std::move(line));
    }
    print_json({{"equal", found.empty()},
                {"tensors", {{"a", a.tensors.size()}, {"b", b.tensors.size()}}},
                {"differences", std::move(list)}});
    return found.empty();
  }
  std::vector<std::vector<std::string>> rows;
  for (const Difference& difference : found) rows.push_back({difference.key, difference.what});
  print_table(rows);
  if (found.empty())
    std::cout << "equal: " << a.tensors.size() << " tensors\n";
  else
    std::cout << "different: " << found.size() << " of " << a.tensors.size() << " and "
              << b.tensors.size() << " tensors\n";
  return found.empty();
}

}  // namespace tenon::tools
