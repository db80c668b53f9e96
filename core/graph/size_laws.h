// How the numbers of a call follow from the sizes of its arguments, as far as calls of some sizes
// tell.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <tenon/core/dispatch/attrs.h>

namespace tenon::graph {

// The sizes of a call: of all dimensions of its arguments that may differ from call to call.
using Sizes = std::vector<int64_t>;

// Laws say what a number is in a call of any sizes. A monomial is one of SizeSymbols::values; with
// kConstant in its place, all calls have the same number.
constexpr uint32_t kConstant = ~uint32_t{0};
// What a call says of a number that means nothing in it.
constexpr int64_t kAnyNumber = std::numeric_limits<int64_t>::min();
// (base + factor * monomial + second_factor * second) / divisor, where that is whole; the second is
// there only where nothing is found without it
struct IntegerLaw {
  int64_t base = 0;
  uint32_t monomial = kConstant, second = kConstant;
  int64_t factor = 0, second_factor = 0, divisor = 1;
};
// factor * monomial, factor / (multiple * monomial), as means have it, or factor / (monomial - 1),
// as variances do
struct RealLaw {
  enum class Form : uint8_t { times, over, over_one_less };
  uint32_t monomial = kConstant;
  double factor = 0;
  Form form = Form::times;
  int64_t multiple = 1;
};

// What differs among the sizes of several calls. Dimensions of one size in each call are one
// symbol; those of one size in all calls are none. Laws are sought among the products of symbols
// with powers up to two.
class SizeSymbols {
 public:
  static constexpr size_t kMaxSymbols = 3;

  // Needs one call at least, and the same number of sizes for all.
  explicit SizeSymbols(std::vector<Sizes> calls);

  size_t count() const { return first_.size(); }
  // Whether there are as many calls as it takes to tell laws apart and to test them.
  bool enough() const;
  const std::vector<Sizes>& calls() const { return calls_; }
  // Returns the products for these sizes; nothing if sizes differ here that are equal in all calls,
  // or if there are more symbols than can be told apart.
  std::optional<std::vector<int64_t>> values(const Sizes& sizes) const;

  // What is known of a number: one law fits, none does, or several do.
  enum class Known { one, none, several };
  // `numbers` are those of the calls; not all of them are kAnyNumber.
  Known find(std::span<const int64_t> numbers, IntegerLaw& law) const;
  Known find(std::span<const double> numbers, RealLaw& law) const;

 private:
  Known find_line(std::span<const int64_t> numbers, IntegerLaw& law) const;
  Known find_plane(std::span<const int64_t> numbers, IntegerLaw& law) const;
  SizeSymbols of_known(std::span<const int64_t> numbers) const;
  std::vector<int64_t> monomial(uint32_t m) const;

  std::vector<Sizes> calls_;
  std::vector<size_t> symbol_;                // of each size; count() for what never differs
  std::vector<size_t> first_;                 // of each symbol, the first size
  std::vector<std::vector<int64_t>> values_;  // of each call
};

// Returns the number of a call; nothing if it is not whole, leaves int64, or is infinite.
std::optional<int64_t> follow(const IntegerLaw& law, std::span<const int64_t> values);
std::optional<double> follow(const RealLaw& law, std::span<const int64_t> values);

}  // namespace tenon::graph
