// What `tenon conformance` finds in a device that has little, and where an overlay hides.
#include <string>

#include <boost/test/unit_test.hpp>

#include "cli/conformance_run.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(conformance_faults_test)

using tenon::test::has;
using tenon::test::kSanitized;
using namespace tenon::test::conformance_run;

// It neither converts nor adds up: results are brought over as bytes.
BOOST_AUTO_TEST_CASE(values_are_compared_although_the_device_has_no_conversion) {
  if (kSanitized) return;  // which changes no results
  const Folder folder;
  for (const char* op : {"add", "softmax"})
    require_line(run(folder, poor() + "--dtype f32 --no-check --section layouts --op " + op), 0,
                 {" 0 failed"});
  const auto sums = run(folder, poor() + "--dtype f32 --no-check --op add", "wrong sums");
  require_line(sums, 1, {"FAILED cases: add ", "FAILED layouts: add ", "FAILED shapes: add "});
  require_line(run(folder, poor() + "--dtype f32 --no-check --op softmax", "wrong gradient"), 1,
               {"FAILED cases: softmax ", "gradient 0: element"});
}

BOOST_AUTO_TEST_CASE(what_takes_large_inputs_alone_is_compared) {
  if (kSanitized) return;  // which changes no results
  const Folder folder;
  const auto wrong = run(folder, faulty() + "--op relu --dtype f32", "wrong where it is large");
  require_line(wrong, 1, {"FAILED layouts: relu large and contiguous in f32: of ", ": output 0: "});
}

// Neither the cases nor random shapes have sizes of which all are multiples of 64.
BOOST_AUTO_TEST_CASE(what_takes_multiples_of_tiles_alone_is_compared) {
  if (kSanitized) return;  // which changes no results
  const Folder folder;
  const std::string matmul = faulty() + "--op matmul --dtype f32 --no-check ";
  const auto right =
      run(folder, matmul + "--json '" + (folder / "all.json") + "'", "has tiles of 64");
  require_line(right, 0, {"\nPlans of the overlay: matmul ", "sizes        4 passed, 0 failed"});
  require_line({0, slurp(folder / "all.json")}, 0,
               {"\"plans_of_overlay\": {\n  \"matmul\": ", "plans of the overlay computed "});
  BOOST_TEST(!has(right.out, "Never tried"), right.out);
  const auto wrong = run(folder, matmul, "wrong in tiles of 64");
  require_line(wrong, 1,
               {"FAILED sizes: matmul multiples of 8 to 256 in f32: of (64, 64) contiguous, (64, ",
                ": output 0: ", "\n  of (64, 128) contiguous, (128, 192) contiguous: "});
  for (const char* other : {"FAILED cases", "FAILED layouts", "FAILED shapes"})
    BOOST_TEST(!has(wrong.out, other), wrong.out);
  // An overlay may have nothing but the gradient.
  require_line(run(folder, faulty() + "--op sigmoid --dtype f32 --no-check --section sizes",
                   "wrong gradient in tiles of 64"),
               1, {"FAILED sizes: sigmoid multiples of 8 to 256 in f32: of (", ": gradient 0: "});
}

BOOST_AUTO_TEST_CASE(an_operator_of_which_an_overlay_makes_no_plan_is_named) {
  const Folder folder;
  const std::string sizes = faulty() + "--dtype f32 --no-check --section sizes ";
  const auto outcome = run(folder, sizes + "--op matmul", "has tiles that nobody needs");
  require_line(outcome, 1,
               {"\nNever tried, because the overlay refused each request, although it has the "
                "operator:\n  matmul: its tiles are of 1000003 x 1000003\n",
                "Nothing passed"});
  BOOST_TEST(!has(outcome.out, "Plans of the overlay"), outcome.out);
  // What it says of all operators that it does not have tells nothing.
  const auto none = run(folder, sizes + "--op relu", "has tiles that nobody needs");
  BOOST_TEST(!has(none.out, "Never tried"), none.out);
}

// Asked by the list of checks, before the first of them.
BOOST_AUTO_TEST_CASE(a_plugin_that_hangs_while_the_list_is_made_is_ended) {
  const Folder folder;
  require_line(run(folder, faulty() + "--op relu --limit 3", "hangs when it is asked"), 1,
               {"FAILED start: supports of plugin faulty did not end within 3 s and was killed "
                "(--limit)",
                "total        0 passed, 1 failed\n"});
}

