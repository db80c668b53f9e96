// Checked mode (TENON_CHECK): a plugin that spoils memory, relies on what memory happens to hold,
// never ends or crashes is named, with the operator, its shapes and its module. The setting is read
// once, so each test runs in a process of its own.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/core/base/module_path.h>
#include <tenon/core/error.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "checked_joint.h"
#include "logged.h"
#include "process/child.h"
#include "support/expect.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(checked_test)

using namespace tenon;
using namespace tenon::test;
using namespace tenon::test::joint;

// ---- memory

BOOST_AUTO_TEST_CASE(memory_faults_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  for (auto& c : kDevices) {
    const Device device = open(c);
    BOOST_TEST(error_with("", device) == "");
    check_named("run_writes_behind", device,
                {"wrote outside of output 0: 1 byte behind the end of the buffer of $ bytes"});
    check_named("run_writes_before", device,
                {"wrote outside of output 0: 1 byte before the start of the buffer", "byte -1"});
    check_named("run_with_workspace_writes_behind_it", device,
                {"wrote outside of its workspace: 1 byte behind the end of the buffer of 100 bytes",
                 "byte 100"});
    check_named("run_changes_an_input", device, {"changed input 0, which it may only read"});
    check_named("run_leaves_an_element", device,
                {"did not write 1 of the ", "elements of output 0", "is number 0"});
  }
}

BOOST_AUTO_TEST_CASE(a_plugin_that_spoils_memory_is_named) {
  require_success("memory_faults_alone", {"TENON_CHECK=1"});
}

BOOST_AUTO_TEST_CASE(freed_memory_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  for (auto& c : kDevices) {
    const Device device = open(c);
    BOOST_TEST(error_with("run_with_workspace_keeps_it", device) == "");
    check_named("run_writes_into_what_it_kept", device,
                {"wrote into memory that was freed before: 1 byte inside a buffer of 100 bytes, "
                 "the first of them byte 3, which was the workspace of abs: (" +
                 std::to_string(size) + ",) on " + device.str()});
    // Only the blocks that were freed last are looked at after each run, the others before they are
    // used again.
    BOOST_TEST(error_with("run_with_workspace_keeps_it", device) == "");
    for (int i = 0; i < 50; ++i) BOOST_TEST(error_with("", device) == "");
    BOOST_TEST(error_with("run_writes_into_what_it_kept", device) == "");
    empty_cache(device);
    const std::string text = error_of([&] { synchronize(); });
    BOOST_TEST(has(text, "something wrote into memory on " + device.str() + " after it was freed"),
               text);
    BOOST_TEST(has(text, "it was the workspace of abs: ("), text);
  }
}

BOOST_AUTO_TEST_CASE(a_plugin_that_uses_freed_memory_is_named) {
  require_success("freed_memory_alone", {"TENON_CHECK=1"});
}

// With its guards, each block fills a segment of its own, so that no other block leads to it.
BOOST_AUTO_TEST_CASE(kept_until_the_end_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  for (auto& c : kDevices) {
    const Device device = open(c);
    for (int i = 0; i < 3; ++i) (void)full({(1 << 20) - 80}, 1.0).to(device).to_vector<float>();
  }
}

BOOST_AUTO_TEST_CASE(memory_that_is_kept_back_is_no_leak) {
  require_success("kept_until_the_end_alone", {"TENON_CHECK=1"});  // the address sanitizer looks
}

BOOST_AUTO_TEST_CASE(reliance_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  for (auto& c : kDevices) BOOST_TEST_CONTEXT(c.index) {
      const Device device = open(c);
      // Every buffer is aligned to 64 bytes and to no more.
      for (int i = 0; i < 10; ++i)
        BOOST_TEST(has(error_with("run_relies_on_more_alignment", device), "a wide store faulted"));
      Tensor y;
      {
        Environment broken("TENON_TEST_FAULT", "run_with_workspace_relies_on_zeros");
        y = abs(full({++size}, -2.0).to(device));
        BOOST_TEST(std::isnan(y.to_vector<float>()[0]));
      }
      // New memory and gaps hold no numbers.
      const Tensor fresh = empty({5}, {.device = device});
      for (float v : fresh.to_vector<float>()) BOOST_TEST(std::isnan(v));
      // A value is not taken for what was never written.
      const uint32_t pattern = 0x7ff47ff4;
      std::vector<float> values(7, 1);
      std::memcpy(&values[2], &pattern, sizeof pattern);
      const auto copied = abs(tensor(values).to(device)).to_vector<float>();
      BOOST_TEST(std::memcmp(copied.data(), values.data(), 7 * sizeof(float)) == 0);
    }
}

BOOST_AUTO_TEST_CASE(a_plugin_that_relies_on_what_memory_holds_computes_something_else) {
  require_success("reliance_alone", {"TENON_CHECK=1"});
}

