#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/graph/size_laws.h>

namespace tenon::graph {

namespace {

// The products of the symbols with powers of 0, 1 and 2, without the empty one; 0 for those that
// leave int64, by which nothing can be told.
std::vector<int64_t> products_of(std::span<const int64_t> symbols) {
  std::vector<int64_t> products = {1};
  for (const int64_t symbol : symbols) {
    const size_t count = products.size();
    for (int power = 1; power <= 2; ++power)
      for (size_t i = 0; i < count; ++i) {
        int64_t product = products[products.size() - count];
        if (__builtin_mul_overflow(product, symbol, &product)) product = 0;
        products.push_back(product);
      }
  }
  products.erase(products.begin());
  return products;
}

template <class T>
bool all_equal(std::span<const T> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [&](const T& number) {
    return std::bit_cast<uint64_t>(number) == std::bit_cast<uint64_t>(numbers[0]);
  });
}

}  // namespace

SizeSymbols::SizeSymbols(std::vector<Sizes> calls) : calls_(std::move(calls)) {
  const size_t width = calls_[0].size();
  const auto same = [&](size_t a, size_t b) {
    return std::all_of(calls_.begin(), calls_.end(), [&](auto& c) { return c[a] == c[b]; });
  };
  const auto differs = [&](size_t a) {
    return std::any_of(calls_.begin(), calls_.end(), [&](auto& c) { return c[a] != calls_[0][a]; });
  };
  constexpr size_t never = ~size_t{0};
  symbol_.assign(width, never);
  for (size_t i = 0; i < width; ++i) {
    if (!differs(i)) continue;
    const auto known =
        std::find_if(first_.begin(), first_.end(), [&](size_t other) { return same(other, i); });
    symbol_[i] = static_cast<size_t>(known - first_.begin());
    if (known == first_.end()) first_.push_back(i);
  }
  if (first_.size() > kMaxSymbols) return;
  for (auto& call : calls_) values_.push_back(*values(call));
}

// Two points lie on a line of any product; a product that is the same in all calls tells nothing.
bool SizeSymbols::enough() const {
  if (first_.empty() || values_.empty() || calls_.size() < first_.size() + 2) return false;
  for (size_t m = 0; m < values_[0].size(); ++m)
    if (std::all_of(values_.begin(), values_.end(), [&](auto& v) { return v[m] == values_[0][m]; }))
      return false;
  return true;
}

std::optional<std::vector<int64_t>> SizeSymbols::values(const Sizes& sizes) const {
  if (sizes.size() != symbol_.size() || first_.size() > kMaxSymbols) return std::nullopt;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool never_differs = symbol_[i] >= first_.size();
    if (sizes[i] != (never_differs ? calls_[0][i] : sizes[first_[symbol_[i]]])) return std::nullopt;
  }
  Sizes symbols;
  for (const size_t at : first_) symbols.push_back(sizes[at]);
  return products_of(symbols);
}

namespace {

using Wide = __int128;

bool as_integer(Wide number, int64_t& as) {
  as = static_cast<int64_t>(number);
  return as == number;
}

// Whether the law holds for all numbers.
bool holds(const IntegerLaw& law, std::span<const int64_t> x, std::span<const int64_t> z,
           std::span<const int64_t> numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    Wide number = Wide{law.base} + Wide{law.factor} * x[i];
    if (law.second != kConstant) number += Wide{law.second_factor} * z[i];
    if (number != Wide{law.divisor} * numbers[i]) return false;
  }
  return true;
}

// The line through all points, if there is one.
bool fits_line(std::span<const int64_t> x, std::span<const int64_t> y, IntegerLaw& law) {
  const auto other = std::find_if(x.begin(), x.end(), [&](int64_t value) { return value != x[0]; });
  if (other == x.end()) return false;
  const auto at = static_cast<size_t>(other - x.begin());
  int64_t rise, run;
  if (!as_integer(Wide{y[at]} - y[0], rise) || !as_integer(Wide{x[at]} - x[0], run) ||
      rise == std::numeric_limits<int64_t>::min())
    return false;
  const int64_t common = std::gcd(rise, run) * (run < 0 ? -1 : 1);
  law.factor = rise / common;
  law.divisor = run / common;
  return as_integer(Wide{law.divisor} * y[0] - Wide{law.factor} * x[0], law.base) &&
         holds(law, x, {}, y);
}

