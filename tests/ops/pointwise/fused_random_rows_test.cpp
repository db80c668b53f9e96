// Random programs of `fused` that reduce rows have the bits of their members run one by one.
#include <random>
#include <set>

#include <tenon/conformance/fused.h>

#include "fuzz.h"
#include "ops/check.h"
#include "ops/pointwise/fused_rows.h"

BOOST_AUTO_TEST_SUITE(pointwise)

using namespace tenon;
using namespace tenon::test;
using conformance::FusedCase;

namespace {

// A program that is drawn, of values that are whole or one for each row.
class DrawnRows {
 public:
  explicit DrawnRows(uint64_t seed) : random_(seed) {}

  void run() {
    static const Shape shapes[] = {{7},        {1, 7},       {31},      {3, 31},   {2, 3, 33},
                                   {70, 3},    {2, 300},     {65, 67},  {5000},    {40, 1, 9},
                                   {3, 17, 5}, {2, 3, 4, 5}, {6, 1200}, {130, 64}, {5, 1},
                                   {300, 2},   {0, 4},       {2, 40000}};
    shape_ = shapes[below(std::size(shapes))];
    add_input(shape_, true);
    for (size_t i = below(4); i-- > 0;) add_input(drawn_part(), false);
    for (size_t i = 2 + below(10); i-- > 0;) add_step();
    // Every input is read, and one reduction at least is there.
    const size_t inputs = num_inputs_;
    auto last = case_.of("add", {as(f32, values_[0].value), as(f32, values_.back().value)});
    for (size_t i = 1; i < inputs; ++i) last = case_.of("add", {last, as(f32, values_[i].value)});
    case_.out(last);
    case_.out(case_.of("sum", {last}));
    size_t outputs = 2;
    for (auto& v : values_)
      if (v.leads && v.value.kind == FusedValue::step && outputs < 6 && below(3) == 0) {
        case_.out(v.value, overwritten_with(v));
        ++outputs;
      }
    case_.run();
  }

 private:
  // `leads`: it has all dimensions but the last. A value that is not a row value has that, too.
  struct Value {
    FusedValue value;
    DType dtype;
    bool leads, row_value, may_change = false;
  };

  size_t below(size_t n) { return random_() % n; }

  // With the last dimension, or with 1 there; others may be missing.
  Shape drawn_part() {
    Shape part = shape_;
    const bool leads = below(2) == 0;
    for (size_t d = 0; d + 1 < part.size(); ++d)
      if (!leads && below(2) == 0) part[d] = 1;
    if (below(2) == 0) part[part.size() - 1] = 1;
    return part;
  }

  void add_input(const Shape& shape, bool whole) {
    static const DType dtypes[] = {f32, f32, f32, f64, f16, bf16, i64, u8};
    const DType dtype = dtypes[below(std::size(dtypes))];
    const bool oddly = below(3) == 0;
    const size_t layout = below(5), n = shape.size();
    Tensor x;
    if (layout == 0 && n >= 2) {
      Shape swapped = shape;
      std::swap(swapped[n - 1], swapped[n - 2]);
      x = drawn_rows(swapped, dtype, random_(), oddly).transpose(-1, -2);
    } else if (layout == 1) {
      Shape wide = shape;
      wide[n - 1] = 2 * shape[n - 1] + 1;
      x = drawn_rows(wide, dtype, random_(), oddly)
              .slice(static_cast<int64_t>(n) - 1, 1, wide[n - 1], 2);
    } else {
      x = drawn_rows(shape, dtype, random_(), oddly);
    }
    bool leads = true;
    for (size_t d = 0; d + 1 < n; ++d) leads = leads && shape[d] == shape_[d];
    const bool row_value = shape[n - 1] == 1 && shape_[n - 1] != 1;
    bool expanded = false;
    if (!whole && !leads && below(2) == 0) {
      Shape to = shape_;
      to[n - 1] = shape[n - 1];
      x = x.expand(to);
      leads = expanded = true;
    }
    values_.push_back({case_.in(x), dtype, leads, row_value, leads && !expanded});
    ++num_inputs_;
  }

  FusedValue as(DType dtype, FusedValue value) {
    return case_.dtype_of(value) == dtype ? value : case_.cast(value, dtype);
  }
  void add(FusedValue value, bool leads, bool row_value) {
    values_.push_back({value, case_.dtype_of(value), leads, row_value});
  }

  void add_step() {
    const Value a = values_[below(values_.size())], b = values_[below(values_.size())];
    const size_t kind = below(7);
    if (kind <= 2 && !a.row_value && !made_of_reductions(a)) {
      const char* op = kReductions[below(std::size(kReductions))];
      if (reduces_dtype(op, a.dtype)) return add_reduced(op, a);
    }
    if (kind == 3) {
      static const DType dtypes[] = {f32, f64, bf16, i64};
      return add(case_.cast(a.value, dtypes[below(4)]), a.leads, a.row_value);
    }
    if (is_floating_point(a.dtype) && kind <= 4) {
      static const char* const unary[] = {"neg", "abs", "square", "exp", "rsqrt", "tanh"};
      return add(case_.of(unary[below(6)], {a.value}), a.leads, a.row_value);
    }
    static const char* const binary[] = {"add", "sub", "mul", "maximum", "minimum"};
    const FusedValue made = case_.of(binary[below(5)], {a.value, as(a.dtype, b.value)});
    if (made_of_reductions(a) && made_of_reductions(b)) of_reductions_.insert(made.index);
    add(made, a.leads || b.leads, a.row_value && b.row_value);
  }
  void add_reduced(const char* op, const Value& a) {
    const FusedValue made = reduced(case_, op, a.value);
    of_reductions_.insert(made.index);
    add(made, a.leads, shape_[shape_.size() - 1] != 1);
  }
  // With rows of one element, row values look like whole ones, but cannot be reduced again.
  bool made_of_reductions(const Value& v) const {
    return v.value.kind == FusedValue::step &&
           (of_reductions_.count(v.value.index) > 0 || shape_[shape_.size() - 1] == 1);
  }

  FusedValue overwritten_with(const Value& result) {
    for (auto& v : values_)
      if (v.may_change && v.dtype == result.dtype && v.row_value == result.row_value &&
          below(2) == 0) {
        v.may_change = false;
        return v.value;
      }
    return {};
  }

  std::mt19937_64 random_;
  Shape shape_;
  FusedCase case_;
  std::vector<Value> values_;
  std::set<uint32_t> of_reductions_;
  size_t num_inputs_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(random_programs_that_reduce_have_the_bits_of_their_members) {
  const Deadline deadline;
  each_point(fuzz_long() ? 100'000'000 : 400, 400, deadline, [](int64_t n) {
    if (!fuzz_long() && n > 400) return false;
    try {
      DrawnRows(static_cast<uint64_t>(n)).run();
    } catch (const std::exception& e) {
      BOOST_ERROR("program " << n << ": " << e.what());
    }
    return true;
  });
}

BOOST_AUTO_TEST_SUITE_END()
