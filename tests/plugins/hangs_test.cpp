// Functions of a plugin that never end: the host says which one it is, and gives it up where it has
// a limit.
#include <future>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/base/module_path.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "devices_command.h"
#include "plugin_folder.h"
#include "process/child.h"
#include "support/expect.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(hangs_test)

using namespace tenon::test;

BOOST_AUTO_TEST_CASE(the_start_of_the_checks_ends_at_the_limit) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  struct Hang {
    std::string fault, function;
  };
  for (auto& [fault, function] : std::vector<Hang>{{"load_hangs", "a constructor of the library"},
                                                   {"init_hangs", "init"},
                                                   {"device_open_hangs", "device_open"}})
    for (const std::string mode : {"", "--no-check"}) BOOST_TEST_CONTEXT(fault << " " << mode) {
        std::vector<std::string> command = {"conformance",
                                            "--op",
                                            "relu",
                                            "--limit",
                                            "2",
                                            "--plugin",
                                            folder.file("joint.tenon.json")};
        if (!mode.empty()) command.push_back(mode);
        const Outcome outcome = tenon_command(folder, command, {"TENON_TEST_FAULT=" + fault});
        BOOST_TEST(outcome.status == 1, outcome.output);
        require_has(outcome.output, "FAILED start: " + function +
                                        " of plugin joint did not end within 2 s and was killed "
                                        "(--limit): ");
        // What it wrote stands there, or before it where the machine was slow: words that are read
        // together with a line are passed on with that line.
        require_has(outcome.output, "it hangs\n");
      }
}

BOOST_AUTO_TEST_CASE(the_joint_is_given_up_after_three_checks_that_hang) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  const Outcome outcome =
      run_child({tenon::test::build_dir() + "/bin/tenon", "conformance", "--section", "joint",
                 "--limit", "4", "--no-check", "--plugin", folder.file("joint.tenon.json")},
                {"TENON_TEST_FAULT=run_hangs"}, 60);
  BOOST_TEST(outcome.status == 1, outcome.output);
  require_has(outcome.output,
              "FAILED joint: the rest: not run, because 3 checks of it did not end in time\n");
  require_has(outcome.output, "\nSkipped, because checks of joint had not ended in time:\n");
  size_t hung = 0;
  for (size_t at = 0; (at = outcome.output.find("did not end within", at)) != std::string::npos;
       ++at)
    ++hung;
  BOOST_TEST(hung == 3u, outcome.output);
}

// The three that hang are its last: the process that should tell how another one ends is stopped.
BOOST_AUTO_TEST_CASE(nothing_is_left_out_where_the_last_checks_of_the_joint_hang) {
  PluginFolder folder;
  folder.add("joint_streams", {{"name", "joint_streams"}, {"version", "1.0"}});
  const Outcome outcome =
      run_child({tenon::test::build_dir() + "/bin/tenon", "conformance", "--section", "joint",
                 "--limit", "4", "--no-check", "--plugin", folder.file("joint_streams.tenon.json")},
                {"TENON_TEST_FAULT=drain_stops_who_waits_for_the_end"}, 120);
  BOOST_TEST(outcome.status == 1, outcome.output);
  for (const std::string check :
       {"drain waits for what is queued", "a process with queued work returns from main",
        "a process with queued work calls exit"})
    require_has(outcome.output,
                "FAILED joint: the end: " + check + ": did not end within 4 s and was killed");
  BOOST_TEST(outcome.output.find("the rest") == std::string::npos, outcome.output);
  BOOST_TEST(outcome.output.find("had not ended in time") == std::string::npos, outcome.output);
}

BOOST_AUTO_TEST_CASE(hang_alone, *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  tenon::plugins::registry().add_path(folder.path());
  tenon::ModulePath path("Net");
  (void)tenon::abs(tenon::full({5}, -2.0).to("joint:3")).to_vector<float>();
}

// Nothing but the function that hangs is told: not the work that it is a part of as well. The
// processes wait for their clock at the same time.
BOOST_AUTO_TEST_CASE(in_checked_mode_each_function_that_hangs_is_a_warning) {
  const std::string work = " of operator abs: (5,) on joint:3, module Net";
  struct Hang {
    std::string function, what;
    std::future<Outcome> outcome = {};
  };
  Hang hangs[] = {{"init", ""},  {"device_open", ""},   {"memory_alloc", ""},
                  {"copy", ""},  {"plan_create", work}, {"run", work},
                  {"drain", ""}, {"device_close", ""},  {"shutdown", ""}};
  for (auto& hang : hangs)
    hang.outcome = std::async(std::launch::async, [function = hang.function] {
      return run_child({"/proc/self/exe", "--run_test=hangs_test/hang_alone", "--color_output=no"},
                       {"TENON_CHECK=1", "TENON_CHECK_TIMEOUT=1", "TENON_TEST_DEVICE_MEMORY=1",
                        "TENON_TEST_FAULT=" + function + "_hangs"},
                       kSanitized ? 30 : 10);
    });
  for (auto& hang : hangs) BOOST_TEST_CONTEXT(hang.function) {
      const std::string output = hang.outcome.get().output;
      require_has(output, "[joint] warning: plugin joint (");
      require_has(output, "joint.so): " + hang.function + hang.what);
      require_has(
          output,
          " has not ended after 1 seconds (TENON_CHECK_TIMEOUT); if it never does, gdb -p ");
      BOOST_TEST(output.find("warning") == output.rfind("warning"), output);
    }
}

BOOST_AUTO_TEST_SUITE_END()
