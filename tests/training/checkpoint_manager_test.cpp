// Checkpoints at intervals: which are written, which stay, and from which a run goes on.
#include <chrono>
#include <cmath>
#include <set>

#include <boost/test/unit_test.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "files.h"
#include "serialization/sealed.h"
#include "support/expect.h"
#include "training/managed.h"

BOOST_AUTO_TEST_SUITE(checkpoint_manager_test)

using namespace tenon;
using namespace tenon::test::managed;
using test::require_error;

BOOST_AUTO_TEST_CASE(the_last_and_the_best_stay) {
  for (bool async : {true, false}) {
    TempFolder folder;
    const CheckpointManagerOptions options{.every_steps = 2, .keep = 2, .async = async};
    Run run;
    {
      CheckpointManager manager(folder / "a/b", options);
      BOOST_TEST(!manager.resume(run.all).has_value());
      BOOST_TEST(!manager.latest().has_value());
      const double losses[] = {9, 9, 8, NAN, 0, 3, 9, 5, 1, 4, 9};
      for (double loss : losses) BOOST_TEST(manager.step(run.all, loss));
      manager.wait();
      BOOST_TEST(manager.latest()->filename() == "step-000000000010.h5");
      BOOST_TEST(step_in(manager.best().value()) == 6);  // of those that were saved
    }
    BOOST_TEST((names_in(folder / "a/b") == std::set<std::string>{"best.h5", "latest.h5",
                                                                  "step-000000000008.h5",
                                                                  "step-000000000010.h5"}));
    BOOST_TEST(step_in(folder / "a/b/latest.h5") == 10);
    // The next process knows how good the best was.
    Run next;
    CheckpointManager manager(folder / "a/b", options);
    manager.resume(next.all);
    BOOST_TEST(next.all.step == 10);
    BOOST_TEST(next.weights() == run.weights(), boost::test_tools::per_element());
    manager.save(next.all, 3.5);
    manager.wait();
    BOOST_TEST(step_in(manager.best().value()) == 6);
    next.all.step = 11;
    manager.save(next.all, 2.5);
    manager.wait();
    BOOST_TEST(step_in(manager.best().value()) == 11);
  }
  TempFolder folder;
  Run run;
  CheckpointManager manager(folder.path(), {.mode = "max", .async = false});
  for (double accuracy : {0.5, 0.75, 0.625}) {
    ++run.all.step;
    manager.save(run.all, accuracy);
  }
  BOOST_TEST(step_in(folder / "best.h5") == 2);
}

BOOST_AUTO_TEST_CASE(time_counts_as_well_as_steps) {
  TempFolder folder;
  Run run;
  CheckpointManager always(folder / "always", {.every_minutes = 1e-12, .async = false}),
      never(folder / "never", {.every_minutes = 1e12});
  for (int i = 0; i < 2; ++i) always.step(run.all), never.step(run.all);
  BOOST_TEST((names_in(folder / "always") ==
              std::set<std::string>{"latest.h5", "step-000000000001.h5", "step-000000000003.h5"}));
  BOOST_TEST(names_in(folder / "never").empty());
}

BOOST_AUTO_TEST_CASE(damaged_files_are_skipped_and_named) {
  TempFolder folder;
  Run run;
  {
    CheckpointManager manager(folder.path(), {.every_steps = 1, .async = false});
    for (int i = 0; i < 3; ++i) {
      run.train();
      manager.step(run.all);
    }
  }
  const auto file = [&](int step) {
    return folder / ("step-00000000000" + std::to_string(step) + ".h5");
  };
  write_bytes(file(3), read_bytes(file(3)).substr(0, 1000));
  std::string flipped = read_bytes(file(2));
  flipped[2000] ^= 1;
  write_bytes(file(2), flipped);
  write_bytes(folder / "step-x.h5", "not one of these");
  Run next;
  CheckpointManager manager(folder.path(), {.every_steps = 1, .async = false});
  manager.resume(next.all);
  BOOST_TEST(next.all.step == 1);
  BOOST_TEST(manager.skipped().size() == 2u);
  BOOST_TEST(has(manager.skipped().at(0), "step-000000000003.h5': the file is cut off"));
  BOOST_TEST(has(manager.skipped().at(1), "step-000000000002.h5': its checksum does not match"));
  manager.step(next.all);  // replaces the damaged one
  BOOST_TEST(step_in(file(2)) == 2);
  BOOST_TEST(manager.latest()->filename() == "step-000000000002.h5");

  for (int step : {1, 2}) write_bytes(file(step), "");
  require_error<CheckpointError>([&] { manager.resume(next.all); }, folder.path().string(),
                                 "none of its 3 checkpoints can be read; move them away",
                                 "step-000000000002.h5");
}

