// Reductions of the cuda plugin against those of the cpu plugin: every set of dimensions, rows and
// columns, short and cut into parts, and whatever way the input lies in memory.
#include <tenon/core/ops/reduction.h>

#include "cuda/agree.h"

using namespace tenon;
using namespace tenon::test;

BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

using Reduce = std::function<Tensor(const Tensor&, const Shape&)>;

struct Reducer {
  const char* name;
  Reduce reduce;
  std::vector<DType> dtypes;
  bool awkward;     // infinities and NaN do not depend on the order
  bool of_nothing;  // defined for no elements
};

const std::vector<DType> kNumbers = {DType::f32, DType::f64, DType::i64, DType::i32, DType::u8};
const std::vector<DType> kFloats = {DType::f32, DType::f64};

std::vector<Reducer> reducers() {
  return {{"sum",
           [](auto& x, auto& d) { return sum(x, d); },
           {DType::f32, DType::f64, DType::i64, DType::i32, DType::u8, DType::boolean},
           true,
           true},
          {"mean", [](auto& x, auto& d) { return mean(x, d); }, kFloats, true, true},
          {"prod", [](auto& x, auto& d) { return prod(x, d); }, kNumbers, false, true},
          {"amax", [](auto& x, auto& d) { return amax(x, d); }, kNumbers, true, false},
          {"amin", [](auto& x, auto& d) { return amin(x, d); }, kNumbers, true, false},
          {"var", [](auto& x, auto& d) { return var(x, d); }, kFloats, true, true},
          {"var, correction 0", [](auto& x, auto& d) { return var(x, d, 0); }, kFloats, true, true},
          {"any", [](auto& x, auto& d) { return any(x, d); }, {DType::boolean}, true, true},
          {"all", [](auto& x, auto& d) { return all(x, d); }, {DType::boolean}, true, true}};
}

// Every set of dimensions but none; bit d of the number stands for dimension d.
std::vector<Shape> sets_of_dims(const Shape& shape) {
  if (shape.empty()) return {Shape{}};
  std::vector<Shape> all;
  for (int set = 1; set < 1 << shape.size(); ++set) {
    Shape dims;
    for (size_t d = 0; d < shape.size(); ++d)
      if (set >> d & 1) dims.push_back(static_cast<int64_t>(d));
    all.push_back(dims);
  }
  return all;
}

// Numbers whose product stays a number.
Tensor near_one(const Tensor& x) { return is_floating_point(x.dtype()) ? x * 0.01 + 1.0 : x; }

