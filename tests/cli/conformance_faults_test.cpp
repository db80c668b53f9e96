// What `tenon conformance` finds in a device that has little, and where an overlay hides.
#include <string>

#include <boost/test/unit_test.hpp>

#include "cli/conformance_run.h"

BOOST_AUTO_TEST_SUITE(conformance_faults_test)

using tenon::test::has;
using namespace tenon::test::conformance_run;

// It neither converts nor adds up: results are brought over as bytes.
BOOST_AUTO_TEST_CASE(values_are_compared_although_the_device_has_no_conversion) {
  const Folder folder;
  for (const char* op : {"add", "softmax"})
    require_line(run(folder, poor() + "--dtype f32 --no-check --op " + op), 0, {" 0 failed"});
  const auto sums = run(folder, poor() + "--dtype f32 --no-check --op add", "wrong sums");
  require_line(sums, 1, {"FAILED cases: add ", "FAILED layouts: add ", "FAILED shapes: add "});
  require_line(run(folder, poor() + "--dtype f32 --no-check --op softmax", "wrong gradient"), 1,
               {"FAILED cases: softmax ", "gradient 0: element"});
}

BOOST_AUTO_TEST_CASE(what_takes_large_inputs_alone_is_compared) {
  const Folder folder;
  const auto wrong = run(folder, faulty() + "--op relu --dtype f32", "wrong where it is large");
  require_line(wrong, 1, {"FAILED layouts: relu large and contiguous in f32: of ", ": output 0: "});
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

BOOST_AUTO_TEST_SUITE_END()