// The plane through all points.
bool fits_plane(std::span<const int64_t> x, std::span<const int64_t> z, std::span<const int64_t> y,
                IntegerLaw& law) {
  const auto step = [](std::span<const int64_t> of, size_t i) { return Wide{of[i]} - of[0]; };
  const auto is_small = [](Wide number) {
    return number < Wide{1} << 62 && -number < Wide{1} << 62;
  };
  for (size_t i = 1; i < y.size(); ++i)
    for (size_t k = i + 1; k < y.size(); ++k) {
      for (auto& of : {x, z, y})
        if (!is_small(step(of, i)) || !is_small(step(of, k))) return false;
      const Wide area = step(x, i) * step(z, k) - step(x, k) * step(z, i);
      if (area == 0) continue;
      const Wide first = step(y, i) * step(z, k) - step(y, k) * step(z, i),
                 second = step(x, i) * step(y, k) - step(x, k) * step(y, i);
      return first % area == 0 && second % area == 0 && as_integer(first / area, law.factor) &&
             as_integer(second / area, law.second_factor) && law.factor && law.second_factor &&
             as_integer(y[0] - Wide{law.factor} * x[0] - Wide{law.second_factor} * z[0],
                        law.base) &&
             holds(law, x, z, y);
    }
  return false;
}

double divisor(RealLaw::Form form, int64_t x) {
  return static_cast<double>(form == RealLaw::Form::over_one_less ? x - 1 : x);
}
// Not a number where the divisor leaves int64.
double apply(const RealLaw& law, int64_t x) {
  if (law.multiple != 1 && __builtin_mul_overflow(x, law.multiple, &x))
    return std::numeric_limits<double>::quiet_NaN();
  const double size = divisor(law.form, x);
  return law.form == RealLaw::Form::times ? law.factor * size : law.factor / size;
}

bool holds(const RealLaw& law, std::span<const int64_t> x, std::span<const double> numbers) {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (apply(law, x[i]) != numbers[i]) return false;
  return true;
}

// 1 or 2 divided by a multiple of each size, as in the gradient of a mean over all elements. It
// comes before 0.1 / size, which has the bits of 1 / (10 size) for most sizes and not for all.
bool fits_share(std::span<const int64_t> x, std::span<const double> y, RealLaw& law) {
  for (const double parts : {1.0, 2.0}) {
    const double multiple = std::round(parts / std::abs(y[0]) / divisor(law.form, x[0]));
    if (!(multiple > 1 && multiple < 0x1p52)) continue;
    law.factor = std::copysign(parts, y[0]);
    law.multiple = static_cast<int64_t>(multiple);
    if (holds(law, x, y)) return true;
  }
  law.multiple = 1;
  return false;
}

// A factor by which each number follows, bit for bit. That which the function wrote is sought,
// since what one gets from the rounded numbers may be beside it: a number of few digits, or else
// the only one of those around that does.
bool fits_factor(std::span<const int64_t> x, std::span<const double> y, RealLaw& law) {
  if (law.form == RealLaw::Form::over && fits_share(x, y, law)) return true;
  const double size = divisor(law.form, x[0]);
  const double about = law.form == RealLaw::Form::times ? y[0] / size : y[0] * size;
  const auto fits = [&](double factor) {
    law.factor = factor;
    return holds(law, x, y) && std::isnormal(factor);
  };
  const double few_digits = std::strtod(fmt::format("{:.15g}", about).c_str(), nullptr);
  for (const double simple :
       {std::round(about), static_cast<double>(static_cast<float>(about)), few_digits})
    if (fits(simple)) return true;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double only = 0;
  int found = 0;
  for (const double near :
       {std::nextafter(about, -infinity), about, std::nextafter(about, infinity)})
    if (fits(near)) only = near, ++found;
  law.factor = only;
  return found == 1;
}

}  // namespace

