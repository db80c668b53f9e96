// Programs of `fused` that reduce rows: they have the bits of their members run one by one, for
// every reduction and for the shapes that normalizations and losses have; and what no program can
// reduce.
#include "ops/pointwise/fused_rows.h"

#include <set>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/fused.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/runtime/dispatch_stats.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(pointwise)

using namespace tenon;
using namespace tenon::test;
using conformance::FusedCase;

namespace {

constexpr DType kRowTypes[] = {f32, f64, f16, bf16, i64, i32, u8, boolean};

// How often `fused` runs while f does, and what is decomposed meanwhile.
template <class F>
std::pair<uint64_t, std::set<std::string>> fused_runs(F&& f) {
  count_dispatch();
  reset_dispatch_stats();
  f();
  synchronize();
  const DispatchStats stats = dispatch_stats();
  count_dispatch(false);
  std::pair<uint64_t, std::set<std::string>> found;
  for (auto& r : stats.runs) found.first += r.op == "fused" ? r.runs : 0;
  for (auto& d : stats.decomposed) found.second.insert(d.op);
  return found;
}

// The shapes of these programs in order: a whole tensor, one of its columns, one of a row.
void fused_layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  FusedCase c;
  const auto in = c.in(x), w = c.in(weight), b = c.in(bias);
  const auto centered = c.of("sub", {in, c.of("mean", {in})});
  const auto var = c.of("mean", {c.of("square", {centered})});
  const auto scale = c.of("rsqrt", {c.with("add", var, 1e-5)});
  c.out(c.of("add", {c.of("mul", {c.of("mul", {centered, scale}), w}), b}));
  c.out(scale);
  c.run();
}
void fused_rms_norm(const Tensor& x, const Tensor& weight) {
  FusedCase c;
  const auto in = c.in(x), w = c.in(weight);
  const auto scale = c.of("rsqrt", {c.with("add", c.of("mean", {c.of("square", {in})}), 1e-6)});
  c.out(c.of("mul", {c.of("mul", {in, scale}), w}));
  c.run();
}
void fused_softmax(const Tensor& x, bool in_place) {
  FusedCase c;
  const auto in = in_place ? c.in_copy(x) : c.in(x);
  const auto top = c.of("amax", {in});
  const auto e = c.of("exp", {c.of("sub", {in, top})});
  const auto total = c.of("sum", {e});
  c.out(c.of("div", {e, total}), in_place ? in : FusedValue());
  c.out(c.of("add", {c.of("log", {total}), top}));
  c.run();
}
void fused_log_softmax(const Tensor& x) {
  FusedCase c;
  const auto in = c.in(x);
  c.out(c.of("sub", {in, c.of("logsumexp", {in})}));
  c.run();
}
void fused_squared_error(const Tensor& x, const Tensor& y) {
  FusedCase c;
  const auto a = c.in(x), b = c.in(y);
  c.out(c.of("mean", {c.of("square", {c.of("sub", {a, b})})}));
  c.run();
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_reduction_has_its_own_bits) {
  const Shape shapes[] = {{1},     {7},     {31},      {5, 1},    {1, 31},   {3, 31},   {2, 3},
                          {4, 33}, {17, 5}, {1, 5000}, {3, 1031}, {130, 64}, {1, 65536}};
  std::set<std::string_view> ops(std::begin(kReductions), std::end(kReductions));
  ops.insert({"any", "all"});
  for (const auto op : ops)
    for (const DType dtype : kRowTypes) {
      if (!reduces_dtype(op, dtype)) continue;
      for (const Shape& shape : shapes)
        for (const bool oddly : {false, true}) {
          const Tensor x = drawn_rows(shape, dtype, 7, oddly);
          FusedCase alone, among;
          alone.out(reduced(alone, op, alone.in(x)));
          BOOST_CHECK_NO_THROW(alone.run());
          // What it reads and what it makes are made by others.
          const auto in = among.in(x);
          const auto y = reduced(among, op, among.of("maximum", {in, in}));
          among.out(among.of("add", {y, y}));
          among.out(y);
          BOOST_CHECK_NO_THROW(among.run());
        }
    }
}

