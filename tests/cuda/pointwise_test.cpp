// The cuda plugin's pointwise operators beside the cpu's: types, strides, broadcasting, scalars,
// awkward values.
#include "cuda/compare.h"

using namespace tenon;
using namespace tenon::test;
BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

const std::vector<DType> kFloats = {f32, f64, f16, bf16},
                         kNumbers = {f32, f64, f16, bf16, i64, i32, u8},
                         kAll = {f32, f64, f16, bf16, i64, i32, u8, boolean};

// Around the sizes of blocks, packs and tiles.
const std::vector<Shape> kShapes = {
    {},          {1},      {7},      {2048},       {0, 3},        {5, 1000},
    {3, 33, 65}, {64, 96}, {40, 48}, {2, 3, 4, 5}, {2, 5, 28, 4}, {2, 2, 2, 2, 2, 2, 2, 3}};

using Unary = std::function<Tensor(const Tensor&)>;
using Binary = std::function<Tensor(const Tensor&, const Tensor&)>;

void compare(const std::string& op, const Unary& f, const std::vector<DType>& dtypes) {
  for (DType dtype : dtypes)
    for (auto& shape : kShapes) {
      if (passed_over()) continue;
      auto ways = lies();
      Lie& lie = ways[static_cast<size_t>(pick(0, static_cast<int64_t>(ways.size()) - 1))];
      Both x = random_both(shape, dtype, lie);
      require_same(f(x.gpu), f(x.cpu), describe(op, dtype, shape, lie.name));
    }
}