// What cannot be read here and now may be whole: to go on from an older one would throw steps away.
BOOST_AUTO_TEST_CASE(files_that_may_be_whole_are_not_skipped) {
  TempFolder folder;
  Run run;
  {
    CheckpointManager manager(folder.path(), {.every_steps = 1, .async = false});
    for (int i = 0; i < 2; ++i) manager.step(run.all);
  }
  const auto newest = folder / "step-000000000002.h5";
  const std::string written = read_bytes(newest);
  CheckpointManager manager(folder.path(), {.every_steps = 1, .async = false});
  const auto require_refusal = [&](const char* why) {
    require_error<CheckpointError>([&] { manager.resume(run.all); }, folder.path().string(),
                                   "whether a checkpoint is whole cannot be seen", why,
                                   "step-000000000002.h5");
    BOOST_TEST(manager.skipped().empty());
  };
  std::string changed = written;
  changed[8] = 99;
  reseal(changed);
  write_bytes(newest, changed);
  require_refusal("it has format version 99, and this build reads version 1");

  write_bytes(newest, without_index(written));
  setenv("TENON_HDF5_READER", "/no/such/reader", 1);
  require_refusal("the program for that cannot be started");
  unsetenv("TENON_HDF5_READER");
  manager.resume(run.all);
  BOOST_TEST(run.all.step == 2);
}

BOOST_AUTO_TEST_CASE(two_runs_are_not_mixed) {
  TempFolder folder;
  Run run;
  CheckpointManager(folder.path()).save(run.all);
  CheckpointManager manager(folder.path());
  require_error<CheckpointError>([&] { manager.save(run.all); }, folder.path().string(),
                                 "it has 1 checkpoints of an earlier run; call resume(run) first");
  // One that does not fit is no damage.
  optim::Adam adam(run.net.parameters());
  Checkpoint other{.model = run.net, .optimizer = adam};
  require_error<StateDictError>([&] { manager.resume(other); }, "it is of type SGD in the file");
  manager.resume(run.all);
  manager.save(run.all);
}

BOOST_AUTO_TEST_CASE(errors_of_a_save_reach_the_next_call) {
  TempFolder folder;
  Run run;
  CheckpointManager manager(folder.path(), {.every_steps = 1});
  std::filesystem::create_directory(folder / "step-000000000001.h5");
  manager.step(run.all);
  require_error<CheckpointError>([&] { manager.save(run.all); }, "step-000000000001.h5",
                                 "it is a folder");
  // It has begun nevertheless, to the same file.
  require_error<CheckpointError>([&] { manager.wait(); }, "it is a folder");
  manager.step(run.all);
  manager.wait();
  BOOST_TEST(step_in(manager.latest().value()) == 2);
  for (const auto& [options, text] :
       {std::pair(CheckpointManagerOptions{.every_steps = -1}, "every_steps is -1"),
        {CheckpointManagerOptions{.every_minutes = NAN}, "every_minutes is nan"},
        {CheckpointManagerOptions{.keep = 0}, "keep is 0; it has to be at least 1"},
        {CheckpointManagerOptions{.mode = "least"}, "mode is \"least\""}})
    require_error<ValueError>([&] { CheckpointManager(folder.path(), options); }, text);
  write_bytes(folder / "file", "");
  require_error<CheckpointError>([&] { CheckpointManager(folder / "file/x"); },
                                 "cannot make the folder");
}

