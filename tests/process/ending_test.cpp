// What becomes of processes that fork or end: scenarios/ holds the programs.
#include <boost/test/unit_test.hpp>

#include <cstdlib>

#include "child.h"
#include "places.h"

namespace {

Outcome run(const std::string& scenario) {
  const std::string folder = tenon::test::build_dir() + "/tests/";
  std::vector<std::string> environment{"TENON_PLUGIN_PATH=" + folder + "sim:" + folder + "process"};
  // What other threads had in hand at a fork, and detached ones at the end, is nobody's.
  if (const char* options = std::getenv("ASAN_OPTIONS"))
    environment.push_back("ASAN_OPTIONS=" + std::string(options) + ":detect_leaks=0");
  return run_child({folder + "process/process_scenarios", scenario}, environment);
}

}  // namespace

#define ENDS_WELL(scenario, expected)       \
  BOOST_AUTO_TEST_CASE(scenario) {          \
    const Outcome outcome = run(#scenario); \
    BOOST_TEST(outcome.status == 0);        \
    BOOST_TEST(outcome.output == expected); \
  }

ENDS_WELL(child_of_a_process_that_computed, "")
ENDS_WELL(children_of_a_process_whose_threads_compute, "")
ENDS_WELL(children_of_a_process_whose_threads_train, "")
ENDS_WELL(locks_end_while_their_process_forks, "")
ENDS_WELL(child_in_a_loop_over_a_loader, "")
ENDS_WELL(child_of_a_process_with_a_device_of_its_own, "")
ENDS_WELL(static_object_computes, "computed")
ENDS_WELL(static_object_uses_a_closed_device, "refused\nrefused\nrefused\nrefused\n")
ENDS_WELL(detached_threads_compute_on, "")
ENDS_WELL(vendor_devices_at_exit, "drain\nshutdown\n")