// The reference of the comparisons is that which users call, of contiguous rows.
BOOST_AUTO_TEST_CASE(members_that_reduce_are_the_functions_of_users) {
  const Tensor x = drawn_rows({9, 70}, f32, 3);
  FusedCase c;
  const auto in = c.in(x);
  c.out(c.of("sum", {in}));
  c.out(c.of("mean", {in}));
  c.out(c.of("var", {in}, {}, "correction", 1));
  c.out(c.of("logsumexp", {in}));
  const auto found = c.run();
  const Tensor expected[] = {sum(x, {-1}, true), mean(x, {-1}, true), var(x, {-1}, 1, true),
                             logsumexp(x, {-1}, true)};
  for (size_t i = 0; i < found.size(); ++i) {
    BOOST_TEST(found[i].shape() == expected[i].shape());
    BOOST_TEST((conformance::bytes_of(found[i]) == conformance::bytes_of(expected[i])));
  }
}

// One row has the bits that it has among others, in whatever tile.
BOOST_AUTO_TEST_CASE(a_short_row_does_not_depend_on_its_neighbours) {
  for (const int64_t n : {2, 9, 31}) {
    const Tensor x = drawn_rows({2, n}, f64, 11), one = sum(x.slice(0, 0, 1), {-1}),
                 both = sum(x, {-1});
    BOOST_TEST(one.to_vector<double>()[0] == both.to_vector<double>()[0]);
  }
}

BOOST_AUTO_TEST_CASE(normalizations_and_losses_of_primitives) {
  for (const DType dtype : {f32, f64, bf16, f16})
    for (const Shape& shape : {Shape{1, 1}, Shape{5, 7}, Shape{1, 256}, Shape{33, 65},
                               Shape{64, 1000}, Shape{2, 3, 4096}, Shape{3, 50257}}) {
      const int64_t n = shape[shape.size() - 1];
      const Tensor x = drawn_rows(shape, dtype, 1), w = drawn_rows({n}, dtype, 2),
                   b = drawn_rows({n}, dtype, 3);
      BOOST_CHECK_NO_THROW(fused_layer_norm(x, w, b));
      BOOST_CHECK_NO_THROW(fused_rms_norm(x, w));
      BOOST_CHECK_NO_THROW(fused_softmax(x, false));
      BOOST_CHECK_NO_THROW(fused_softmax(x, true));
      BOOST_CHECK_NO_THROW(fused_log_softmax(x));
      BOOST_CHECK_NO_THROW(fused_squared_error(x, drawn_rows(shape, dtype, 4)));
    }
  const Tensor wide = drawn_rows({12, 400}, f32, 5);
  BOOST_CHECK_NO_THROW(fused_softmax(wide.t(), false));
  BOOST_CHECK_NO_THROW(fused_softmax(wide.slice(1, 3, 390), false));
  BOOST_CHECK_NO_THROW(fused_softmax(drawn_rows({1, 400}, f32, 6).expand({12, 400}), false));
  BOOST_CHECK_NO_THROW(fused_softmax(drawn_rows({12, 1}, f32, 6).expand({12, 400}), false));
}

// It is one program on the cpu, or parts of it where a member is refused.
BOOST_AUTO_TEST_CASE(programs_that_reduce_run_as_one) {
  if (default_device().type() != "cpu") return;
  const Tensor x = drawn_rows({8, 40}, f32, 1), target = drawn_rows({8, 40}, f32, 2);
  const auto whole = fused_runs([&] { fused_softmax(x, false); });
  BOOST_TEST((whole.first == 1 && whole.second.empty()));
  const auto parts = fused_runs([&] {
    FusedCase c;
    const auto in = c.in(x), y = c.of("sigmoid", {c.of("sub", {in, c.of("amax", {in})})});
    const auto loss = c.of("binary_cross_entropy", {y, c.of("sigmoid", {c.in(target)})});
    const auto total = c.of("sum", {c.with("mul", loss, 2)});
    c.out(c.of("div", {loss, total}));
    c.out(total);
    c.run();
  });
  BOOST_TEST(parts.first == 2u);
  BOOST_TEST(parts.second == (std::set<std::string>{"binary_cross_entropy", "fused"}),
             boost::test_tools::per_element());
}

