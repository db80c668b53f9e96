// The file of a trace (TENON_TRACE=FILE.json), however its process ends and whatever else it is.
#include <csignal>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/core/base/log.h>
#include <tenon/core/error.h>
#include <tenon/tenon.h>

#include "support/expect.h"
#include "traced.h"

BOOST_AUTO_TEST_SUITE(trace_file_test)

using namespace tenon;
using namespace tenon::test;
namespace but = boost::unit_test;

#define ALONE *but::disabled() * but::label("alone")

namespace {
std::vector<std::string> files_beside(const PluginFolder& folder, const std::string& name) {
  std::vector<std::string> others;
  for (auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().filename() != name) others.push_back(entry.path().string());
  return others;
}
}  // namespace

BOOST_AUTO_TEST_CASE(ending, ALONE) {
  const std::string how = std::getenv("TENON_TEST_END");
  (ones({3}) + 1.0).wait();
  if (how == "fork") {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0; i < 4; ++i) (ones({3}) * 2.0).wait();
      _exit(0);
    }
    const pid_t idle = fork();
    if (idle == 0) _exit(0);
    int status;
    waitpid(child, &status, 0);
    waitpid(idle, &status, 0);
    (ones({3}) + 1.0).wait();
    return;
  }
  if (how == "exit") std::exit(0);
  if (how == "kill") std::raise(SIGKILL);
  if (how == "throw") std::set_terminate([] { std::signal(SIGABRT, SIG_DFL), std::abort(); });
  std::thread([] { throw 1; }).join();
}

BOOST_AUTO_TEST_CASE(a_file_is_valid_however_the_process_ends) {
  const PluginFolder folder;
  for (const std::string how : {"exit", "kill", "throw"}) BOOST_TEST_CONTEXT(how) {
      const std::string file = folder.file(how + ".json");
      const Outcome outcome = traced("trace_file_test/ending", file, {"TENON_TEST_END=" + how});
      BOOST_TEST((outcome.status == 0) == (how == "exit"), outcome.output);
      BOOST_TEST((counts_of(events_of(file), "run") == Counts{{"add", 1}, {"fill", 1}}));
    }
}

BOOST_AUTO_TEST_CASE(on_streams, ALONE) {
  const Tensor x = ones({3}, {.device = "sim:0"});
  (void)(x + 1.0).to_vector<float>();
  const Tensor nobody_waits = x * 2.0;
}

BOOST_AUTO_TEST_CASE(what_runs_on_a_stream_has_the_times_of_the_device) {
  const PluginFolder folder;
  const std::string file = folder.file("a.json");
  const Outcome outcome = traced("trace_file_test/on_streams", file,
                                 {"TENON_PLUGIN_PATH=" + build_dir() + "/tests/sim"});
  BOOST_REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  const auto events = events_of(file);
  const Counts runs{{"add", 1}, {"fill", 1}, {"mul", 1}};
  BOOST_TEST((counts_of(events, "run") == runs));
  BOOST_TEST((counts_of(events, "run on the device") == runs));
  BOOST_TEST((counts_of(events, "copy on the device") == counts_of(events, "copy")));
  // One after the other in a row of their own, and each after it was queued.
  std::map<std::string, double> queued;
  double free_from = 0;
  std::set<int64_t> rows;
  for (auto& e : events) {
    const double begins = e.at("ts").get<double>();
    if (e.at("cat") == "run") queued[e.at("name").get<std::string>()] = begins;
    if (!e.at("cat").get<std::string>().ends_with(" on the device")) continue;
    rows.insert(e.at("tid").get<int64_t>());
    BOOST_TEST(begins >= free_from - 0.001);
    free_from = begins + e.at("dur").get<double>();
    if (e.at("cat") == "run on the device")
      BOOST_TEST(free_from >= queued.at(e.at("name").get<std::string>()));
  }
  BOOST_TEST(rows.size() == 1u);
  BOOST_TEST(has(read_text(file), R"("args":{"name":"sim:0 stream"})"));
}

BOOST_AUTO_TEST_CASE(summing, ALONE) {
  std::vector<Tensor> parts = {ones({8}, {.device = "sim:0"}), ones({8}, {.device = "sim:1"})};
  nn::parallel::all_reduce_(parts);
  BOOST_TEST(parts[1].sum().item() == 16.0);
}

BOOST_AUTO_TEST_CASE(a_collective_is_an_event_of_each_device) {
  const PluginFolder folder;
  const std::string file = folder.file("a.json");
  const Outcome outcome =
      traced("trace_file_test/summing", file, {"TENON_PLUGIN_PATH=" + build_dir() + "/tests/sim"});
  BOOST_REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  const auto events = events_of(file);
  for (const std::string category : {"collective", "collective on the device"}) {
    std::multiset<std::string> devices;
    for (auto& e : events) {
      if (e.at("cat") != category) continue;
      BOOST_TEST(e.at("name") == "all_reduce");
      BOOST_TEST(e.at("args").at("by") == "sim");
      BOOST_TEST(e.at("args").at("bytes") == 32);
      devices.insert(e.at("args").at("device").get<std::string>());
    }
    BOOST_TEST((devices == std::multiset<std::string>{"sim:0", "sim:1"}), category);
  }
}

