// The operator `fused`: programs of pointwise operators have the bits of their members run one by
// one, for random programs, layouts and dtypes; and what no program can be.
#include <random>
#include <set>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/fused.h>
#include <tenon/core/runtime/dispatch_stats.h>
#include <tenon/plugins/sdk/requests/fused.h>

#include "fuzz.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(pointwise)

using namespace tenon;
using namespace tenon::test;
using conformance::FusedCase;

namespace {

constexpr DType kDTypes[] = {f32, f32, f32, f64, f16, bf16, i64, i32, u8, boolean};

// A program that is drawn, with inputs of some shape and of its broadcast parts.
class Drawn {
 public:
  explicit Drawn(uint64_t seed) : random_(seed) {}

  void run() {
    shape_ = draw_shape();
    add_input(true);
    const size_t more = below(5), steps = 1 + below(12);
    for (size_t i = 0; i < more; ++i) add_input(below(2) == 0);
    for (size_t i = 0; i < steps; ++i) add_step();
    // What has the shape of all inputs together may be a result.
    auto last = case_.of("add", {as(f32, values_[0].value), as(f32, values_.back().value)});
    for (size_t i = 1; i <= more; ++i)  // every input is read
      last = case_.of("add", {last, as(f32, values_[i].value)});
    case_.out(last);
    size_t outputs = 1;
    for (auto& v : values_)
      if (v.whole && v.value.kind == FusedValue::step && outputs < 5 && below(3) == 0) {
        case_.out(v.value, overwritten_with(v));
        ++outputs;
      }
    case_.run();
  }

 private:
  struct Value {
    FusedValue value;
    DType dtype;
    bool whole;  // it has all of the shape
    bool may_change = false;
  };

  size_t below(size_t n) { return random_() % n; }
  template <class T, size_t N>
  const T& one_of(const T (&list)[N]) {
    return list[below(N)];
  }

  Shape draw_shape() {
    static const Shape shapes[] = {{1},          {7},      {1031},    {3, 5},     {70, 3},
                                   {2, 300},     {65, 67}, {5000},    {40, 1, 9}, {3, 17, 5},
                                   {2, 3, 4, 5}, {0, 4},   {6, 1200}, {130, 64},  {}};
    return one_of(shapes);
  }

  Tensor draw_values(const Shape& shape, DType dtype) {
    static const double odd[] = {0, -0.0, 1, -1, 1e30, -1e30, 1e-40, INFINITY, -INFINITY, NAN};
    std::vector<double> values(static_cast<size_t>(shape.numel()));
    const bool oddly = below(3) == 0;
    for (double& v : values) {
      v = static_cast<double>(static_cast<int64_t>(below(4001)) - 2000) / 256;
      if (oddly && below(8) == 0) v = one_of(odd);
      if (!is_floating_point(dtype)) v = std::isfinite(v) && std::abs(v) < 1e9 ? std::floor(v) : 3;
      if (dtype == u8) v = std::abs(v);
    }
    return conformance::copied_to(tensor(values, shape).to(dtype), default_device());
  }

  // The tensor may be a part of a larger one, or have its dimensions in another order.
  Tensor draw_tensor(const Shape& shape, DType dtype) {
    const size_t layout = below(4);
    if (layout == 0 && shape.size() >= 2) {
      Shape swapped = shape;
      std::swap(swapped[shape.size() - 1], swapped[shape.size() - 2]);
      return draw_values(swapped, dtype).transpose(-1, -2);
    }
    if (layout == 1 && !shape.empty()) {
      Shape wide = shape;
      wide[shape.size() - 1] = 2 * shape[shape.size() - 1] + 1;
      return draw_values(wide, dtype)
          .slice(static_cast<int64_t>(shape.size()) - 1, 1, wide[shape.size() - 1], 2);
    }
    return draw_values(shape, dtype);
  }

  void add_input(bool whole) {
    Shape shape = shape_;
    if (!whole)
      for (size_t d = 0; d < shape.size(); ++d)
        if (below(2) == 0) shape[d] = 1;
    const DType dtype = one_of(kDTypes);
    Tensor x = draw_tensor(shape, dtype);
    const bool repeats = !whole && below(2) == 0;
    if (repeats) x = x.expand(shape_);
    const bool all = shape == shape_ || repeats;
    values_.push_back({case_.in(x), dtype, all, all && !repeats});
  }