void compare(const Reducer& r, DType dtype, const Shape& shape, const Lie& lie) {
  Both x = random_both(shape, dtype, lie, r.awkward);
  if (!r.awkward) x = {near_one(x.cpu), near_one(x.gpu)};
  for (const Shape& dims : sets_of_dims(shape)) {
    int64_t count = 1;
    for (int64_t d : dims) count *= shape[static_cast<size_t>(d)];
    if (count == 0 && !r.of_nothing) continue;
    require_same(r.reduce(x.gpu, dims), r.reduce(x.cpu, dims),
                 describe(r.name, dtype, shape, lie.name + ", dims " + dims.str()),
                 tolerance(dtype));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_set_of_dimensions) {
  const std::vector<Shape> shapes = {
      {},     {1},       {7},          {0},           {3, 0, 2},      {5, 3},
      {1, 8}, {2, 3, 4}, {4, 1, 6, 5}, {3, 2, 8, 12}, {2, 3, 2, 2, 3}};
  for (auto& r : reducers())
    for (DType dtype : r.dtypes)
      for (auto& shape : shapes) compare(r, dtype, shape, lies()[0]);
}

BOOST_AUTO_TEST_CASE(any_strides) {
  for (auto& r : reducers())
    for (DType dtype : {r.dtypes.front(), r.dtypes.back()})
      for (auto& lie : lies())
        for (const Shape& shape : {Shape{6, 10, 8}, Shape{33, 20}}) compare(r, dtype, shape, lie);
}

BOOST_AUTO_TEST_CASE(long_rows_and_columns) {
  // Groups of lanes, blocks, and outputs that several blocks share; with and without a rest behind
  // whole packs.
  const std::vector<Shape> shapes = {{3, 31},   {20, 129}, {2, 4097}, {20000},    {20001},
                                     {5000, 3}, {5000, 4}, {300, 40}, {2, 900, 8}};
  for (auto& r : reducers())
    for (auto& shape : shapes) compare(r, r.dtypes.front(), shape, lies()[pick(0, 1)]);
}

BOOST_AUTO_TEST_CASE(many_short_rows) {
  for (const Shape& shape : {Shape{5000, 2}, Shape{3000, 10}, Shape{700, 33}})
    for (auto& r : reducers()) compare(r, r.dtypes.front(), shape, lies()[0]);
}

// A sum of numbers that f32 could not add up one by one, and a variance far from zero.
BOOST_AUTO_TEST_CASE(accuracy) {
  Tensor x = full({300000}, 0.1, {.dtype = f32});
  BOOST_TEST(sum(x.to(kGpu)).item() == 30000.00044703484, boost::test_tools::tolerance(1e-7));
  Tensor far = random_values({50000}, f64, false) + 1e6;
  require_same(var(far.to(kGpu)), var(far), "var far from 0", 1e-11);
  require_same(var(far.to(f32).to(kGpu)), var(far.to(f32)), "var of f32 far from 0", 1e-6);
}

BOOST_AUTO_TEST_CASE(same_bits_every_time) {
  Tensor x = random_values({70, 1000}, f32, false).to(kGpu);
  for (const Shape& dims : {Shape{}, Shape{0}, Shape{1}}) {
    auto first = sum(x, dims).to_vector<float>();
    for (int i = 0; i < 3; ++i) BOOST_TEST((sum(x, dims).to_vector<float>() == first));
  }
}

BOOST_AUTO_TEST_CASE(places_of_extremes) {
  const std::vector<Shape> shapes = {{1},       {9},       {5, 7},  {1000, 3},
                                     {3, 1000}, {4, 5, 6}, {20001}, {2, 900, 5}};
  for (DType dtype : kNumbers)
    for (auto& shape : shapes)
      for (auto& lie : {lies()[0], lies()[1], lies()[2]}) {
        if (passed_over()) continue;
        // Few values, so that many are equal; some rows have NaN.
        Both x = both(random_values(lie.whole(shape), dtype, false), lie, shape);
        if (is_floating_point(dtype)) {
          Both odd = random_both(shape, dtype, lie, true);
          x = pick(0, 1) ? odd : Both{floor(x.cpu), floor(x.gpu)};
        }
        for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
          auto what =
              describe("argmax and argmin", dtype, shape, lie.name + ", dim " + std::to_string(d));
          require_same(argmax(x.gpu, d), argmax(x.cpu, d), what);
          require_same(argmin(x.gpu, d), argmin(x.cpu, d), what);
        }
        require_same(argmax(x.gpu), argmax(x.cpu), describe("argmax", dtype, shape, "of all"));
      }
  require_error<ValueError>([] { argmax(zeros({2, 0}, {.device = kGpu}), 1); }, "no elements");
}

BOOST_AUTO_TEST_CASE(gradients) {
  Tensor x = random_values({4, 5, 6}, f64, false);
  for (const Shape& dims : {Shape{}, Shape{0}, Shape{1}, Shape{0, 2}}) {
    require_agreement(
        "sum", [&](auto& v) { return sum(v[0], dims); }, {x}, 1e-12);
    require_agreement(
        "mean", [&](auto& v) { return mean(v[0], dims); }, {x}, 1e-12);
    require_agreement(
        "prod", [&](auto& v) { return prod(v[0], dims); }, {x * 0.1 + 1.0}, 1e-12);
    require_agreement(
        "amax", [&](auto& v) { return amax(v[0], dims); }, {floor(x)}, 1e-12);
    require_agreement(
        "var", [&](auto& v) { return var(v[0], dims); }, {x}, 1e-12);
    require_agreement(
        "logsumexp", [&](auto& v) { return logsumexp(v[0], dims); }, {x}, 1e-12);
  }
}
