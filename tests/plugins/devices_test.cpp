// `tenon devices`, run as an author of a plugin runs it: what is wrong with a plugin is said,
// whatever it is.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "devices_command.h"
#include "plugin_folder.h"
#include "process/child.h"
#include "support/expect.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(devices_test)

using namespace tenon::test;

BOOST_AUTO_TEST_CASE(a_plugin_that_crashes_or_exits_is_a_line_of_the_report) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  for (std::string function : {"load_exits", "init_crashes", "device_open_crashes",
                               "device_open_exits", "device_count_crashes", "device_info_exits"}) {
    const json report = devices(folder, {"TENON_TEST_FAULT=" + function});
    BOOST_TEST_CONTEXT(function) {
      BOOST_TEST(plugin_of(report, "joint")["status"] == "refused");
      require_has(error_of(report, "joint"), "the process that opened its devices ");
      if (has(function, "exits")) require_has(error_of(report, "joint"), "the status 3");
      // The others are there as ever.
      BOOST_TEST(plugin_of(report, "cpu")["status"] == "loaded");
      BOOST_TEST(report["devices"].size() >= 1u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_plugin_that_ends_its_process_group_ends_itself) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  for (const char* fault : {"init_kills_its_group", "device_open_ends_its_group"}) {
    const json report = devices(folder, {std::string("TENON_TEST_FAULT=") + fault});
    BOOST_TEST(plugin_of(report, "joint")["status"] == "refused");
    require_has(error_of(report, "joint"), "was ended by a signal");
    BOOST_TEST(plugin_of(report, "cpu")["status"] == "loaded");
  }
}

BOOST_AUTO_TEST_CASE(a_plugin_that_hangs_is_a_line_of_the_report_after_the_limit) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  for (const std::string function : {"load", "init", "device_open", "stream_create"})
    BOOST_TEST_CONTEXT(function) {
      const Outcome outcome =
          tenon_command(folder, {"devices", "--limit", "2"},
                        {"TENON_TEST_FAULT=" + function + "_hangs", "TENON_DISABLE=cuda,onednn"});
      BOOST_TEST(outcome.status < 1000, outcome.output);
      require_has(outcome.output, "it hangs\n");
      require_has(outcome.output,
                  "  joint: the process that opened its devices did not end within 2 s; it was "
                  "inside " +
                      (function == "load" ? "a constructor of the library" : function) +
                      " of plugin joint\n");
    }
}

// A process that hangs would hold the pipe open.
BOOST_AUTO_TEST_CASE(who_kills_the_command_kills_what_it_looks_with) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  int ends[2];
  BOOST_REQUIRE(pipe(ends) == 0);
  tenon::test::Environment path("TENON_PLUGIN_PATH", folder.path()),
      fault("TENON_TEST_FAULT", "device_open_hangs");
  const std::string program = tenon::test::build_dir() + "/bin/tenon";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]), close(ends[1]);
    execl(program.c_str(), "tenon", "devices", nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  // Returns false at the end of what is written, or after half a minute without a word.
  const auto read_more = [&] {
    char part[256];
    pollfd ready{ends[0], POLLIN, 0};
    if (poll(&ready, 1, 30'000) <= 0) return text += "(silence)", false;
    const ssize_t n = read(ends[0], part, sizeof part);
    if (n > 0) text.append(part, static_cast<size_t>(n));
    return n > 0;
  };
  while (!has(text, "it hangs") && read_more()) {
  }
  require_has(text, "it hangs");
  kill(child, SIGKILL);
  BOOST_TEST(waitpid(child, nullptr, 0) == child);
  while (read_more()) {
  }
  BOOST_TEST(!has(text, "(silence)"), text);
  close(ends[0]);
}

BOOST_AUTO_TEST_CASE(a_plugin_that_quits_without_a_word_is_refused) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  for (const char* fault : {"init_quits", "device_open_quits"}) {
    const std::string variable = std::string("TENON_TEST_FAULT=") + fault;
    const json report = devices(folder, {variable});
    BOOST_TEST(plugin_of(report, "joint")["status"] == "refused");
    require_has(error_of(report, "joint"), "ended before it had answered");
    BOOST_TEST(tenon_command(folder, {"devices", "--strict"}, {variable}).status == 1);
  }
}

// A driver may start a service that outlives the program.
BOOST_AUTO_TEST_CASE(what_a_plugin_leaves_running_holds_nobody_up) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  // Not with run_child, which would wait for that process as well.
  const std::string command = "TENON_PLUGIN_PATH='" + folder.path() +
                              "' TENON_TEST_FAULT=device_open_leaves_a_process timeout 25 '" +
                              tenon::test::build_dir() + "/bin/tenon' devices >'" +
                              folder.file("out") + "' 2>/dev/null </dev/null";
  BOOST_TEST(std::system(command.c_str()) == 0);
  require_has(read_text(folder.file("out")), "no card was found");
}