  FusedValue as(DType dtype, FusedValue value) {
    return case_.dtype_of(value) == dtype ? value : case_.cast(value, dtype);
  }
  const Value& any() { return values_[below(values_.size())]; }

  void add(FusedValue value, bool whole) {
    values_.push_back({value, case_.dtype_of(value), whole, false});
  }

  void add_step() {
    const Value a = any(), b = any();
    const FusedValue other = as(a.dtype, b.value);
    const bool whole = a.whole || b.whole, floating = is_floating_point(a.dtype);
    const auto kind = below(6);
    if (kind == 0) return add(case_.cast(a.value, one_of(kDTypes)), a.whole);
    if (kind == 1) {
      static const char* const compares[] = {"eq", "ne", "lt", "le", "gt", "ge"};
      if (below(2)) return add(case_.of(one_of(compares), {a.value, other}), whole);
      return add(case_.with(one_of(compares), a.value, 1), a.whole);
    }
    if (kind == 2) {
      const Value c = any();
      return add(case_.of("where", {as(boolean, c.value), a.value, other}), whole || c.whole);
    }
    floating ? add_floating(a, other, whole) : add_whole(a, other, whole);
  }

  void add_floating(const Value& a, FusedValue other, bool whole) {
    static const char* const unary[] = {
        "neg",   "abs",   "sign", "square", "relu",      "reciprocal", "exp",  "log",
        "sqrt",  "rsqrt", "sin",  "erf",    "tanh",      "sigmoid",    "silu", "gelu",
        "floor", "round", "mish", "log1p",  "hardswish", "trunc",      "atan"};
    static const char* const binary[] = {"add",     "sub", "mul",   "div",      "maximum",
                                         "minimum", "pow", "atan2", "remainder"};
    static const char* const numbered[] = {"add", "sub", "mul", "div", "maximum", "pow"};
    const size_t form = below(10);
    if (form < 4) return add(case_.of(one_of(unary), {a.value}), a.whole);
    if (form < 6) return add(case_.of(one_of(binary), {a.value, other}), whole);
    // The result has the shape of the first operand, whatever the second one's is.
    if (form == 6) return add(case_.of(a.whole ? "relu_backward" : "add", {a.value, other}), whole);
    if (form == 7) return add(case_.with(one_of(numbered), a.value, 1.5), a.whole);
    if (form == 8) return add(case_.after(0.25, one_of(numbered), a.value), a.whole);
    if (below(2)) return add(case_.of("clamp", {a.value}, {-1, 2}), a.whole);
    add(case_.of("addcmul", {a.value, other, a.value}), whole);
  }

  void add_whole(const Value& a, FusedValue other, bool whole) {
    static const char* const logic[] = {"logical_and", "logical_or", "logical_xor", "add", "mul"};
    static const char* const binary[] = {"add",         "sub",          "mul",
                                         "maximum",     "minimum",      "bitwise_and",
                                         "bitwise_xor", "floor_divide", "remainder"};
    if (below(4) == 0) return add(case_.of("logical_not", {a.value}), a.whole);
    if (a.dtype == boolean) return add(case_.of(one_of(logic), {a.value, other}), whole);
    if (below(2)) return add(case_.of(one_of(binary), {a.value, other}), whole);
    add(case_.with(one_of(binary), a.value, 3), a.whole);
  }

  // An input that nothing else overwrites, or nothing.
  FusedValue overwritten_with(const Value& result) {
    for (auto& v : values_)
      if (v.may_change && v.dtype == result.dtype && below(2) == 0) {
        v.may_change = false;
        return v.value;
      }
    return {};
  }

