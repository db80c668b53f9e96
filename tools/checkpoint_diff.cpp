// In what two files of tensors differ.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/core.h>

#include <tenon/core/tensor.h>
#include <tenon/serialization/checkpoint.h>

#include "checkpoint_commands.h"

namespace tenon::tools {
namespace {

using nlohmann::json;

constexpr std::string_view kValues = "/@values";
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

// Whether these bytes are the numbers and texts of a part of a training run, as JSON.
bool are_values(const TensorFile& file, const FileTensor& tensor) {
  return file.native && tensor.key.starts_with('@') && tensor.key.ends_with(kValues);
}

// The positions of the tensors that are compared as such, by name.
std::unordered_map<std::string_view, size_t> tensors_of(const TensorFile& file) {
  std::unordered_map<std::string_view, size_t> positions;
  for (size_t i = 0; i < file.tensors.size(); ++i)
    if (!are_values(file, file.tensors[i])) positions.emplace(file.tensors[i].key, i);
  return positions;
}

// The bytes of the values of all parts, by the name of the part: "@optimizer".
std::map<std::string, std::vector<uint8_t>> values_of(const TensorFile& file) {
  std::map<std::string, std::vector<uint8_t>> values;
  for (size_t i = 0; i < file.tensors.size(); ++i)
    if (const std::string& key = file.tensors[i].key; are_values(file, file.tensors[i]))
      values[key.substr(0, key.size() - kValues.size())] = file.read(i).to_vector<uint8_t>();
  return values;
}

std::vector<Difference> differences(const TensorFile& a, const TensorFile& b,
                                    const DiffOptions& options) {
  std::vector<Difference> found;
  std::unordered_map<std::string_view, size_t> in_b = tensors_of(b);
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    if (are_values(a, a.tensors[i])) continue;
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

// Returns a number without loss: whole ones have up to 64 bits, which a double does not hold, and
// "7" and "7.0" are equal.
long double exact(const CheckpointValue& value) {
  const std::string text = value.str();
  const bool negative = text.starts_with('-');
  uint64_t whole = 0;
  const auto read = std::from_chars(text.data() + negative, text.data() + text.size(), whole);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return value.number();
  return negative ? -static_cast<long double>(whole) : static_cast<long double>(whole);
}

bool are_equal(const CheckpointValue& a, const CheckpointValue& b, const DiffOptions& options) {
  if (!a.is_number() || !b.is_number()) return a.str() == b.str();
  const long double x = exact(a), y = exact(b);
  if (x == y || (std::isnan(x) && std::isnan(y))) return true;
  return std::isfinite(x) && std::isfinite(y) &&
         std::abs(x - y) <= options.atol + options.rtol * std::abs(y);
}

// Adds in what the values of one part differ.
void compare(const std::string& part, const CheckpointValues& a, const CheckpointValues& b,
             const DiffOptions& options, std::vector<Difference>& found) {
  auto say = [&](const std::string& name, const CheckpointValue* x, const CheckpointValue* y) {
    const std::string what = x && y ? fmt::format("{} and {}", x->str(), y->str())
                             : x    ? fmt::format("{}, only in the first file", x->str())
                                    : fmt::format("{}, only in the second file", y->str());
    found.push_back({part + " " + name,
                     what,
                     {{"part", part.substr(1)},
                      {"name", name},
                      {"a", x ? json_value(*x) : json()},
                      {"b", y ? json_value(*y) : json()}}});
  };
  for (const auto& [name, value] : a) {
    const CheckpointValue* other = b.find(name);
    if (!other || !are_equal(value, *other, options)) say(name, &value, other);
  }
  for (const auto& [name, value] : b)
    if (!a.contains(name)) say(name, nullptr, &value);
}

struct DifferentValues {
  std::vector<Difference> found;
  size_t parts = 0;  // that have values in one of the files
};

// Compares the numbers and texts of the parts by name. Where the bytes are equal, so are they.
DifferentValues different_values(const TensorFile& a, const TensorFile& b,
                                 const DiffOptions& options) {
  const auto bytes_a = values_of(a), bytes_b = values_of(b);
  std::map<std::string, CheckpointValues> in_a, in_b;
  const std::set<std::string> parts = [&] {
    std::set<std::string> names;
    for (const auto& [part, bytes] : bytes_a) names.insert(part);
    for (const auto& [part, bytes] : bytes_b) names.insert(part);
    return names;
  }();
  DifferentValues values{{}, parts.size()};
  if (bytes_a == bytes_b) return values;
  auto read = [](const FileChoice& choice, std::map<std::string, CheckpointValues>& to) {
    const CheckpointInfo info = inspect(choice.path, choice.section, choice.verify);
    for (const CheckpointPartInfo& part : info.parts)
      if (part.known) to.emplace("@" + part.name, part.values);
  };
  if (!bytes_a.empty()) read(options.a, in_a);
  if (!bytes_b.empty()) read(options.b, in_b);
  for (const std::string& part : parts) {
    const auto x = bytes_a.find(part), y = bytes_b.find(part);
    if (x != bytes_a.end() && y != bytes_b.end() && x->second == y->second) continue;
    if (in_a.contains(part) || in_b.contains(part))
      compare(part, in_a[part], in_b[part], options, values.found);
    else  // of a part of a later release nobody knows what the bytes mean
      values.found.push_back({part + std::string(kValues),
                              "values that this version of Tenon does "
                              "not know",
                              json::object()});
  }
  return values;
}

}  // namespace

bool diff_checkpoints(const DiffOptions& options) {
  const TensorFile a = open_all(options.a), b = open_all(options.b);
  std::vector<Difference> found = differences(a, b, options);
  const DifferentValues values = different_values(a, b, options);
  const size_t tensors = found.size(), in_a = tensors_of(a).size(), in_b = tensors_of(b).size();
  found.insert(found.end(), values.found.begin(), values.found.end());
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
                {"tensors", {{"a", in_a}, {"b", in_b}}},
                {"differences", std::move(list)}});
    return found.empty();
  }
  std::vector<std::vector<std::string>> rows;
  for (const Difference& difference : found) rows.push_back({difference.key, difference.what});
  print_table(rows);
  if (found.empty()) {
    std::cout << "equal: " << in_a << " tensors";
    if (values.parts)
      std::cout << " and the values of " << values.parts
                << (values.parts == 1 ? " part" : " parts");
  } else {
    std::cout << "different: " << tensors << " of " << in_a << " and " << in_b << " tensors";
    if (!values.found.empty())
      std::cout << ", and " << values.found.size() << " values of the other parts";
  }
  std::cout << "\n";
  return found.empty();
}

}  // namespace tenon::tools