BOOST_AUTO_TEST_CASE(to_give_the_same_bits_twice_is_not_to_be_right) {
  const Folder folder;
  const auto outcome = run(folder, faulty() + "--op relu --dtype f32", "has one size");
  require_line(outcome, 1,
               {"repeat       1 passed", "total        1 passed, 0 failed",
                "relu in f32 is not shown to be right: it gives the same bits twice"});
  require_line(run(folder, faulty() + "--op relu --section repeat", "has one size"), 0,
               {"total        1 passed, 0 failed"});
}

// An overlay that fails is left to the plugin below, but not where it is checked itself.
BOOST_AUTO_TEST_CASE(an_overlay_that_fails_to_plan_has_failed) {
  const Folder folder;
  const std::string cases = "--op relu --dtype f32 --section cases";
  require_line(
      run(folder, faulty() + cases, "fails to plan"), 1,
      {"FAILED cases: relu ", "faulty: the table of kernels is damaged", "0 passed, 4 failed"});
  require_line(run(folder, faulty() + cases, "makes no plan"), 1,
               {"FAILED cases: relu ", "plan_create", "0 passed, 4 failed"});
}

BOOST_AUTO_TEST_CASE(what_is_not_offered_says_what_was_refused) {
  const Folder folder;
  const auto softmax = run(folder, poor() + "--op softmax --dtype f32 --no-check --json '" +
                                       (folder / "all.json") + "'");
  require_line(softmax, 0, {"\n  softmax in f32: sum: poor: poor does not have it\n"});
  require_line({0, slurp(folder / "all.json")}, 0, {"\"refused\": \"sum\""});
  // What a function made of others was refused, not the function.
  const auto loss = run(
      folder, poor() + "--op kl_div --dtype f32 --no-check --json '" + (folder / "all.json") + "'");
  BOOST_TEST(has(loss.out, "\n  kl_div in f32: "), loss.out);
  BOOST_TEST(!has(slurp(folder / "all.json"), "\"refused\": \"kl_div\""));
  require_line(run(folder, poor() + "--op to --dtype f32 --no-check --section layouts"), 0,
               {"copy from f32 to f64: poor: poor computes in f32 only\n"});
  require_line(run(folder, faulty() + "--op relu --section cases", "none"), 0,
               {"relu in bf16, f16, f64: no plan of the overlay was used; relu: faulty has only"});
}

// Work that the host has given up: the device is lost, and with it the process.
BOOST_AUTO_TEST_CASE(the_checks_after_a_lost_device_are_run) {
  if (kSanitized) return;  // what is slow may count as stuck
  const Folder folder;
  // Work that only takes long on a busy machine must not count as stuck.
  setenv("TENON_CHECK_TIMEOUT", "3", 1);
  const auto outcome =
      run(folder, poor() + "--dtype f32 --section repeat --limit 30", "never ends");
  unsetenv("TENON_CHECK_TIMEOUT");
  require_line(outcome, 1, {"FAILED repeat: relu ", "an event was not reached", "\nsoftmax "});
  for (const char* later : {"FAILED repeat: add", "FAILED repeat: mul", "FAILED repeat: softmax"})
    BOOST_TEST(!has(outcome.out, later), outcome.out);
}

BOOST_AUTO_TEST_CASE(speed_needs_copies_of_bytes_alone) {
  if (kSanitized) return;  // which changes no results
  const Folder folder;
  const auto outcome = run(folder, poor() + "--speed --op mul --dtype f32");
  require_line(outcome, 0, {"\nmul ", "speed        2 passed, 0 failed\n"});
}

BOOST_AUTO_TEST_CASE(a_device_that_there_is_not_is_one_error) {
  const Folder folder;
  setenv("TENON_PLUGIN_PATH", (tenon::test::build_dir() + "/tests/conformance").c_str(), 1);
  const auto outcome = run(folder, "--device poor:7 --op add");
  unsetenv("TENON_PLUGIN_PATH");
  require_line(outcome, 1,
               {"FAILED start: the device: device poor:7 cannot be opened: there are 2 devices",
                "total        0 passed, 1 failed\n"});
}

BOOST_AUTO_TEST_CASE(what_is_asked_for_is_said) {
  const Folder folder;
  require_line(run(folder, "--op softmax_backward"), 1,
               {"softmax_backward is the gradient of softmax, and checked with --op softmax"});
  require_line(run(folder, poor() + "--level required --op sub --section cases --no-check"), 1,
               {"FAILED cases: sub ", "\nRequired, and not offered: sub\n"});
}

BOOST_AUTO_TEST_SUITE_END()
