// Saves that run while the training goes on.
#include <boost/test/unit_test.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "serialization/training_run.h"

BOOST_AUTO_TEST_SUITE(async_save_test)

using namespace tenon;
using namespace tenon::test::training_run;
using test::require_error;

BOOST_AUTO_TEST_CASE(a_save_runs_while_the_training_goes_on) {
  TempFolder folder;
  Run run;
  step(run.adam, run.net, 0);
  const std::string now = all_bits(folder / "now.h5", run.all);
  PendingSave pending = save_async(folder / "later.h5", run.all);
  for (int i = 1; i < 20; ++i) step(run.adam, run.net, i);
  pending.wait();
  BOOST_TEST(pending.ready());
  pending.wait();
  BOOST_TEST((read_bytes(folder / "later.h5") == now));
  PendingSave fails = save_async(folder / "none/x.h5", run.all);
  require_error<CheckpointError>([&] { fails.wait(); }, "there is no folder");
  fails.wait();  // once

  // A forked child has nothing to wait for.
  PendingSave shared =
      save_async(folder / "shared.h5", {.model = run.net, .user = {{"large", ones({1 << 21})}}});
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    const bool ready = shared.ready();
    shared.wait();
    _exit(ready && shared.ready() ? 0 : 1);
  }
  int status = -1;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
  shared.wait();
  BOOST_TEST(load(folder / "shared.h5").size() == 4u);
}

BOOST_AUTO_TEST_CASE(a_later_save_is_never_replaced_by_an_earlier_one) {
  TempFolder folder;
  const Tensor large = ones({1 << 23});  // takes longer to write than the next
  auto step_after = [&](auto&& second) {
    PendingSave first =
        save_async(folder / "x.h5", {.random = false, .step = 1, .user = {{"large", large}}});
    second(Checkpoint{.random = false, .step = 2});
    first.wait();
    Checkpoint found{.random = false};
    load(folder / "x.h5", found);
    return found.step;
  };
  BOOST_TEST(step_after([&](const Checkpoint& run) { save(folder / "x.h5", run); }) == 2);
  BOOST_TEST(step_after([&](const Checkpoint& run) {
               save_async(folder / "../" / folder.path().filename() / "x.h5", run).wait();
             }) == 2);
  // One that fails lets the next one go on.
  PendingSave first = save_async(folder / "none/x.h5", {});
  require_error<CheckpointError>([&] { save(folder / "none/x.h5", Checkpoint()); }, "no folder");
  require_error<CheckpointError>([&] { first.wait(); }, "no folder");
}

BOOST_AUTO_TEST_SUITE_END()
