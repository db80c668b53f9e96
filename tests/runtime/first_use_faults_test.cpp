// One allocation that fails, at each point of the first use of a device: finding its plugin,
// loading it, opening the device, the first plan. The caller gets an error or nothing goes wrong,
// and afterwards the same process works.
#include <cstdio>

#include <boost/test/unit_test.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "fuzz.h"
#include "support/expect.h"
#include "support/failing_allocations.h"

using namespace tenon;
using namespace tenon::test;

namespace {

enum Ending { worked = 0, told = 1, no_such_point = 2, stuck = 3 };

// In a process of its own: device and plugin are opened with the n-th allocation failing, and then
// used.
Ending open_in_child(const char* device, int64_t n, int64_t* allocations) {
  int ends[2];
  BOOST_REQUIRE(pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    for (int each : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE})
      signal(each, SIG_DFL);  // Boost's handlers would go on with the suite
    alarm(60);
    Ending ending = worked;
    counted = 0;
    failed = false;
    until_failure = n;
    try {
      ones({3}, {.device = device}).sum().item();
    } catch (const std::bad_alloc&) {
      ending = told;
    } catch (const Error&) {
      ending = told;
    }
    until_failure = 0;
    const int64_t count = counted;
    if (n && !failed) ending = no_such_point;
    try {
      for (auto* each : {device, "cpu:0"})
        if (ones({10}, {.device = each}).sum().item() != 10) ending = stuck;
    } catch (const std::exception& e) {
      std::printf("%s after allocation %ld failed: %s\n", device, static_cast<long>(n), e.what());
      ending = stuck;
    }
    if (write(ends[1], &count, sizeof count) != sizeof count) ending = stuck;
    std::fflush(stdout);
#if defined(__SANITIZE_ADDRESS__)
    _exit(ending);  // its search for leaks takes longer than all else
#else
    std::exit(ending);
#endif
  }
  close(ends[1]);
  int64_t count = 0;
  BOOST_TEST(read(ends[0], &count, sizeof count) == sizeof count, device << ", allocation " << n);
  if (allocations) *allocations = count;
  close(ends[0]);
  int status = 0;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) >= stuck)
    BOOST_ERROR(device << ": the process does not work after allocation " << n << " failed: status "
                       << status);
  return WIFEXITED(status) ? static_cast<Ending>(WEXITSTATUS(status)) : stuck;
}

void walk_first_use(const char* device) {
  const Deadline deadline;
  int64_t allocations = 0, errors = 0;
  BOOST_TEST(open_in_child(device, 0, &allocations) == worked);
  const int64_t points = each_point(allocations, 150, deadline, [&](int64_t n) {
    const auto ending = open_in_child(device, n, nullptr);
    errors += ending == told;
    return ending != no_such_point;
  });
  BOOST_TEST_MESSAGE(device << ": " << points << " points of about " << allocations << ", "
                            << errors << " errors");
  if (!deadline.over()) BOOST_TEST(errors > points / 2);
}

}  // namespace
BOOST_TEST_GLOBAL_FIXTURE(SimFolder);

BOOST_AUTO_TEST_CASE(the_first_use_of_the_cpu_survives_each_failed_allocation) {
  walk_first_use("cpu:0");
}
BOOST_AUTO_TEST_CASE(the_first_use_of_a_device_with_a_queue_survives_each_failed_allocation) {
  walk_first_use("sim:0");
}