BOOST_AUTO_TEST_CASE(nan_alone, *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  for (auto& c : kDevices) {
    const Device device = open(c);
    check_named("run_makes_a_nan", device,
                {"made a NaN of inputs that have none", "element 1 of output 0"});
    check_named("run_with_workspace_relies_on_zeros", device, {"made a NaN", "element 0"});
    const Tensor x = full({++size}, std::numeric_limits<double>::quiet_NaN()).to(device);
    BOOST_TEST(error_of([&] { (void)abs(x).to_vector<float>(); }) == "");
  }
}

BOOST_AUTO_TEST_CASE(the_first_nan_is_named_on_request) {
  require_success("nan_alone", {"TENON_CHECK=nan"});
  require_success("nan_alone", {"TENON_CHECK=1,nan"});
}

BOOST_AUTO_TEST_CASE(spoilt_before_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  for (auto& c : kDevices) {
    const Device device = open(c);
    const Tensor x = full({++size}, -2.0).to(device);
    synchronize();
    static_cast<float*>(impl_of(x).data())[size] = 1;  // nobody sees who did this
    (void)abs(x).to_vector<float>();
    const std::string text = error_of([&] { synchronize(); });
    BOOST_TEST(has(text, "something wrote outside of input 0"), text);
    BOOST_TEST(has(text, "before abs: (" + std::to_string(size) + ",) on " + device.str()), text);
  }
}

BOOST_AUTO_TEST_CASE(what_was_spoilt_before_a_run_is_not_said_of_the_run) {
  require_success("spoilt_before_alone", {"TENON_CHECK=1"});
}

