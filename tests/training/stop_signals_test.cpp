// Signals with which a cluster announces that it will end a process: the run is saved before.
#include <boost/test/unit_test.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "files.h"
#include "process/child.h"
#include "support/expect.h"
#include "support/sanitized.h"
#include "training/managed.h"

BOOST_AUTO_TEST_SUITE(stop_signals_test)

using namespace tenon;
using namespace tenon::test::managed;
using test::require_error;

BOOST_AUTO_TEST_CASE(signals_ask_for_a_save) {
  TempFolder folder;
  Run run;
  {
    CheckpointManager manager(folder.path(), {.on_signals = true});
    require_error<ValueError>([&] { CheckpointManager(folder / "other", {.on_signals = true}); },
                              "another one has on_signals");
    BOOST_TEST(manager.step(run.all));
    BOOST_TEST(!manager.latest().has_value());
    raise(SIGUSR1);
    BOOST_TEST(manager.step(run.all));
    BOOST_TEST(manager.step(run.all));
    manager.wait();
    BOOST_TEST(step_in(manager.latest().value()) == 2);
    raise(SIGTERM);
    BOOST_TEST(!manager.step(run.all));
    BOOST_TEST(step_in(manager.latest().value()) == 4);
  }
  struct sigaction now {};
  sigaction(SIGUSR1, nullptr, &now);
  BOOST_TEST((now.sa_handler == SIG_DFL));
  CheckpointManager again(folder / "again", {.on_signals = true});
  BOOST_TEST(again.step(run.all));  // it has not been asked
}

BOOST_AUTO_TEST_CASE(signals_to_a_child_of_the_process_do_what_they_did_before) {
  // It keeps a signal back until the forked child calls something, and that may be nothing.
  if (test::kThreadSanitized) return;
  TempFolder folder;
  Run run;
  const auto before = signal(SIGTERM, SIG_DFL);  // Boost.Test makes an error of it
  {
    CheckpointManager manager(folder.path(), {.on_signals = true});
    for (int number : {SIGTERM, SIGUSR1}) {
      const pid_t child = fork();
      if (child == 0) {
        raise(number);
        _exit(0);
      }
      int status = 0;
      BOOST_REQUIRE(waitpid(child, &status, 0) == child);
      BOOST_TEST((WIFSIGNALED(status) && WTERMSIG(status) == number), number);
    }
    BOOST_TEST(manager.step(run.all));
    BOOST_TEST(!manager.latest().has_value());
  }
  signal(SIGTERM, before);
}

// The child of the test below.
BOOST_AUTO_TEST_CASE(end_by_two_signals,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  signal(SIGTERM, SIG_DFL);  // what Boost.Test makes an error of
  TempFolder folder;
  Run run;
  CheckpointManager manager(folder.path(), {.on_signals = true});
  raise(SIGTERM);
  BOOST_TEST(!manager.step(run.all));
  std::filesystem::remove_all(folder.path());
  raise(SIGTERM);
}
BOOST_AUTO_TEST_CASE(a_second_signal_ends_the_process) {
  const Outcome child = run_alone("stop_signals_test/end_by_two_signals");
  BOOST_TEST(child.status == 1000 + SIGTERM, child.output);
}

// The child of the test below.
BOOST_AUTO_TEST_CASE(end_by_a_late_signal,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  signal(SIGTERM, SIG_DFL);
  TempFolder folder;
  Run run;
  {
    CheckpointManager manager(folder.path(), {.on_signals = true});
    manager.step(run.all);
    raise(SIGTERM);  // after the last step
    std::filesystem::remove_all(folder.path());
  }
  BOOST_ERROR("the signal was lost");
}
BOOST_AUTO_TEST_CASE(a_signal_after_the_last_step_is_not_lost) {
  const Outcome child = run_alone("stop_signals_test/end_by_a_late_signal");
  BOOST_TEST(child.status == 1000 + SIGTERM, child.output);
}

namespace {
int seen = 0;
void see(int) { ++seen; }
}  // namespace

BOOST_AUTO_TEST_CASE(a_handler_that_the_program_installs_meanwhile_stays) {
  TempFolder folder;
  const auto before = signal(SIGUSR1, SIG_DFL);
  {
    CheckpointManager manager(folder.path(), {.on_signals = true});
    signal(SIGUSR1, see);
  }
  raise(SIGUSR1);
  BOOST_TEST(seen == 1);
  signal(SIGUSR1, before);
}

BOOST_AUTO_TEST_SUITE_END()