BOOST_AUTO_TEST_CASE(files_of_others_stay) {
  TempFolder folder;
  Run run;
  // None of these is a name that a manager gives.
  const std::vector<std::string> others = {"step-2.h5", "step-0000000000002.h5", "step-x.h5",
                                           "step-000000000002.h5.bak"};
  for (const std::string& name : others) write_bytes(folder / name, "mine");
  // This one is, but a folder is no checkpoint.
  std::filesystem::create_directories(folder / "step-000000000001.h5/x");
  CheckpointManager manager(folder.path(), {.every_steps = 1, .keep = 1, .async = false});
  run.all.step = 4;
  for (int i = 0; i < 3; ++i) manager.step(run.all);
  for (const std::string& name : others) BOOST_TEST(read_bytes(folder / name) == "mine", name);
  BOOST_TEST(std::filesystem::exists(folder / "step-000000000001.h5/x"));
  BOOST_TEST(!std::filesystem::exists(folder / "step-000000000006.h5"));
}

BOOST_AUTO_TEST_CASE(an_old_file_that_cannot_be_removed_stops_nothing) {
  TempFolder folder;
  Run run;
  CheckpointManager manager(folder.path(), {.every_steps = 1, .keep = 1, .async = false});
  manager.step(run.all);
  std::filesystem::remove(folder / "step-000000000001.h5");
  std::filesystem::create_directories(folder / "step-000000000001.h5/x");
  for (int i = 0; i < 2; ++i) manager.step(run.all);
  BOOST_TEST((names_in(folder.path()) ==
              std::set<std::string>{"latest.h5", "step-000000000001.h5", "step-000000000003.h5"}));
}

BOOST_AUTO_TEST_CASE(what_killed_processes_left_is_removed) {
  TempFolder folder;
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  BOOST_REQUIRE(waitpid(gone, nullptr, 0) == gone);
  const std::string ending = ".tmp." + std::to_string(gone) + ".0";
  // The step that was being saved may never come again.
  write_bytes(folder / (".step-000000000007.h5" + ending), "");
  write_bytes(folder / (".best.h5" + ending), "");
  const std::set<std::string> others = {".step-7.h5" + ending, ".step-000000000007.h5.tmp.1.0",
                                        ".step-000000000007.h5.tmp.x"};
  for (const std::string& name : others) write_bytes(folder / name, "");
  CheckpointManager manager(folder.path());
  BOOST_TEST((names_in(folder.path()) == others));
}

BOOST_AUTO_TEST_CASE(a_run_that_went_back_goes_on_from_where_it_was) {
  TempFolder folder;
  Run run;
  const CheckpointManagerOptions options{.every_steps = 1, .keep = 3, .async = false};
  const auto file = [&](int step) {
    return folder / ("step-00000000000" + std::to_string(step) + ".h5");
  };
  {
    CheckpointManager manager(folder.path(), options);
    for (int i = 0; i < 5; ++i) manager.step(run.all);
    run.all.step = 1;  // as after a load of another file
    manager.step(run.all);
    BOOST_TEST(
        (names_in(folder.path()) == std::set<std::string>{"latest.h5", file(2).filename(),
                                                          file(4).filename(), file(5).filename()}));
    BOOST_TEST(manager.latest()->filename() == file(2).filename());
  }
  // No matter how coarse the clock is.
  using namespace std::chrono_literals;
  const auto now = std::filesystem::last_write_time(file(2));
  for (int step : {4, 5}) std::filesystem::last_write_time(file(step), now - 1h);
  {
    CheckpointManager manager(folder.path(), options);
    manager.resume(run.all);
    BOOST_TEST(run.all.step == 2);
    manager.step(run.all);
    BOOST_TEST(
        (names_in(folder.path()) == std::set<std::string>{"latest.h5", file(2).filename(),
                                                          file(3).filename(), file(5).filename()}));
  }
  // A later one that was written after the latest is where a process was killed.
  std::filesystem::last_write_time(file(5), now + 1h);
  CheckpointManager manager(folder.path(), options);
  manager.resume(run.all);
  BOOST_TEST(run.all.step == 5);
}