// Memory that the host can only copy, of a plugin that does not copy.
BOOST_AUTO_TEST_CASE(blind_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  for (auto& c : {kDevices[2], kDevices[3]}) {
    const Device device = open(c);
    const std::string text = logged([&] {
      for (int i = 0; i < 2; ++i) (void)error_with("copy_error", device);
    });
    const std::string said =
        "[joint] warning: checked mode (TENON_CHECK) cannot look at memory of " + device.str() +
        ": a reason of its own; what is written outside";
    BOOST_TEST(has(text, said), text);
    BOOST_TEST(text.find(said) == text.rfind(said), text);
    BOOST_TEST(error_with("", device) == "");
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_looked_at_is_told_once) {
  require_success("blind_alone", {"TENON_CHECK=1"});
}

BOOST_AUTO_TEST_CASE(call_alone, *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  for (auto& c : kDevices) {
    const Tensor x = full({++size}, -2.0).to(open(c));
    Environment broken("TENON_TEST_FAULT", "run_writes_behind");
    BOOST_TEST(has(error_of([&] { (void)abs(x); }), "wrote outside of output 0"));
  }
}

BOOST_AUTO_TEST_CASE(the_call_itself_throws_if_every_call_waits) {
  require_success("call_alone", {"TENON_CHECK=1", "TENON_SYNC=1"});
}

BOOST_AUTO_TEST_CASE(settings_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  require_error<ValueError>([] { ones({2}); }, std::getenv("TENON_TEST_SAID"));
}

BOOST_AUTO_TEST_CASE(settings_that_cannot_be_understood_are_refused) {
  for (const char* value : {"yes", "2", "nan,1", "1,", "inf"})
    require_success("settings_alone", {std::string("TENON_CHECK=") + value,
                                       std::string("TENON_TEST_SAID=TENON_CHECK is \"") + value +
                                           "\"; it must be 1 to check memory and runs, nan"});
  require_success("settings_alone",
                  {"TENON_CHECK_TIMEOUT=0",
                   "TENON_TEST_SAID=TENON_CHECK_TIMEOUT is \"0\"; it must be a number"});
}

BOOST_AUTO_TEST_CASE(again_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  for (auto& c : kDevices) {
    const Device device = open(c);
    check_named("run_fails_again", device,
                {"run failed when it was run again with the same arguments: it ran before"});
    const std::string lost = error_with("run_fails_again_lost", device);
    BOOST_TEST(has(lost, "it ran before"), lost);
    BOOST_TEST(!has(lost, "run again"), lost);
    BOOST_TEST(has(error_of([&] { (void)error_with("", device); }), "it ran before"));
  }
}

BOOST_AUTO_TEST_CASE(a_plan_that_fails_when_it_is_run_again_is_named) {
  require_success("again_alone", {"TENON_CHECK=1"});
}

// Devices above the 64th are found under a lock, which the fork holds while it waits for the work.
BOOST_AUTO_TEST_CASE(fork_alone, *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  Tensor x = full({1 << 12}, -2.0).to(Device("joint", 64));
  for (int i = 0; i < 300; ++i) x = abs(x);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  BOOST_REQUIRE(child > 0);
  int status = -1;
  BOOST_TEST(waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
  BOOST_TEST(x.to_vector<float>()[0] == 2);
}

BOOST_AUTO_TEST_CASE(a_fork_waits_for_work_on_any_device) {
  require_success("fork_alone", {"TENON_CHECK=1"}, 20);
}

// The end of the process does not wait for what other threads still compute.
BOOST_AUTO_TEST_CASE(computing_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  PluginFolder folder;
  folder.add("joint_streams", {{"name", "joint_streams"}, {"version", "1.0"}});
  plugins::registry().add_path(folder.path());
  const Tensor x = full({5}, -2.0).to("joint_streams:0");
  BOOST_TEST(abs(x).to_vector<float>()[0] == 2);
  std::thread([x] {
    try {
      for (;;) abs(x).wait();
    } catch (const Error&) {  // the device is closed
    }
  }).detach();
}

BOOST_AUTO_TEST_CASE(work_that_is_unfinished_when_the_process_ends_is_no_fault) {
  const Outcome outcome =
      run_alone("checked_test/computing_alone",
                {"TENON_CHECK=1", "TENON_TEST_FAULT=run_begins_while_the_process_ends"}, 60);
  BOOST_TEST(outcome.status == 0, outcome.output);
  BOOST_TEST(has(outcome.output, "a run has begun late"), outcome.output);
  BOOST_TEST(!has(outcome.output, "error:"), outcome.output);
}

// ---- what never ends

BOOST_AUTO_TEST_CASE(event_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  const Device device = open({1, false}), other = open({3, true});
  const std::string said = "said for 1 seconds that an event was not reached";
  const std::string text = error_with("event_never_comes", device);
  for (std::string part :
       {said, "plugin joint (" + joint.folder.path(), std::string("TENON_CHECK_TIMEOUT"),
        "abs: (" + std::to_string(size) + ",) on joint:1", std::string("queued by module Net")})
    BOOST_TEST(has(text, part), "\"" << text << "\" lacks " << part);
  // Nothing waits for that device again.
  BOOST_TEST(has(error_of([&] { (void)full({2}, 1.0).to(device); }), said));

  Environment broken("TENON_TEST_FAULT", "event_never_comes");
  const Tensor x = full({++size}, -2.0).to(other);
  const std::string lost = error_of([&] { (void)x.to_vector<float>(); });
  for (std::string part : {said, "copy of " + std::to_string(4 * size) +
                                     " bytes from the host by the plugin joint: plugin joint ("})
    BOOST_TEST(has(lost, part), "\"" << lost << "\" lacks " << part);
}

BOOST_AUTO_TEST_CASE(an_event_that_never_comes_is_an_error_that_names_what_was_in_flight) {
  require_success("event_alone", {"TENON_CHECK=1", "TENON_CHECK_TIMEOUT=1"}, kLongestHang);
}

// All functions with which this plugin frees something wait for all of its work.
BOOST_AUTO_TEST_CASE(hang_alone, *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  PluginFolder folder;
  folder.add("joint_streams", {{"name", "joint_streams"}, {"version", "1.0"}});
  plugins::registry().add_path(folder.path());
  const Device device("joint_streams", 0), other("joint_streams", 1);
  const Tensor y = abs(full({2}, -2.0).to(other));
  synchronize();
  BOOST_TEST(has(error_with("run_hangs", device), "said for 1 seconds"));
  empty_cache(device);
  BOOST_TEST(error_of([&] { synchronize(other); }) == "");
  BOOST_TEST(abs(y).to_vector<float>()[1] == 2);
  BOOST_TEST(error_with("", other) == "");
}

BOOST_AUTO_TEST_CASE(a_process_whose_device_hangs_ends) {
  require_success("hang_alone", {"TENON_CHECK=1", "TENON_CHECK_TIMEOUT=1"}, kLongestHang);
}

BOOST_AUTO_TEST_CASE(slow_alone, *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  const Device device = open({0, false});
  const std::string log = joint.folder.file("log"), go = joint.folder.file("go");
  const int before = dup(2), file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const std::string said =
      "joint.so): run of operator abs: (4,) on joint:0, module Net has not ended after 1 seconds "
      "(TENON_CHECK_TIMEOUT); if it never does, gdb -p ";
  {
    ModulePath path("Net");
    const Tensor x = full({4}, -2.0).to(device);
    synchronize();
    Environment broken("TENON_TEST_FAULT", "run_waits"), until("TENON_TEST_GO", go);
    dup2(file, 2);
    const Tensor y = abs(x);
    for (int i = 0; i < 5000 && !has(read_text(log), said); ++i) usleep(10000);
    joint.folder.write("go", "");  // the warning comes while the run lasts
    BOOST_TEST(y.to_vector<float>()[0] == 2);
  }
  dup2(before, 2);
  close(file);
  BOOST_TEST(has(read_text(log), said), read_text(log));
}

BOOST_AUTO_TEST_CASE(a_run_that_takes_long_is_a_warning_while_it_lasts) {
  require_success("slow_alone", {"TENON_CHECK=1", "TENON_CHECK_TIMEOUT=1"});
}

BOOST_AUTO_TEST_SUITE_END()
