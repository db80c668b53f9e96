// Programs of `fused` as plugins read them (plugins/sdk/requests/fused.h): the language, and the
// refusal of what no plugin can take. The host builds its programs, another one might send any.
#include <string>

#include <boost/test/unit_test.hpp>

#include <tenon/plugins/sdk/requests/fused.h>

#include "ask.h"

BOOST_AUTO_TEST_SUITE(requests_fused_test)

using namespace tenon::sdk;
using tenon::test::Ask;
using tenon::test::tensor;

namespace {

const auto of = FusedRequest::from, with_rows = FusedRequest::with_reductions;

// x0 and x1 are f32, x2 is bool; one output.
Ask program(const char* text, size_t scalars = 0, tn_dtype result = TN_F32) {
  return Ask("fused")
      .in(tensor({2, 3}))
      .in(tensor({2, 3}))
      .in(tensor({2, 3}, TN_BOOL))
      .out(tensor({2, 3}, result))
      .text("program", text)
      .scalars(scalars);
}

// A program of rows: x0 is f32 (2, 3), x1 f32 (2, 1), x2 bool (3). The outputs are f32.
Ask rows(const char* text, std::initializer_list<int64_t> output,
         std::initializer_list<int64_t> another = {}) {
  Ask ask("fused");
  ask.in(tensor({2, 3})).in(tensor({2, 1})).in(tensor({3}, TN_BOOL)).out(tensor(output));
  if (another.size() > 0) ask.out(tensor(another));
  return ask.text("program", text).scalars(0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(programs) {
  const auto r = program(
                     "mul[reverse=true](x0, _, #1): f32; clamp(t0,#2):f32; "
                     "where( x2, t1, x1 ) : f32; polygamma[n=2](t2): f32; copy(t3): i64 -> t4",
                     3, TN_I64)
                     .read(of);
  BOOST_REQUIRE(r.steps.size() == 5u);
  BOOST_TEST((r.num_scalars == 3 && r.results == std::vector<uint32_t>{4}));
  const auto &mul = r.steps[0], &clamp = r.steps[1], &where = r.steps[2], &polygamma = r.steps[3];
  BOOST_TEST((mul.has_attr && mul.attr == 1 && mul.num_operands == 2 && mul.num_scalars == 1));
  BOOST_TEST((mul.operands[0].kind == FusedOperand::input &&
              mul.operands[1].kind == FusedOperand::absent));
  BOOST_TEST((clamp.first_scalar == 1 && clamp.num_scalars == 2 && !clamp.has_attr));
  BOOST_TEST((clamp.operands[0].kind == FusedOperand::step && clamp.operands[0].index == 0));
  BOOST_TEST((where.num_operands == 3 && where.operands[2].index == 1));
  BOOST_TEST(polygamma.attribute().i == 2);
  BOOST_TEST(r.steps[4].dtype == TN_I64);
  BOOST_TEST((r.dtype_of(where.operands[0]) == TN_BOOL && r.dtype_of(where.operands[1]) == TN_F32));

  Ask two = program("exp(x0): f32; lt(t0, x1): bool -> t0, t1");
  const auto s = two.out(tensor({2, 3}, TN_BOOL)).read(of);
  BOOST_TEST((s.results == std::vector<uint32_t>{0, 1}));
  // An output that nobody wants.
  Ask one("fused");
  one.in(tensor({4}))
      .no_out()
      .out(tensor({4}))
      .text("program", "exp(x0): f32; log(t0): f32 -> t1, t0");
  BOOST_TEST(one.read(of).results.size() == 2u);
}

BOOST_AUTO_TEST_CASE(texts_that_are_no_program) {
  for (const char* text :
       {"", ";", "->", "exp", "exp(x0)", "exp(x0): f32", "exp(x0): f32 ->", "exp(x0: f32 -> t0",
        "exp(x): f32 -> t0", "exp(x0): f32 -> t0,", "exp(x0): f32 -> x0", "exp(x0); f32 -> t0",
        "exp(x-1): f32 -> t0", "exp(x0): f32 -> t0 t0", "exp(x99999999999): f32 -> t0",
        "clamp(#2, x0): f32 -> t0", "clamp(x0, #0): f32 -> t0",
        "mul[reverse](x0, _, #1): f32 -> t0", "mul[reverse=1](x0, _, #1): f32 -> t0"}) {
    std::string found = "it was read";
    try {
      program(text).read(of);
    } catch (const Error& e) {
      found = e.what();
    }
    BOOST_TEST((found.find("needs \"") != std::string::npos ||
                found.find("no member \"") != std::string::npos),
               "\"" << text << "\": " << found);
  }
  Ask("fused").in(tensor({2})).out(tensor({2})).refused(of, "\"program\" is missing");
  Ask("fused").in(tensor({2})).out(tensor({2})).set("program", 1).refused(of, "of another kind");
  Ask("fused").in(tensor({2})).out(tensor({2})).text("program", nullptr).refused(of, "is missing");
}

// A cycle needs a step that reads a later one, or itself.
BOOST_AUTO_TEST_CASE(steps_that_read_what_is_not_there) {
  program("exp(t0): f32 -> t0").refused(of, "step 0, exp: reads the result of step 0");
  program("add(x0, t1): f32; exp(t0): f32 -> t1").refused(of, "which does not come before it");
  program("exp(t4000000000): f32 -> t0").refused(of, "reads the result of step 4000000000");
  program("exp(x3): f32 -> t0").refused(of, "step 0, exp: reads input 3, but there are 3");
  program("exp(x0): f32 -> t1").refused(of, "result 0 is that of step 1, but there are 1");
  program("exp(x0): f32 -> t0, t0").refused(of, "step 0 is two of the results");
}

BOOST_AUTO_TEST_CASE(members_that_do_not_fit) {
  program("cumsum(x0): f32 -> t0").refused(of, "no member \"cumsum\"", TN_CODE_UNSUPPORTED);
  program("exp(x0): f8 -> t0").refused(of, "no dtype \"f8\"", TN_CODE_UNSUPPORTED);
  program("exp[base=2](x0): f32 -> t0").refused(of, "attribute \"base\"", TN_CODE_UNSUPPORTED);
  program("polygamma(x0): f32 -> t0").refused(of, "polygamma: attribute \"n\" is missing");
  program("polygamma[n=0](x0): f32 -> t0")
      .refused(of, "step 0, polygamma: n is 1 to 1000, found 0");
  program("exp(x0, x1): f32 -> t0").refused(of, "step 0, exp: takes 1 operands");
  program("exp(): f32 -> t0").refused(of, "takes 1 operands");
  program("exp(_): f32 -> t0").refused(of, "takes 1 operands");
  program("add(_, x0, #1): f32 -> t0", 1).refused(of, "of which the last may be absent");
  program("where(x2, x0, _): f32 -> t0").refused(of, "takes 3 operands");
  program("add(x0, x0, x0, x0): f32 -> t0").refused(of, "more than 3 operands");
  program("add(x0, _): f32 -> t0").refused(of, "takes 1 scalars, found 0");
  program("add(x0, x1, #1): f32 -> t0", 1).refused(of, "takes 0 scalars, found 1");
  program("clamp(x0, #1): f32 -> t0", 1).refused(of, "takes 2 scalars, found 1");
  program("clamp(x0, #9): f32 -> t0", 9).refused(of, "1 to 4 scalars");
  program("add(x0, _, #1): f32 -> t0", 2).refused(of, "reads 1 scalars, found 2");
  program("add(x0, x2): f32 -> t0").refused(of, "its operands are f32 and bool");
  program("where(x0, x1, x1): f32 -> t0").refused(of, "its condition is f32, not bool");
  program("logical_and(x0, x1): bool -> t0", 0, TN_BOOL).refused(of, "does not take f32");
  program("exp(x0): f64 -> t0").refused(of, "step 0, exp: of f32 it does not make f64");
  program("lt(x0, x1): f32 -> t0").refused(of, "of f32 it does not make f32");
  program("exp(x0): f32 -> t0", 0, TN_F64).refused(of, "output 0 is f64, but step 0 makes f32");
}

// x0 has rows of 3, x1 and x2 one value for each, or the same for all.
BOOST_AUTO_TEST_CASE(programs_that_reduce) {
  const auto r = rows(
                     "sum(x0): f32; mul(x1, t0): f32; sub(x0, t1): f32; var[correction=0](t2): f32"
                     "; any(x2): bool -> t2, t3",
                     {2, 3}, {2, 1})
                     .read(with_rows);
  BOOST_TEST((r.reduces() && r.steps[0].member->reduces && !r.steps[1].member->reduces));
  BOOST_TEST((r.steps[3].has_attr && r.steps[3].attr == 0));
  BOOST_TEST((r.whole.rank == 2 && r.whole.shape[0] == 2 && r.whole.shape[1] == 3));
  const auto value = [&](FusedOperand::Kind kind, uint32_t i) { return r.is_row_value({kind, i}); };
  BOOST_TEST((!value(FusedOperand::input, 0) && value(FusedOperand::input, 1) &&
              !value(FusedOperand::input, 2)));
  BOOST_TEST((value(FusedOperand::step, 0) && value(FusedOperand::step, 1) &&
              !value(FusedOperand::step, 2) && value(FusedOperand::step, 3)));
  const auto column = r.expanded(tensor({2, 1})), line = r.expanded(tensor({3}));
  BOOST_TEST((column.shape[1] == 3 && column.strides[0] == 1 && column.strides[1] == 0));
  BOOST_TEST((line.rank == 2 && line.strides[0] == 0 && line.strides[1] == 1));
  // A plugin that does not ask for them gets none.
  rows("sum(x0): f32; any(x2): bool; mul(x1, x1): f32 -> t0", {2, 1})
      .refused(of, "the program reduces rows", TN_CODE_UNSUPPORTED);
}

BOOST_AUTO_TEST_CASE(programs_that_cannot_reduce) {
  const auto refused = [](const char* text, const char* why, std::initializer_list<int64_t> out) {
    rows((std::string(text) + "; any(x2): bool; neg(x1): f32; neg(x0): f32 -> t0").c_str(), out)
        .refused(with_rows, why);
  };
  refused("sum(x1): f32", "step 0, sum: reduces what has one value for each row", {2, 1});
  refused("sum(_): f32", "step 0, sum: takes 1 operands", {2, 1});
  refused("sum(x0, x0): f32", "takes 1 operands", {2, 1});
  refused("sum(x0, #1): f32", "takes 0 scalars, found 1", {2, 1});
  refused("sum(x0): i64", "of f32 it does not make i64", {2, 1});
  refused("sum(x2): bool", "of bool it does not make bool", {2, 1});
  refused("amax(x2): bool", "does not take bool", {2, 1});
  refused("any(x0): bool", "does not take f32", {2, 1});
  refused("sum(x0): f32", "output 0 has shape (2, 3), but the program makes (2, 1)", {2, 3});
  refused("sum(x0): f32", "output 0 has shape (2), but the program makes (2, 1)", {2});
  refused("neg(x0): f32", "output 0 has shape (2, 1), but the program makes (2, 3)", {2, 1});
  rows("sum[dims=1](x0): f32 -> t0", {2, 1})
      .refused(with_rows, "attribute \"dims\"", TN_CODE_UNSUPPORTED);
  rows("sum(x0): f32; sum(t0): f32 -> t1", {2, 1}).refused(with_rows, "step 1, sum: reduces what");
  rows("sum(x9): f32 -> t0", {2, 1}).refused(with_rows, "reads input 9, but there are 3");
  rows("sum(t0): f32 -> t0", {2, 1}).refused(with_rows, "reads the result of step 0");
  Ask("fused")
      .in(tensor({2, 3}))
      .in(tensor({2, 4}))
      .out(tensor({2, 1}))
      .text("program", "sum(x0): f32; sum(x1): f32 -> t0, t1")
      .out(tensor({2, 1}))
      .refused(with_rows, "the inputs do not broadcast; found (2, 4) and (2, 3)");
  Ask("fused")
      .in(tensor({}))
      .out(tensor({}))
      .text("program", "sum(x0): f32 -> t0")
      .refused(with_rows, "single numbers have no rows");
}

BOOST_AUTO_TEST_CASE(programs_that_do_not_fit_their_tensors) {
  program("exp(x0): f32; log(x0): f32 -> t0, t1").refused(of, "has 2 results, the request 1");
  program("exp(x0): f32 -> t0").in(tensor({3, 2})).refused(of, "found (3, 2) and (2, 3)");
  program("exp(x0): f32 -> t0").no_in().refused(of, "input 3 is missing");
  Ask("fused")
      .out(tensor({2}))
      .text("program", "exp(x0): f32 -> t0")
      .refused(of, "takes 1 to 24 inputs, found 0", TN_CODE_UNSUPPORTED);
  Ask unwanted("fused");
  unwanted.in(tensor({2})).no_out().text("program", "exp(x0): f32 -> t0");
  unwanted.refused(of, "no output is wanted");
  std::string many = "exp(x0): f32";
  for (int i = 0; i < 64; ++i) many += "; exp(x0): f32";
  program((many + " -> t0").c_str()).refused(of, "more than 64 steps", TN_CODE_UNSUPPORTED);
  std::string results = "exp(x0): f32";
  for (int i = 0; i < 8; ++i) results += "; exp(x0): f32";
  results += " -> t0";
  for (int i = 1; i < 9; ++i) results += ", t" + std::to_string(i);
  program(results.c_str()).refused(of, "more than 8 results", TN_CODE_UNSUPPORTED);
}

BOOST_AUTO_TEST_SUITE_END()
