#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

std::string repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  double size = std::abs(value);
  auto format = size != 0 && (size < 1e-4 || size >= 1e16) ? std::chars_format::scientific
                                                           : std::chars_format::fixed;
  char text[64];
  auto end = std::to_chars(text, text + sizeof text, value, format).ptr;
  std::string result(text, end);
  if (result.find_first_of(".e") == result.npos) result += ".0";
  return result;
}

std::string repr(const Single& size) { return fmt::format("{}", size.length); }
std::string repr(const Pair& size) {
  return size.numbers == 1 ? fmt::format("{}", size.height) : size.shape().str();
}
std::string repr(const Triple& size) {
  return size.numbers == 1 ? fmt::format("{}", size.depth) : size.shape().str();
}

void require(bool ok, const char* layer, const char* what, double value, const char* wanted) {
  if (ok) return;
  std::string text = repr(value);
  if (text.size() > 2 && text.ends_with(".0")) text.resize(text.size() - 2);
  throw ValueError(fmt::format("{}: {} is {}; it has to be {}", layer, what, text, wanted));
}

void require_not_negative(double value, const char* layer, const char* what) {
  require(value >= 0 && std::isfinite(value), layer, what, value, "finite and at least 0");
}

namespace {

void require_all(const Shape& numbers, const std::string& text, int64_t least, const char* layer,
                 const char* what) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  constexpr const char* subjects[] = {"it has", "both numbers have", "all numbers have"};
  const auto [smallest, largest] = std::minmax_element(numbers.begin(), numbers.end());
  const bool small = *smallest < least;
  if (!small && *largest <= most) return;
  throw ValueError(fmt::format("{}: {} is {}; {} to be at {} {}", layer, what, text,
                               subjects[numbers.size() - 1], small ? "least" : "most",
                               small ? least : most));
}

}  // namespace

void require_size(const Single& size, int64_t least, const char* layer, const char* what) {
  require_all(size.shape(), repr(size), least, layer, what);
}
void require_size(const Pair& size, int64_t least, const char* layer, const char* what) {
  require_all(size.shape(), repr(size), least, layer, what);
}
void require_size(const Triple& size, int64_t least, const char* layer, const char* what) {
  require_all(size.shape(), repr(size), least, layer, what);
}

}  // namespace tenon::nn
