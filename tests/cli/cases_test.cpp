// PyTorch's results in a folder of case files beside the repository, which TENON_CASES names: other
// numbers than those of tests/reference/cases, drawn for the same families.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <boost/test/unit_test.hpp>

#include "cli/conformance_run.h"
#include "support/sanitized.h"
#include "support/skipped.h"

BOOST_AUTO_TEST_SUITE(cases_test)

using namespace tenon::test::conformance_run;

namespace {

std::string folder_of_cases() {
  const char* folder = std::getenv("TENON_CASES");
  return folder ? folder : "";
}

// Skips a test by name where there is no such folder.
struct HasCases {
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
    return tenon::test::skipped_unless(std::filesystem::is_directory(folder_of_cases()),
                                       "TENON_CASES names no folder of reference cases");
  }
};

void require_all_right(const std::string& device, const std::string& environment) {
  if (tenon::test::kSanitized) return;  // the same operators run in tests/ops
  const Folder folder;
  require_line(
      run(folder, device + "--section cases --no-check --cases '" + folder_of_cases() + "'", "",
          environment),
      0, {" 0 failed"});
}

}  // namespace

BOOST_AUTO_TEST_CASE(on_the_cpu, *boost::unit_test::precondition(HasCases())) {
  require_all_right("", "");
}
BOOST_AUTO_TEST_CASE(on_the_cpu_without_onednn, *boost::unit_test::precondition(HasCases())) {
  require_all_right("", "TENON_DISABLE=onednn");
}
BOOST_AUTO_TEST_CASE(on_sim, *boost::unit_test::precondition(HasCases())) {
  require_all_right(plugin("sim/libtenon_sim.so"), "");
}

BOOST_AUTO_TEST_SUITE_END()