// A number for each call; none if one of them left int64.
std::vector<int64_t> SizeSymbols::monomial(uint32_t m) const {
  std::vector<int64_t> numbers;
  for (auto& call : values_) numbers.push_back(call[m]);
  if (std::find(numbers.begin(), numbers.end(), 0) != numbers.end()) numbers.clear();
  return numbers;
}

// Without the calls in which the number means nothing.
SizeSymbols SizeSymbols::of_known(std::span<const int64_t> numbers) const {
  std::vector<Sizes> calls;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != kAnyNumber) calls.push_back(calls_[i]);
  return SizeSymbols(std::move(calls));
}

SizeSymbols::Known SizeSymbols::find(std::span<const int64_t> numbers, IntegerLaw& law) const {
  if (std::find(numbers.begin(), numbers.end(), kAnyNumber) == numbers.end())
    return find_line(numbers, law);
  const SizeSymbols known = of_known(numbers);
  std::vector<int64_t> told(numbers.begin(), numbers.end());
  std::erase(told, kAnyNumber);
  // Other sizes may have been symbols there, or none.
  if (!known.enough() || known.symbol_ != symbol_) return Known::several;
  return known.find_line(told, law);
}

SizeSymbols::Known SizeSymbols::find_line(std::span<const int64_t> numbers, IntegerLaw& law) const {
  law = {.base = numbers[0]};
  if (all_equal(numbers)) return Known::one;
  if (values_.empty()) return Known::none;
  size_t found = 0;
  for (uint32_t m = 0; m < values_[0].size(); ++m) {
    IntegerLaw line{.monomial = m};
    const auto x = monomial(m);
    if (!x.empty() && fits_line(x, numbers, line) && found++ == 0) law = line;
  }
  return found == 1 ? Known::one : found > 1 ? Known::several : find_plane(numbers, law);
}

// A plane goes through any three points, and one call has to test it.
SizeSymbols::Known SizeSymbols::find_plane(std::span<const int64_t> numbers,
                                           IntegerLaw& law) const {
  if (calls_.size() < first_.size() + 3) return Known::several;
  size_t found = 0;
  for (uint32_t m = 0; m < values_[0].size(); ++m) {
    const auto x = monomial(m);
    for (uint32_t n = m + 1; n < values_[0].size(); ++n) {
      IntegerLaw plane{.monomial = m, .second = n};
      const auto z = monomial(n);
      if (!x.empty() && !z.empty() && fits_plane(x, z, numbers, plane) && found++ == 0) law = plane;
    }
  }
  return found == 1 ? Known::one : found == 0 ? Known::none : Known::several;
}

SizeSymbols::Known SizeSymbols::find(std::span<const double> numbers, RealLaw& law) const {
  law = {.factor = numbers[0]};
  if (all_equal(numbers)) return Known::one;
  if (values_.empty()) return Known::none;
  size_t found = 0;
  for (uint32_t m = 0; m < values_[0].size(); ++m)
    for (const auto form :
         {RealLaw::Form::times, RealLaw::Form::over, RealLaw::Form::over_one_less}) {
      const auto x = monomial(m);
      RealLaw line{.monomial = m, .form = form};
      if (!x.empty() && fits_factor(x, numbers, line) && found++ == 0) law = line;
    }
  return found == 1 ? Known::one : found == 0 ? Known::none : Known::several;
}

std::optional<int64_t> follow(const IntegerLaw& law, std::span<const int64_t> values) {
  Wide number = law.base;
  for (const auto& [m, factor] :
       {std::pair{law.monomial, law.factor}, {law.second, law.second_factor}})
    if (m != kConstant) {
      if (values[m] == 0) return std::nullopt;
      number += Wide{factor} * values[m];
    }
  int64_t followed;
  if (number % law.divisor != 0) return std::nullopt;
  return as_integer(number / law.divisor, followed) ? std::optional(followed) : std::nullopt;
}

std::optional<double> follow(const RealLaw& law, std::span<const int64_t> values) {
  if (law.monomial == kConstant) return law.factor;
  if (values[law.monomial] == 0) return std::nullopt;
  const double number = apply(law, values[law.monomial]);
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

}  // namespace tenon::graph