// The answer is longer than what is read at once, and the process that gave it has ended meanwhile.
BOOST_AUTO_TEST_CASE(a_long_answer_is_read_to_its_end) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  const json report = devices(folder, {"TENON_TEST_FAULT=device_info_stops_the_parent"});
  BOOST_TEST(error_of(report, "joint") == "");
  BOOST_TEST(plugin_of(report, "joint")["status"] == "loaded");
  BOOST_TEST(report["devices"].size() > 200u);
}

BOOST_AUTO_TEST_CASE(an_answer_that_cannot_be_read_is_that_of_one_backend) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  const json report = devices(folder, {"TENON_TEST_FAULT=device_info_writes_to_pipes"});
  require_has(error_of(report, "joint"), "gave an answer that cannot be read: \"no JSON");
  BOOST_TEST(plugin_of(report, "joint")["status"] == "refused");
  BOOST_TEST(plugin_of(report, "cpu")["status"] == "loaded");
}

BOOST_AUTO_TEST_CASE(an_overlay_that_crashes_is_refused_and_not_what_it_lies_over) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  folder.add("joint_overlay", kOverlay);
  const json report = devices(folder, {"TENON_TEST_OVERLAY_FAULT=init_crashes"});
  BOOST_TEST(plugin_of(report, "joint_overlay")["status"] == "refused");
  // Under a sanitizer, a crash is an exit.
  require_has(plugin_of(report, "joint_overlay")["reason"], "the process that opened its devices ");
  BOOST_TEST(plugin_of(report, "joint")["status"] == "loaded");
  BOOST_TEST(error_of(report, "joint") == "");
}

BOOST_AUTO_TEST_CASE(a_device_that_does_not_open_hides_no_other) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  tenon::test::Environment others("TENON_DISABLE", "cuda,onednn");
  for (const char* only : {"0", "1"}) BOOST_TEST_CONTEXT(only) {
      const std::string broken = std::string("joint:") + only,
                        works = *only == '0' ? "joint:1" : "joint:0",
                        said = "device " + broken + " cannot be opened: ";
      const std::vector<std::string> fault = {"TENON_TEST_FAULT=device_open_error",
                                              std::string("TENON_TEST_FAULT_INDEX=") + only};
      const json report = devices(folder, fault);
      require_has(error_of(report, "joint"), said);
      require_has(error_of(report, "joint"), "a reason of its own");
      require_has(report["devices"].dump(), "\"" + works + "\"");
      BOOST_TEST(!has(report["devices"].dump(), broken));
      const Outcome text = tenon_command(folder, {"devices"}, fault);
      BOOST_TEST(text.status == 0);
      require_has(text.output, "\n  " + works + "  ");
      require_has(text.output, "\n  joint: " + said);
      BOOST_TEST(tenon_command(folder, {"devices", "--strict"}, fault).status == 1);
    }
}

BOOST_AUTO_TEST_CASE(a_plugin_that_calls_exit_is_told_where) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  for (const std::string function : {"init", "device_count", "device_open"})
    BOOST_TEST_CONTEXT(function) {
      const std::vector<std::string> fault = {"TENON_TEST_FAULT=" + function + "_exits"};
      const Outcome text = tenon_command(folder, {"devices"}, fault);
      require_has(text.output, "[joint] error: the plugin ended the process (exit) from inside " +
                                   function + "; devices are left as they are.");
      require_has(text.output,
                  "\n  joint: the process that opened its devices ended with the "
                  "status 3, by a call of exit inside " +
                      function + " of plugin joint\n");
      require_has(error_of(devices(folder, fault), "joint"),
                  "by a call of exit inside " + function);
    }
}

BOOST_AUTO_TEST_CASE(a_plugin_without_devices_says_so) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  const json none = devices(folder, {"TENON_TEST_FAULT=device_count_zero"});
  BOOST_TEST(error_of(none, "joint") == "the plugin finds no device");
  require_has(error_of(devices(folder, {"TENON_TEST_FAULT=device_count_error"}), "joint"),
              "a reason of its own");
  const Outcome text = tenon_command(folder, {"devices"}, {"TENON_TEST_FAULT=device_count_zero"});
  BOOST_TEST(text.status == 0);
  require_has(text.output, "  joint: the plugin finds no device\n");
}

