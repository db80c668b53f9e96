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

const auto of = FusedRequest::from;

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
  program("sum(x0): f32 -> t0").refused(of, "no member \"sum\"", TN_CODE_UNSUPPORTED);
  program("exp(x0): f8 -> t0").refused(of, "no dtype \"f8\"", TN_CODE_UNSUPPORTED);
  program("exp[base=2](x0): f32 -> t0").refused(of, "attribute \"base\"", TN_CODE_UNSUPPORTED);
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
