// Plugins that start programs, and those whose own threads end this one: nobody waits for a call
// that waits for him.
#include <string>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/pointwise.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "joint_folder.h"
#include "process/child.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(programs_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// Plans and memory are made again for each size.
int64_t next_size() {
  static int64_t n = 3;
  return ++n;
}

Tensor made_on(Device device) { return abs(full({next_size()}, -2.0).to(device)); }

}  // namespace

// The exit handlers would wait for the thread, and the thread for them.
BOOST_AUTO_TEST_CASE(computing, *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  backends();
  BOOST_TEST(made_on("joint:0").to_vector<float>()[0] == 2);
}

BOOST_AUTO_TEST_CASE(a_thread_of_a_plugin_may_call_exit_while_a_function_waits_for_it) {
  for (const char* function : {"init", "device_open", "plan_create", "run"}) {
    const Outcome outcome =
        run_alone("programs_test/computing",
                  {std::string("TENON_TEST_FAULT=") + function + "_exits_on_a_thread"}, 20);
    BOOST_TEST(outcome.status == 3, function << ": " << outcome.output);
    BOOST_TEST(has(outcome.output, "ended the process (exit) from inside a thread of its own"),
               outcome.output);
  }
}

BOOST_AUTO_TEST_CASE(using_all_functions,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  backends();
  const Device streams("joint:1"), more("joint:3"), calls("joint:0");
  for (Device device : {streams, more, calls}) {
    const Tensor y = made_on(device);
    (void)y.is_ready();
    BOOST_TEST(y.to_vector<float>()[0] == 2);
  }
  // Each device waits for work of another, which may be the work that starts a program.
  for (auto [from, to] : {std::pair(streams, more), {calls, streams}, {streams, calls}})
    BOOST_TEST(abs(made_on(from).to(to)).to_vector<float>()[0] == 2);
  for (Device device : {streams, calls}) empty_cache(device);
  BOOST_TEST(plugins::registry().load("joint").device_count() == 2u);
}

BOOST_AUTO_TEST_CASE(a_plugin_may_start_programs_in_any_function) {
  for (const std::string function :
       {"init", "device_count", "device_open", "device_info", "memory_kinds", "memory_alloc",
        "memory_free", "stream_create", "event_create", "event_record", "event_query", "event_wait",
        "stream_wait", "copy", "plan_create", "run"})
    for (const std::string where : {"", "_on_a_thread", "_in_a_loop"}) {
      if (where == "_in_a_loop" && function != "run") continue;
      const std::string fault = function + "_starts_a_program" + where;
      const Outcome outcome = run_alone("programs_test/using_all_functions",
                                        {"TENON_TEST_FAULT=" + fault, "TENON_NUM_THREADS=2"}, 30);
      BOOST_TEST(outcome.status == 0, fault << ": " << outcome.output);
    }
}

BOOST_AUTO_TEST_SUITE_END()