BOOST_AUTO_TEST_CASE(a_folder_has_one_manager) {
  TempFolder folder;
  Run run;
  {
    CheckpointManager manager(folder.path());
    require_error<CheckpointError>([&] { CheckpointManager second(folder.path()); },
                                   folder.path().string(), "another CheckpointManager uses it");
    manager.save(run.all);
    manager.wait();
  }
  CheckpointManager next(folder.path());
  BOOST_TEST(next.resume(run.all).has_value());
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_gone_is_named) {
  TempFolder folder;
  Run run;
  CheckpointManager manager(folder / "runs", {.every_steps = 1, .async = false});
  std::filesystem::remove_all(folder / "runs");
  require_error<CheckpointError>([&] { manager.resume(run.all); }, (folder / "runs").string(),
                                 "cannot list its files");
  require_error<CheckpointError>([&] { manager.step(run.all); }, "there is no folder");
  BOOST_TEST(!manager.best().has_value());
  // The names that follow a save cannot be set.
  std::filesystem::create_directories(folder / "runs/latest.h5/x");
  require_error<CheckpointError>([&] { manager.step(run.all); }, (folder / "runs").string(),
                                 "latest.h5");
  std::filesystem::remove_all(folder / "runs/latest.h5");
  std::filesystem::create_symlink("best.h5", folder / "runs/best.h5");  // to itself
  BOOST_TEST(!manager.best().has_value());
  manager.step(run.all, 1.0);
  BOOST_TEST(step_in(manager.best().value()) == 3);
  BOOST_TEST((names_in(folder / "runs") == std::set<std::string>{"best.h5", "latest.h5",
                                                                 "step-000000000002.h5",
                                                                 "step-000000000003.h5"}));
}

BOOST_AUTO_TEST_CASE(steps_count_and_are_saved_after_a_save_that_failed) {
  TempFolder folder;
  Run run;
  CheckpointManager manager(folder.path(), {.every_steps = 2});
  std::filesystem::create_directory(folder / "step-000000000002.h5");
  int errors = 0;
  for (int i = 0; i < 4; ++i) {
    try {
      manager.step(run.all);
    } catch (const CheckpointError& error) {
      ++errors;
      BOOST_TEST(has(error.what(), "step-000000000002.h5': it is a folder"));
    }
    BOOST_TEST(run.all.step == i + 1);
  }
  manager.wait();
  BOOST_TEST(errors == 1);
  BOOST_TEST(step_in(manager.latest().value()) == 4);
}

BOOST_AUTO_TEST_CASE(a_save_is_made_after_one_that_failed_behind_the_training) {
  TempFolder folder;
  Run run;
  CheckpointManager manager(folder.path());
  std::filesystem::create_directory(folder / "step-000000000001.h5");
  run.all.step = 1;
  manager.save(run.all);
  run.all.step = 2;
  require_error<CheckpointError>([&] { manager.save(run.all); }, "step-000000000001.h5");
  manager.wait();
  BOOST_TEST(step_in(manager.latest().value()) == 2);
}

BOOST_AUTO_TEST_CASE(old_files_go_even_if_the_newest_gets_no_name) {
  TempFolder folder;
  Run run;
  CheckpointManager manager(folder.path(), {.every_steps = 1, .keep = 2, .async = false});
  std::filesystem::create_directory(folder / "latest.h5");
  for (int i = 0; i < 4; ++i)
    require_error<CheckpointError>([&] { manager.step(run.all); }, "latest.h5");
  BOOST_TEST((names_in(folder.path()) ==
              std::set<std::string>{"latest.h5", "step-000000000003.h5", "step-000000000004.h5"}));
}

BOOST_AUTO_TEST_CASE(saved_behind_the_training_and_resumed_it_is_the_same_run) {
  TempFolder folder;
  manual_seed(3);
  Run whole;
  const std::vector<float> start = whole.weights();
  for (int i = 0; i < 20; ++i) whole.train();
  manual_seed(3);
  {
    Run first;
    CheckpointManager manager(folder.path(), {.every_steps = 3});
    for (int i = 0; i < 14; ++i) {
      first.train();
      manager.step(first.all);
    }
  }
  Run second;
  CheckpointManager manager(folder.path(), {.every_steps = 3});
  manager.resume(second.all);
  BOOST_TEST(second.all.step == 12);
  while (second.all.step < 20) {
    second.train();
    manager.step(second.all);
  }
  BOOST_TEST(second.weights() == whole.weights(), boost::test_tools::per_element());
  BOOST_TEST(second.weights() != start);
}

BOOST_AUTO_TEST_SUITE_END()