// The disposition of SIGXFSZ is as ever: a write of the program's own would end it.
BOOST_AUTO_TEST_CASE(with_room_for_some_events, ALONE) {
  std::signal(SIGXFSZ, SIG_DFL);  // Boost's handler would go on with the suite
  const rlimit limit{4000, 4000};
  setrlimit(RLIMIT_FSIZE, &limit);
  for (int i = 0; i < 100; ++i) (ones({3}) + 1.0).wait();
  BOOST_TEST((std::signal(SIGXFSZ, SIG_DFL) == SIG_DFL));
}

BOOST_AUTO_TEST_CASE(a_file_that_grows_too_large_ends_with_its_last_whole_event) {
  const PluginFolder folder;
  const Outcome outcome =
      traced("trace_file_test/with_room_for_some_events", folder.file("a.json"));
  BOOST_TEST(outcome.status == 0, outcome.output);
  BOOST_TEST(has(outcome.output, "a.json ends here, because it cannot be written: File too large"),
             outcome.output);
  BOOST_TEST(fs::file_size(folder.file("a.json")) <= 4000u);
  auto runs = counts_of(events_of(folder.file("a.json")), "run");
  BOOST_TEST((runs["add"] > 0 && runs["add"] < 100));
}

BOOST_AUTO_TEST_CASE(without_standard_error, ALONE) {
  close(2);
  (ones({3}) + 1.0).wait();
  log_message(TN_LOG_ERROR, "npu", "hot");
  std::fflush(nullptr);
  _exit(0);
}

BOOST_AUTO_TEST_CASE(what_a_process_without_standard_error_prints_stays_out_of_the_file) {
  const PluginFolder folder;
  const Outcome outcome = traced("trace_file_test/without_standard_error", folder.file("a.json"));
  BOOST_TEST(outcome.status == 0);
  BOOST_TEST(
      (counts_of(events_of(folder.file("a.json")), "run") == Counts{{"add", 1}, {"fill", 1}}));
}

BOOST_AUTO_TEST_CASE(a_pipe_is_refused_and_not_waited_for) {
  const PluginFolder folder;
  const std::string pipe = folder.file("a.json");
  BOOST_REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const Outcome outcome = traced("trace_file_test/computing", pipe, {}, 20);
  BOOST_TEST(outcome.status == 0, outcome.output);
  BOOST_TEST(has(outcome.output, "refused: TENON_TRACE: " + pipe + " is not a regular file"),
             outcome.output);
}

BOOST_AUTO_TEST_CASE(a_child_writes_into_a_file_of_its_own) {
  const PluginFolder folder;
  const Outcome outcome =
      traced("trace_file_test/ending", folder.file("a.json"), {"TENON_TEST_END=fork"});
  BOOST_REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  BOOST_TEST(
      (counts_of(events_of(folder.file("a.json")), "run") == Counts{{"add", 2}, {"fill", 2}}));
  const auto others = files_beside(folder, "a.json");
  BOOST_REQUIRE(others.size() == 1u);
  BOOST_TEST(others[0].starts_with(folder.file("a.")), others[0]);
  BOOST_TEST((counts_of(events_of(others[0]), "run") == Counts{{"fill", 4}, {"mul", 4}}));
}

BOOST_AUTO_TEST_CASE(a_file_in_use_is_left_to_its_process) {
  const PluginFolder folder;
  const int file = open(folder.write("a.json", "busy").c_str(), O_RDONLY);
  BOOST_REQUIRE(flock(file, LOCK_EX) == 0);
  const Outcome outcome =
      traced("trace_file_test/ending", folder.file("a.json"), {"TENON_TEST_END=exit"});
  close(file);
  BOOST_TEST(outcome.status == 0, outcome.output);
  BOOST_TEST(read_text(folder.file("a.json")) == "busy");
  const auto others = files_beside(folder, "a.json");
  BOOST_REQUIRE(others.size() == 1u);
  BOOST_TEST((counts_of(events_of(others[0]), "run") == Counts{{"add", 1}, {"fill", 1}}));
}

BOOST_AUTO_TEST_CASE(computing, ALONE) {
  try {
    ones({3}).wait();
  } catch (const Error& e) {
    std::printf("refused: %s\n", e.what());
    std::fflush(stdout);
  }
  BOOST_CHECK_THROW(ones({3}).wait(), Error);  // not only the first time
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_written_is_an_error) {
  const PluginFolder folder;
  for (const std::string& path :
       {folder.file("no/such/folder.json"), folder.path() + "/../.json/"}) {
    const Outcome outcome =
        traced("trace_file_test/computing", path + (path.ends_with('/') ? "x.json" : ""));
    BOOST_TEST(outcome.status == 0, outcome.output);
    BOOST_TEST(has(outcome.output, "refused: TENON_TRACE: the file " + path), outcome.output);
    BOOST_TEST(has(outcome.output, " cannot be written: No such file or directory"),
               outcome.output);
  }
}

BOOST_AUTO_TEST_SUITE_END()