// Rows that no tile holds, and empty rows, are left to the members.
BOOST_AUTO_TEST_CASE(rows_that_no_tile_holds) {
  for (const int64_t n : {0, 65537, 200'000}) {
    const Tensor x = drawn_rows({2, n}, f32, 1);
    FusedCase c;
    const auto in = c.in(x);
    c.out(c.of("mean", {c.of("exp", {in})}));
    BOOST_CHECK_NO_THROW(c.run());
    if (n > 0) BOOST_CHECK_NO_THROW(fused_softmax(x, false));
  }
  FusedCase empty;
  empty.out(empty.of("amax", {empty.in(drawn_rows({2, 0}, f32, 1))}));
  require_error<ValueError>([&] { empty.run(); }, "no elements to choose from");
}

BOOST_AUTO_TEST_CASE(calls_that_can_be_members) {
  const Op *sum = nullptr, *exp = nullptr, *argmax = nullptr;
  for (const Op* op = all_ops(); op; op = op->next) {
    if (std::string_view(op->name) == "sum") sum = op;
    if (std::string_view(op->name) == "exp") exp = op;
    if (std::string_view(op->name) == "argmax") argmax = op;
  }
  BOOST_TEST((can_be_fused_reduction(*sum) && !can_be_fused(*sum)));
  BOOST_TEST((!can_be_fused_reduction(*exp) && !can_be_fused_reduction(*argmax)));
  const auto desc = [](const Shape& shape, const Strides& strides) {
    return TensorDesc{f32, shape, strides, false, contiguous_format, shape.numel()};
  };
  const TensorDesc rows = desc({3, 4}, {4, 1}), columns = desc({3, 4}, {1, 3}),
                   gaps = desc({3, 4}, {8, 1}), number = desc({}, {});
  BOOST_TEST(can_be_fused_reduction(*sum, Shape{1}, rows));
  for (auto& [dims, x] :
       {std::pair(Shape{0}, rows), std::pair(Shape{0, 1}, rows), std::pair(Shape{1}, columns),
        std::pair(Shape{1}, gaps), std::pair(Shape{1}, number), std::pair(Shape{}, number)})
    BOOST_TEST(!can_be_fused_reduction(*sum, dims, x));
  BOOST_TEST(!can_be_fused_reduction(*exp, Shape{1}, rows));
}

BOOST_AUTO_TEST_CASE(steps_that_reduce) {
  FusedBuilder b;
  const FusedValue x[] = {b.input(f32)}, y[] = {b.step("sum", x, 0)};
  BOOST_TEST(b.dtype_of(y[0]) == f32);
  require_error<Error>([&] { b.step("sum", y, 0); }, "sum reduces step 0");
  const FusedValue doubled[] = {y[0], y[0]}, z[] = {b.step("add", doubled, 0)};
  require_error<Error>([&] { b.step("sum", z, 0); }, "sum reduces step 1");
  require_error<Error>([&] { b.step("mean", doubled, 0); }, "mean takes one operand");
  require_error<Error>([&] { b.step("mean", x, 1); }, "mean takes one operand and no numbers");
  b.output(z[0]);
  BOOST_TEST(b.finish().text() == "sum(x0): f32; add(t0, t0): f32 -> t1");
  FusedBuilder of_var;
  const FusedValue v[] = {of_var.input(f64)};
  of_var.output(of_var.step("var", v, 0));
  BOOST_TEST(of_var.finish().text() == "var[correction=1](x0): f64 -> t0");
  BOOST_TEST(of_var.finish().reduces());
}

BOOST_AUTO_TEST_CASE(tensors_that_have_no_rows) {
  FusedBuilder b;
  const FusedValue x[] = {b.input(f32)}, y[] = {b.input(f32)}, total = b.step("sum", x, 0);
  const FusedValue both[] = {total, y[0]};
  b.output(b.step("mul", both, 0));
  const auto& program = b.finish();
  const Tensor rows = drawn_rows({2, 3}, f32, 1), column = drawn_rows({2, 1}, f32, 2),
               number = drawn_rows({}, f32, 3);
  const Tensor *good[] = {&rows, &column}, *flat[] = {&column, &rows}, *none[] = {&number, &rows};
  BOOST_TEST(run_fused(program, good)[0].shape() == Shape({2, 1}));
  require_error<ShapeError>([&] { run_fused(program, flat); },
                            "sum reduces rows of the shape of all inputs together, (2, 3); found "
                            "an operand of shape (2, 1)");
  require_error<ShapeError>([&] { run_fused(program, none); }, "found an operand of shape ()");
  require_error<ShapeError>([&] { run_members(program, none); },
                            "which a single number does not have");
  const int32_t places[] = {0};
  require_error<ShapeError>([&] { run_fused(program, good, {}, places); },
                            "output 0 is f32 (2, 1), but input 0, which it overwrites, f32 (2, 3)");
}

BOOST_AUTO_TEST_SUITE_END()
