// What becomes of processes that fork or end: scenarios/ holds the programs.
#include <cstdlib>

#include <boost/test/unit_test.hpp>

#include "child.h"
#include "places.h"

BOOST_AUTO_TEST_SUITE(ending_test)

namespace {

Outcome run(const std::string& scenario) {
  const std::string folder = tenon::test::build_dir() + "/tests/";
  std::vector<std::string> environment{"TENON_PLUGIN_PATH=" + folder + "sim:" + folder + "process"};
  // Memory that other threads used at a fork, or detached threads at the end, has no owner any
  // more: the address sanitizer would call it a leak.
  if (const char* options = std::getenv("ASAN_OPTIONS"))
    environment.push_back("ASAN_OPTIONS=" + std::string(options) + ":detect_leaks=0");
  return run_child({folder + "process/process_scenarios", scenario}, environment);
}

}  // namespace

// The address sanitizer (seen with GCC 12's) does not free the locks of its own allocator in a
// child: where another thread allocated at the moment of the fork, the child hangs at its first
// `new`. Under it, such programs show nothing.
struct AllocatorForks {
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
#if defined(__SANITIZE_ADDRESS__)
    boost::test_tools::assertion_result result(false);
    result.message()
        << "the address sanitizer's allocator does not survive a fork beside threads that allocate";
    return result;
#else
    return true;
#endif
  }
};

#define ENDS_WELL(scenario, expected, ...)                    \
  BOOST_AUTO_TEST_CASE(scenario __VA_OPT__(, ) __VA_ARGS__) { \
    const Outcome outcome = run(#scenario);                   \
    BOOST_TEST(outcome.status == 0);                          \
    BOOST_TEST(outcome.output == expected);                   \
  }
#define FORKS_WELL(scenario) \
  ENDS_WELL(scenario, "", *boost::unit_test::precondition(AllocatorForks()))

ENDS_WELL(child_of_a_process_that_computed, "")
FORKS_WELL(children_of_a_process_whose_threads_compute)
FORKS_WELL(children_of_a_process_whose_threads_open_devices)
FORKS_WELL(children_of_a_process_whose_threads_train)
FORKS_WELL(children_of_a_process_whose_threads_share_tensors)
FORKS_WELL(children_of_processes_whose_threads_use_the_library_first)
FORKS_WELL(locks_end_while_their_process_forks)
FORKS_WELL(children_of_a_process_that_computes_again)
FORKS_WELL(children_of_a_process_that_saves_programs)
ENDS_WELL(many_locks_end, "")
ENDS_WELL(members_stop_in_the_order_in_which_they_joined, "")
FORKS_WELL(child_in_a_loop_over_a_loader)
ENDS_WELL(child_of_a_process_with_a_device_of_its_own, "")
ENDS_WELL(static_object_computes, "computed")
ENDS_WELL(static_object_uses_a_closed_device, "refused\nrefused\nrefused\nrefused\n")
ENDS_WELL(detached_threads_compute_on, "")
ENDS_WELL(a_worker_ends_the_program, "")
ENDS_WELL(a_data_set_ends_the_program, "")
ENDS_WELL(another_thread_ends_the_program, "")
ENDS_WELL(saved_at_exit, "saved saved saved ")
ENDS_WELL(vendor_devices_at_exit, "drain\nshutdown\n")

BOOST_AUTO_TEST_SUITE_END()
