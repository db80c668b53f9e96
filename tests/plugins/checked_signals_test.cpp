// Crashes and ends of the process in checked mode (TENON_CHECK): who did it is named, with the
// operator, its shapes and its module. Each in a process of its own.
#include <csignal>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <signal.h>

#include <tenon/core/base/module_path.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "checked_joint.h"
#include "process/child.h"
#include "support/expect.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(checked_signals_test)

using namespace tenon;
using namespace tenon::test;
using namespace tenon::test::joint;

namespace {

// Runs a case of this suite in a process of its own, in checked mode unless the environment says
// otherwise.
Outcome run_checked(const std::string& name, const std::string& fault,
                    std::vector<std::string> environment = {"TENON_CHECK=1"}, unsigned seconds = 60,
                    const char* catch_system_errors = "no") {
  environment.push_back("TENON_TEST_FAULT=" + fault);
  return run_child(
      {"/proc/self/exe", "--run_test=checked_signals_test/" + name,
       std::string("--catch_system_errors=") + catch_system_errors, "--color_output=no"},
      environment, seconds);
}

}  // namespace

BOOST_AUTO_TEST_CASE(crash_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  const Device device("joint", std::getenv("TENON_TEST_STREAMS") ? 1 : 0);
  ModulePath path("Net");
  (void)abs(full({5}, -2.0).to(device)).to_vector<float>();
}

BOOST_AUTO_TEST_CASE(a_crash_names_plugin_operator_shapes_and_module) {
  struct Crash {
    std::string fault, signal, said;
    int number;
  };
  const std::string work = " of operator abs: (5,) on joint:";
  for (auto& crash :
       std::vector<Crash>{{"run_segfaults", "SIGSEGV", "run" + work, SIGSEGV},
                          {"run_passes_on_segfaults", "SIGSEGV", "run" + work, SIGSEGV},
                          {"run_segfaults_in_a_loop", "SIGSEGV", "run" + work, SIGSEGV},
                          {"run_overflows_the_stack", "SIGSEGV", "run" + work, SIGSEGV},
                          {"run_aborts", "SIGABRT", "run" + work, SIGABRT},
                          {"plan_create_segfaults", "SIGSEGV", "plan_create" + work, SIGSEGV},
                          {"device_open_segfaults", "SIGSEGV", "device_open", SIGSEGV},
                          {"init_segfaults", "SIGSEGV", "init", SIGSEGV}})
    for (const std::string streams : {"", "1"}) BOOST_TEST_CONTEXT(crash.fault << streams) {
        const bool works = crash.said.ends_with(":");
        const std::string line =
            "joint.so): " + crash.said +
            (works ? (streams.empty() ? "0" : "1") + std::string(", module Net") : "") + "\n";
        std::vector<std::string> environment = {"TENON_CHECK=1", "TENON_NUM_THREADS=2"};
        if (!streams.empty()) environment.push_back("TENON_TEST_STREAMS=1");
        const Outcome outcome = run_checked("crash_alone", crash.fault, environment);
        BOOST_TEST(has(outcome.output, "tenon: signal " + crash.signal + " in plugin joint ("),
                   outcome.output);
        BOOST_TEST(has(outcome.output, line), outcome.output << "lacks " << line);
        // The system, or the sanitizer, gets the signal.
        BOOST_TEST((kSanitized ? outcome.status != 0 : outcome.status == 1000 + crash.number),
                   outcome.status << ": " << outcome.output);
      }
}

// The kernel runs on the thread of a stream.
BOOST_AUTO_TEST_CASE(thread_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  PluginFolder folder;
  folder.add("joint_streams", {{"name", "joint_streams"}, {"version", "1.0"}});
  plugins::registry().add_path(folder.path());
  ModulePath path("Net");
  (void)abs(full({5}, -2.0).to("joint_streams:0")).to_vector<float>();
}

BOOST_AUTO_TEST_CASE(a_thread_of_a_plugin_is_known_by_its_library) {
  const std::string work = "\n  at work: operator abs: (5,) on joint_streams:0, module Net\n";
  // The arrays of a run lead nowhere once it has returned: who keeps them crashes, too.
  for (auto& [fault, signal, number] : {std::tuple("run_segfaults", "SIGSEGV", SIGSEGV),
                                        std::tuple("keeps_the_arrays", "SIGSEGV", SIGSEGV),
                                        std::tuple("run_aborts", "SIGABRT", SIGABRT)}) {
    const Outcome crash = run_checked("thread_alone", fault, {"TENON_CHECK=1"}, 20);
    for (const std::string& part :
         {"tenon: signal " + std::string(signal) + " in plugin joint_streams (",
          std::string("joint_streams.so): on a thread of its own\n"), work})
      BOOST_TEST(has(crash.output, part), crash.output << " lacks " << part);
    BOOST_TEST((kSanitized ? crash.status != 0 : crash.status == 1000 + number), crash.output);
  }

  for (const char* checked : {"", "1"}) {
    const Outcome exit =
        run_checked("thread_alone", "run_exits", {std::string("TENON_CHECK=") + checked}, 20);
    BOOST_TEST(exit.status == 3, exit.status << ": " << exit.output);
    const std::string said =
        "[joint_streams] error: the plugin ended the process (exit) from "
        "inside a thread of its own; devices are left as they are";
    BOOST_TEST(has(exit.output, said), exit.output);
    BOOST_TEST(has(exit.output, work) == (*checked == '1'), exit.output);
  }
}

// Other handlers take the place of ours as often as the count of that wraps around.
BOOST_AUTO_TEST_CASE(many_handlers_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  const Device device("joint", 0);
  const Tensor few = full({5}, -2.0).to(device), many = full({1031}, -2.0).to(device);
  (void)abs(few).to_vector<float>();
  // The count begins at 1, and each signal adds one: five for the first work, and then the rest.
  for (int left = 65536 - 1 - 5; left > 0; left -= 5) {
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, SIG_DFL);
    (void)abs(few).to_vector<float>();  // which waits for it
  }
  (void)abs(many).to_vector<float>();
}

BOOST_AUTO_TEST_CASE(a_crash_is_told_however_often_other_handlers_were_there) {
  const Outcome outcome = run_checked("many_handlers_alone", "run_of_1031_crashes");
  BOOST_TEST(has(outcome.output, "tenon: signal SIGSEGV in plugin joint ("), outcome.output);
  BOOST_TEST(has(outcome.output, " of operator abs: (1031,) on joint:0"), outcome.output);
  BOOST_TEST(outcome.status == 1000 + SIGSEGV, outcome.status << ": " << outcome.output);
}

BOOST_AUTO_TEST_CASE(the_handler_that_was_there_before_gets_the_signal) {
  if (kSanitized) return;  // the address sanitizer's is there, and ends the process itself
  const Outcome outcome =
      run_checked("crash_alone", "plan_create_segfaults", {"TENON_CHECK=1"}, 60, "yes");
  BOOST_TEST(has(outcome.output, "tenon: signal SIGSEGV in plugin joint ("), outcome.output);
  BOOST_TEST(has(outcome.output, "memory access violation"), outcome.output);
  BOOST_TEST(outcome.status == 201, outcome.output);
}

BOOST_AUTO_TEST_SUITE_END()
