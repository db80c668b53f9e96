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

BOOST_AUTO_TEST_SUITE_END()