BOOST_AUTO_TEST_CASE(strict_is_for_those_who_want_all_of_it_right) {
  // A backend for a device that this machine may lack is not right.
  tenon::test::Environment others("TENON_DISABLE", "cuda,onednn");
  PluginFolder folder;
  BOOST_TEST(tenon_command(folder, {"devices", "--strict"}).status == 0);
  folder.add("joint", kJoint);
  BOOST_TEST(tenon_command(folder, {"devices", "--strict"}).status == 0);
  for (const char* fault : {"device_count_zero", "device_open_error", "init_error", "load_exits"}) {
    const std::string variable = std::string("TENON_TEST_FAULT=") + fault;
    BOOST_TEST(tenon_command(folder, {"devices"}, {variable}).status == 0, fault);
    BOOST_TEST(tenon_command(folder, {"devices", "--strict"}, {variable}).status == 1, fault);
  }
  folder.write("broken.tenon.json", "{");
  BOOST_TEST(tenon_command(folder, {"devices"}).status == 0);
  BOOST_TEST(tenon_command(folder, {"devices", "--strict"}).status == 1);
}

BOOST_AUTO_TEST_CASE(a_mistyped_key_is_named_and_does_not_keep_the_plugin_away) {
  PluginFolder folder;
  json changes = kJoint;
  changes.update({{"prefrence", 3}, {"comment", "our own"}, {"x\n\x1b[31m", 1}, {"priority", 2}});
  changes["abi"] = {{"major", TN_ABI_MAJOR}, {"minor", TN_ABI_MINOR}, {"patch", 1}};
  folder.add("joint", changes);
  const json plugin = plugin_of(devices(folder), "joint");
  BOOST_TEST(plugin["status"] == "loaded");
  const std::string remarks = plugin["remarks"].dump();
  require_has(remarks, "prefrence\\\" is not read; did you mean \\\"preference\\\"?");
  require_has(remarks, "the key \\\"priority\\\" is read of an overlay only");
  require_has(remarks, "the key \\\"patch\\\" is not read");
  require_has(remarks, "x\\\\n\\\\x1b[31m");
  BOOST_TEST(plugin["remarks"].size() == 4u);
  BOOST_TEST(tenon_command(folder, {"devices", "--strict"}).status == 1);
}

BOOST_AUTO_TEST_CASE(a_key_that_is_there_twice_is_named) {
  PluginFolder folder;
  folder.copy_library("joint");
  std::string text = PluginFolder::manifest("joint", "joint.so").dump();
  text.insert(1, "\"version\": \"0.9\", ");
  folder.write("joint.tenon.json", text);
  const json plugin = plugin_of(devices(folder), "joint");
  require_has(plugin["remarks"].dump(),
              "the key \\\"version\\\" is there more than once; the last one counts");
  BOOST_TEST(plugin["version"] == "1.2");
  BOOST_TEST(plugin["remarks"].size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_overlay_over_an_absent_backend_is_unused) {
  PluginFolder folder;
  folder.add("joint_overlay", kOverlay);
  const json overlay = plugin_of(devices(folder), "joint_overlay");
  BOOST_TEST(overlay["status"] == "unused");
  require_has(overlay["reason"], "no plugin \"joint\", over which it lies, can be used");
  folder.add("joint", kJoint);
  BOOST_TEST(plugin_of(devices(folder), "joint_overlay")["status"] == "loaded");
}

BOOST_AUTO_TEST_CASE(a_name_in_TENON_DISABLE_is_switched_off) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  folder.add("joint_overlay", kOverlay);
  const json off = devices(folder, {"TENON_DISABLE=joint_overlay"});
  BOOST_TEST(plugin_of(off, "joint_overlay")["status"] == "disabled");
  BOOST_TEST(plugin_of(off, "joint")["status"] == "loaded");
  const json both = devices(folder, {"TENON_DISABLE=,joint,cpu,"});
  for (const char* name : {"joint", "cpu"})
    BOOST_TEST(plugin_of(both, name)["reason"] == "switched off by TENON_DISABLE");
  BOOST_TEST(plugin_of(both, "joint_overlay")["status"] == "unused");
  BOOST_TEST(both["devices"].empty());
  require_has(tenon_command(folder, {"devices"}, {"TENON_DISABLE=onednm"}).output,
              "TENON_DISABLE names \"onednm\", and no plugin of that name was found");
  tenon::test::Environment disable("TENON_DISABLE", "joint");
  tenon::plugins::Registry registry({.paths = {folder.path()}});
  require_error<tenon::PluginError>([&] { registry.load("joint"); },
                                    "TENON_DISABLE switches it off");
}

BOOST_AUTO_TEST_SUITE_END()
