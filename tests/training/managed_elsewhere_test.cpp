// Managers and saves whose process goes elsewhere: to another folder, into a child, to its end.
#include <filesystem>
#include <set>

#include <boost/test/unit_test.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "files.h"
#include "process/child.h"
#include "support/expect.h"
#include "training/managed.h"

BOOST_AUTO_TEST_SUITE(managed_elsewhere_test)

using namespace tenon;
using namespace tenon::test::managed;

namespace {

// The current folder, for a scope.
class CurrentFolder {
 public:
  explicit CurrentFolder(const std::filesystem::path& folder)
      : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  ~CurrentFolder() { std::filesystem::current_path(before_); }
  CurrentFolder(const CurrentFolder&) = delete;

 private:
  const std::filesystem::path before_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_folder_is_where_its_name_led_at_first) {
  TempFolder one, two;
  Run run;
  const CurrentFolder first(one.path());
  CheckpointManager manager("run", {.every_steps = 1});
  PendingSave pending = save_async("alone.h5", run.all);
  const CurrentFolder second(two.path());
  manager.step(run.all);
  manager.wait();
  pending.wait();
  BOOST_TEST(step_in(one / "run/step-000000000001.h5") == 1);
  BOOST_TEST(step_in(one / "alone.h5") == 0);
  BOOST_TEST(names_in(two.path()).empty());
}

BOOST_AUTO_TEST_CASE(a_forked_child_cannot_use_its_parents_manager) {
  TempFolder folder;
  Run run;
  CheckpointManager manager(folder.path(), {.every_steps = 1});
  manager.step(run.all);
  const pid_t child = fork();
  if (child == 0) {
    int refused = 0;
    const auto count = [&](auto&& body) {
      try {
        body();
      } catch (const CheckpointError& error) {
        refused += has(error.what(), "made by the process that this one was forked from");
      }
    };
    count([&] { manager.step(run.all); });
    count([&] { manager.save(run.all); });
    count([&] { manager.resume(run.all); });
    _exit(refused);
  }
  int status = -1;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_TEST(WEXITSTATUS(status) == 3);
  manager.step(run.all);
  manager.wait();
  BOOST_TEST((names_in(folder.path()) ==
              std::set<std::string>{"latest.h5", "step-000000000001.h5", "step-000000000002.h5"}));
}

// The child of the test below.
BOOST_AUTO_TEST_CASE(end_with_a_save,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  static PendingSave pending;  // made before HDF5 begins
  pending =
      save_async(std::getenv("TENON_TEST_FILE"), Checkpoint{.user = {{"large", ones({1 << 22})}}});
}
BOOST_AUTO_TEST_CASE(a_save_that_nobody_waits_for_is_whole_when_the_program_has_ended) {
  TempFolder folder;
  for (int i = 0; i < 5; ++i) {
    const std::filesystem::path path = folder / std::to_string(i);
    const Outcome child =
        run_alone("managed_elsewhere_test/end_with_a_save", {"TENON_TEST_FILE=" + path.string()});
    BOOST_TEST(child.status == 0, child.output);
    Checkpoint found;
    load(path, found);
    BOOST_TEST(found.user.at("large").tensor().numel() == 1 << 22);
  }
}

BOOST_AUTO_TEST_SUITE_END()