void compare(const std::string& op, const Binary& f, const std::vector<DType>& dtypes) {
  auto ways = lies();
  auto any = [&]() -> Lie& {
    return ways[static_cast<size_t>(pick(0, static_cast<int64_t>(ways.size()) - 1))];
  };
  for (DType dtype : dtypes)
    for (auto& shape : kShapes) {
      if (passed_over()) continue;
      Lie &first = any(), &second = any();
      Both a = random_both(shape, dtype, first), b = random_both(shape, dtype, second);
      require_same(f(a.gpu, b.gpu), f(a.cpu, b.cpu),
                   describe(op, dtype, shape, first.name + " and " + second.name));
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_operand) {
  struct Case {
    const char* op;
    Tensor (*f)(const Tensor&);
    bool integers;
  };
  for (auto& c : std::initializer_list<Case>{{"neg", neg, true},
                                             {"abs", abs, true},
                                             {"sign", sign, true},
                                             {"square", square, true},
                                             {"relu", relu, true},
                                             {"reciprocal", reciprocal, false},
                                             {"exp", exp, false},
                                             {"log", log, false},
                                             {"sqrt", sqrt, false},
                                             {"rsqrt", rsqrt, false},
                                             {"sin", sin, false},
                                             {"cos", cos, false},
                                             {"erf", erf, false},
                                             {"tanh", tanh, false},
                                             {"sigmoid", sigmoid, false},
                                             {"silu", silu, false},
                                             {"floor", floor, false},
                                             {"ceil", ceil, false},
                                             {"round", round, false}})
    compare(c.op, Unary(c.f), c.integers ? kNumbers : kFloats);
  compare("gelu", Unary([](auto& x) { return gelu(x); }), kFloats);
  compare("logical_not", Unary(logical_not), kAll);
}

BOOST_AUTO_TEST_CASE(every_way_of_lying_in_memory) {
  for (auto& first : lies())
    for (auto& second : lies())
      for (auto& shape : kShapes) {
        Both a = random_both(shape, f32, first), b = random_both(shape, f32, second);
        require_same(a.gpu - b.gpu, a.cpu - b.cpu,
                     describe("sub", f32, shape, first.name + " and " + second.name), 0);
      }
}

BOOST_AUTO_TEST_CASE(two_operands) {
  struct Case {
    const char* op;
    Tensor (*f)(const Tensor&, const Tensor&);
    const std::vector<DType>& dtypes;
  };
  for (auto& c : std::initializer_list<Case>{{"add", add, kNumbers},
                                             {"sub", sub, kNumbers},
                                             {"mul", mul, kNumbers},
                                             {"maximum", maximum, kNumbers},
                                             {"minimum", minimum, kNumbers},
                                             {"div", div, kFloats},
                                             {"pow", pow, kNumbers},
                                             {"eq", eq, kAll},
                                             {"ne", ne, kAll},
                                             {"lt", lt, kAll},
                                             {"le", le, kAll},
                                             {"gt", gt, kAll},
                                             {"ge", ge, kAll},
                                             {"logical_and", logical_and, kAll},
                                             {"logical_or", logical_or, kAll},
                                             {"logical_xor", logical_xor, kAll}})
    compare(c.op, Binary(c.f), c.dtypes);
}

BOOST_AUTO_TEST_CASE(scalars_on_both_sides) {
  for (double s : {0.0, 2.0, 3.0, 0.5, -1.0, -2.5, 1e30, std::nan("")}) {
    std::string with = std::to_string(s);
    compare("add " + with, Unary([s](auto& x) { return x + s; }), kFloats);
    compare("scalar - x " + with, Unary([s](auto& x) { return s - x; }), kFloats);
    compare("mul " + with, Unary([s](auto& x) { return x * s; }), {f32});
    compare("div " + with, Unary([s](auto& x) { return x / s; }), {f32, bf16});
    compare("scalar / x " + with, Unary([s](auto& x) { return s / x; }), {f32, f64});
    compare("maximum " + with, Unary([s](auto& x) { return maximum(x, s); }), kFloats);
    compare("minimum " + with, Unary([s](auto& x) { return minimum(x, s); }), kFloats);
    compare("pow " + with, Unary([s](auto& x) { return pow(x, s); }), kFloats);
    compare("scalar ^ x " + with, Unary([s](auto& x) { return pow(s, x); }), kFloats);
    compare("lt " + with, Unary([s](auto& x) { return x < s; }), kFloats);
    compare("eq " + with, Unary([s](auto& x) { return eq(x, s); }), kFloats);
  }
  for (int64_t s : {0, 3, -7, 250}) {
    std::string with = std::to_string(s);
    compare("add " + with, Unary([s](auto& x) { return x + s; }), {i64, i32, u8});
    compare("scalar - x " + with, Unary([s](auto& x) { return s - x; }), {i64, i32, u8});
    compare("mul " + with, Unary([s](auto& x) { return x * s; }), {i64, i32, u8});
    compare("minimum " + with, Unary([s](auto& x) { return minimum(x, s); }), {i64, i32, u8});
    compare("ge " + with, Unary([s](auto& x) { return x >= s; }), kAll);
    compare("scalar ^ x " + with, Unary([s](auto& x) { return pow(s, x); }), {i64, i32, u8});
    if (s >= 0) compare("pow " + with, Unary([s](auto& x) { return pow(x, s); }), {i64, i32, u8});
  }
}

BOOST_AUTO_TEST_CASE(limits) {
  compare("clamp", Unary([](auto& x) { return clamp(x, -0.75, 1.5); }), kFloats);
  compare("clamp from below", Unary([](auto& x) { return clamp(x, 2); }), kNumbers);
  compare("clamp from above", Unary([](auto& x) { return clamp(x, std::nullopt, 3); }), kNumbers);
  compare("clamp, limits outside the type",
          Unary([](auto& x) { return clamp(x, -1'000'000'000, 1'000'000'000'000); }),
          {i64, i32, u8});
  compare("clamp, crossed limits", Unary([](auto& x) { return clamp(x, 2, -2); }), {f32, i32});
}

BOOST_AUTO_TEST_CASE(selection) {
  auto ways = lies();
  auto any = [&]() -> Lie& {
    return ways[static_cast<size_t>(pick(0, static_cast<int64_t>(ways.size()) - 1))];
  };
  for (DType dtype : kAll)
    for (auto& shape : kShapes)
      for (int round = 0; round < 3; ++round) {
        Lie &l0 = any(), &l1 = any(), &l2 = any();
        Both c = random_both(shape, boolean, l0), a = random_both(shape, dtype, l1),
             b = random_both(shape, dtype, l2);
        require_same(where(c.gpu, a.gpu, b.gpu), where(c.cpu, a.cpu, b.cpu),
                     describe("where", dtype, shape, l0.name + ", " + l1.name + " and " + l2.name),
                     0);
      }
}

BOOST_AUTO_TEST_CASE(gradients_of_activations) {
  struct Case {
    const char* op;
    Unary f;
  };
  for (auto& c :
       std::initializer_list<Case>{{"sigmoid", tenon::sigmoid},
                                   {"tanh", static_cast<Tensor (*)(const Tensor&)>(tenon::tanh)},
                                   {"relu", tenon::relu},
                                   {"silu", tenon::silu},
                                   {"gelu", [](const Tensor& x) { return gelu(x); }}})
    for (DType dtype : kFloats)
      for (auto& shape : kShapes)
        for (auto& lie : lies(false)) {
          Both x = random_both(shape, dtype, lie), g = both(random_values(shape, dtype, false));
          auto gradient = [&](const Tensor& x, const Tensor& g) {
            Tensor leaf = x.detach();
            leaf.requires_grad_();
            c.f(leaf).backward(g);
            return leaf.grad();
          };
          // 1 - tanh(x)^2 cancels: an error in the last place of tanh counts several times.
          require_same(gradient(x.gpu, g.gpu), gradient(x.cpu, g.cpu),
                       describe(c.op, dtype, shape, "backward, " + lie.name), 4 * tolerance(dtype));
        }
}

BOOST_AUTO_TEST_CASE(many_elements) {
  // Above what one wave of blocks covers, with a ragged end.
  Both a = both(random_values({300007}, f32)), b = both(random_values({300007}, f32));
  require_same(a.gpu * b.gpu + a.gpu, a.cpu * b.cpu + a.cpu, "mul and add of many", 1e-6);
  Both c = both(random_values({517, 301}, f64)), d = both(random_values({301, 517}, f64));
  require_same(c.gpu - d.gpu.t(), c.cpu - d.cpu.t(), "sub of a transposed matrix", 0);
}

BOOST_AUTO_TEST_CASE(what_is_refused) {
  Tensor flags = ones({3}, {.dtype = boolean, .device = kGpu});
  require_error<Error>([&] { neg(flags); }, "neg");
  require_error<Error>([&] { flags - flags; }, "sub");
}