  std::mt19937_64 random_;
  Shape shape_;
  FusedCase case_;
  std::vector<Value> values_;
};

FusedValue number_after(FusedBuilder& b, const char* op, FusedValue x) {
  const FusedValue operands[] = {x, {}};
  return b.step(op, operands, 1, "reverse", false);
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_programs_have_the_bits_of_their_members) {
  const Deadline deadline;
  each_point(fuzz_long() ? 100'000'000 : 400, 400, deadline, [](int64_t n) {
    if (!fuzz_long() && n > 400) return false;
    try {
      Drawn(static_cast<uint64_t>(n)).run();
    } catch (const std::exception& e) {
      BOOST_ERROR("program " << n << ": " << e.what());
    }
    return true;
  });
}

// Several tiles with an edge, and more than one thread's share.
BOOST_AUTO_TEST_CASE(large_programs_have_the_bits_of_their_members) {
  for (const DType dtype : {f32, f64, bf16}) {
    const Tensor x = randn({300'007}).to(dtype), row = randn({1031}).to(dtype),
                 image = randn({317, 1031}).to(dtype), across = randn({1031, 317}).to(dtype).t();
    FusedCase flat;
    const auto a = flat.in(x);
    flat.out(flat.of("mul", {flat.of("tanh", {flat.with("add", a, 1)}), a}));
    BOOST_CHECK_NO_THROW(flat.run());
    for (const Tensor& y : {image, across}) {
      FusedCase strided;
      const auto b = strided.in(image), c = strided.in(y), r = strided.in(row);
      const auto sum = strided.of("add", {strided.of("mul", {b, c}), strided.of("exp", {r})});
      strided.out(sum);
      strided.out(strided.of("sub", {sum, c}));
      BOOST_CHECK_NO_THROW(strided.run());
    }
  }
}

// Numbers are those of the call, not of the program.
BOOST_AUTO_TEST_CASE(numbers_of_a_program_change_from_call_to_call) {
  FusedBuilder b;
  const auto x = b.input(f32);
  b.output(number_after(b, "mul", number_after(b, "add", x)));
  const auto& program = b.finish();
  BOOST_TEST(program.text() ==
             "add[reverse=false](x0, _, #1): f32; mul[reverse=false](t0, _, #1): f32 -> t1");
  const Tensor in = floats({1, 2}, {2});
  const Tensor* inputs[] = {&in};
  for (const double k : {2.0, 3.0}) {
    const Scalar numbers[] = {k, 10.0};
    require_values(run_fused(program, inputs, numbers)[0], {2}, {10 * (1 + k), 10 * (2 + k)});
  }
}

// A plan that overwrites one input may be given the same tensor as another.
BOOST_AUTO_TEST_CASE(an_input_that_is_overwritten_may_be_another_too) {
  FusedBuilder b;
  const auto x = b.input(f32), y = b.input(f32);
  const FusedValue both[] = {x, y};
  const auto sum = b.step("add", both, 0);
  b.output(sum);
  const FusedValue again[] = {sum, y};
  b.output(b.step("mul", again, 0));
  const auto& program = b.finish();
  const Tensor t = conformance::copied_to(floats({1, 2, 3, 4}, {4}), default_device());
  const Tensor part = t.slice(0, 0, 3), later = t.slice(0, 1, 4);
  const Tensor* same[] = {&t, &t};
  const int32_t places[] = {0, -1};
  const auto found = run_fused(program, same, {}, places);
  BOOST_TEST(found[0].is_same(t));
  require_values(t, {4}, {2, 4, 6, 8});
  require_values(found[1], {4}, {2, 8, 18, 32});
  const Tensor* shifted[] = {&part, &later};
  require_values(run_fused(program, shifted, {}, places)[1], {3}, {24, 60, 112});
  require_values(t, {4}, {6, 10, 14, 8});
}

// A backend that refuses a member gets the others in smaller programs, and makes that one of
// others.
BOOST_AUTO_TEST_CASE(a_member_that_nobody_offers_is_taken_out_of_its_program) {
  if (default_device().type() != "cpu") return;
  const Tensor in = floats({0.25f, 0.5f}, {2}), one = floats({0.75f}, {1});
  for (const bool rare : {false, true}) {
    FusedCase c;
    const auto x = c.in(in), small = c.in(one), y = c.of("sigmoid", {c.of("neg", {x})});
    const auto loss = c.of(rare ? "binary_cross_entropy" : "mul", {y, x});
    const auto scaled = c.with("mul", loss, 3), shifted = c.of("add", {scaled, y});
    c.out(c.of("exp", {c.of("sub", {shifted, c.of("square", {small})})}));
    c.out(scaled);
    count_dispatch();
    reset_dispatch_stats();
    BOOST_CHECK_NO_THROW(c.run());
    synchronize();
    const DispatchStats stats = dispatch_stats();
    count_dispatch(false);
    std::set<std::string> decomposed;
    uint64_t runs = 0;
    for (auto& d : stats.decomposed) decomposed.insert(d.op);
    for (auto& r : stats.runs) runs += r.op == "fused" ? r.runs : 0;
    if (!rare) BOOST_TEST((decomposed.empty() && runs == 1));
    // The members before it cannot be one program, because one of them is smaller; those after it
    // can.
    if (rare) {
      BOOST_TEST(decomposed == (std::set<std::string>{"binary_cross_entropy", "fused"}),
                 boost::test_tools::per_element());
      BOOST_TEST(runs == 1u);
    }
  }
}

// Steps whose results nobody reads make no program of their own beside a member that is refused.
BOOST_AUTO_TEST_CASE(steps_that_nobody_reads_are_no_program) {
  FusedCase c;
  const auto x = c.in(floats({0.25f, 0.5f}, {2}).to(default_device()));
  c.of("neg", {c.of("exp", {x})});
  c.out(c.of("binary_cross_entropy", {x, x}));
  BOOST_CHECK_NO_THROW(c.run());
}

// What the core can put into a program, plugins know.
BOOST_AUTO_TEST_CASE(members_are_the_pointwise_operators_and_reductions) {
  std::set<std::string> members, known;
  for (const Op* op = all_ops(); op; op = op->next)
    if (can_be_fused(*op) || can_be_fused_reduction(*op)) members.insert(op->name);
  for (auto& member : sdk::kFusedMembers) {
    known.insert(member.op);
    for (const Op* op = all_ops(); op; op = op->next)
      if (member.op == std::string_view(op->name))
        BOOST_TEST(can_be_fused_reduction(*op) == member.reduces);
  }
  BOOST_TEST(members == known, boost::test_tools::per_element());
  BOOST_TEST(FusedProgram::kMaxInputs == sdk::FusedLimits::kMaxInputs);
  BOOST_TEST(FusedProgram::kMaxOutputs == sdk::FusedLimits::kMaxOutputs);
  BOOST_TEST(FusedProgram::kMaxSteps == sdk::FusedLimits::kMaxSteps);
}

BOOST_AUTO_TEST_CASE(what_no_program_can_be) {
  FusedBuilder b;
  const auto x = b.input(f32), n = b.input(i64);
  const FusedValue one[] = {x}, whole[] = {n}, mixed[] = {x, n};
  require_error<Error>([&] { b.step("cumsum", one, 0); }, "cumsum cannot be a member");
  require_error<Error>([&] { b.step("tangent", one, 0); }, "no operator \"tangent\"");
  require_error<DTypeError>([&] { b.step("exp", whole, 0); }, "exp: x has dtype i64");
  require_error<DTypeError>([&] { b.step("add", mixed, 0); },
                            "add: a member of a fused program takes operands of one dtype");
  require_error<Error>([&] { b.step("exp", one, 0, "base", 2); }, "no member has the attribute");
  require_error<Error>([&] { b.output(x); }, "an output is the result of a step");
  require_error<Error>([&] { b.finish(); }, "has inputs and outputs");
  const FusedValue later[] = {{FusedValue::step, 7}};
  require_error<Error>([&] { b.step("exp", later, 0); }, "there is no such value");
  const auto y = b.step("exp", one, 0);
  b.output(y);
  require_error<Error>([&] { b.finish(); }, "no step reads input 1");
  b.step("neg", whole, 0);
  require_error<Error>([&] { b.output(y); }, "step 0 is an output already");
  const auto& program = b.finish();

  const Tensor a = floats({1, 2}, {2}), wide = doubles({1, 2}, {2}), i = ints({1, 2}, {2}),
               column = ints({1, 2}, {2, 1});
  const Tensor *few[] = {&a}, *other[] = {&wide, &i}, *broader[] = {&a, &column},
               *right[] = {&a, &i};
  require_error<ValueError>([&] { run_fused(program, few); }, "takes 2 inputs and 0 scalars");
  require_error<DTypeError>([&] { run_fused(program, other); }, "step 0, exp, makes f64",
                            "was built for f32");
  require_error<ShapeError>([&] { run_fused(program, broader); },
                            "output 0 has shape (2,), but all inputs together (2, 2)");
  const int32_t nowhere[] = {2}, elsewhere[] = {1};
  require_error<ValueError>([&] { run_fused(program, right, {}, nowhere); },
                            "output 0 cannot overwrite input 2");
  require_error<ShapeError>([&] { run_fused(program, right, {}, elsewhere); },
                            "output 0 is f32 (2,), but input 1, which it overwrites, i64 (2,)");
}

BOOST_AUTO_TEST_SUITE_END()
