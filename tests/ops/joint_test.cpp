// The joint of our own backends, and of the device of TENON_TEST_DEVICE: the checks of
// conformance/joint. And of a plugin in which one thing is wrong: they find it.
#include <regex>
#include <set>

#include <boost/test/unit_test.hpp>

#include <tenon/conformance/checklist.h>
#include <tenon/conformance/driver.h>
#include <tenon/conformance/joint/joint.h>
#include <tenon/conformance/processes.h>
#include <tenon/conformance/speed.h>
#include <tenon/plugins/host/registry.h>

#include "plugins/plugin_folder.h"
#include "process/child.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(joint)

using namespace tenon::conformance;
using tenon::Device;
using tenon::test::build_dir;
using tenon::test::has;

namespace {

// The results of this kind of those whose names have `about` in them, a line each.
std::string results_among(const std::vector<Check>& checks, std::string_view about, Status status) {
  std::string text;
  for (auto& check : checks) {
    if (!has(check.op + ": " + check.name, std::string(about))) continue;
    if (const Result r = result_of(check); r.status == status)
      text += r.name + ": " + r.detail + "\n";
  }
  return text;
}
std::string failures_among(const std::vector<Check>& checks, std::string_view about = "") {
  return results_among(checks, about, Status::failed);
}
std::string failures_of(const Device& device, std::string_view about = "") {
  return failures_among(joint_checks({device, Device("cpu", 7)}), about);
}

void require_found(const char* fault, const std::string& found, const char* said) {
  BOOST_TEST(has(found, said), fault << " is not found; found is\n" << found);
}

}  // namespace

BOOST_AUTO_TEST_CASE(our_own_keep_their_promises) {
  size_t passed = 0;
  for (auto& check : joint_checks({tenon::default_device(), Device("cpu", 7)})) {
    const Result r = result_of(check);
    BOOST_CHECK_MESSAGE(r.status != Status::failed, r.op << ": " << r.name << ": " << r.detail);
    passed += r.status == Status::passed;
    // Where nothing can be asked or seen, nothing passes.
    const bool on_request = tenon::default_device().type() == "cpu";
    if ((on_request && has(r.name, "no device has is refused")) ||
        (tenon::test::kSanitized && has(r.name, "behind")))
      BOOST_TEST((r.status == Status::skipped), r.name);
  }
  BOOST_TEST(passed >= 15u);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_found) {
  tenon::test::PluginFolder folder;
  folder.add("joint", {{"name", "joint"}, {"version", "1.0"}});
  tenon::plugins::registry().add_path(folder.path());
  const std::string none[2] = {failures_of(Device("joint", 0)), failures_of(Device("joint", 1))};
  BOOST_TEST(none[0] == "");
  BOOST_TEST(none[1] == "");
  // What writes where it must not is found by the sanitizers, which end the process, and their
  // allocators do not tell how much is in use.
  if (tenon::test::kSanitized) return;
  struct {
    const char *fault, *said, *about = "";
  } const planted[] = {
      {"memory_alloc_stays_short", "fails although memory is no longer short", "memory"},
      {"memory_alloc_too_much_is_internal", "where memory was short once, abs failed", "memory"},
      {"memory_alloc_overlaps", "overlaps an earlier allocation"},
      {"memory_alloc_endless", "reported success"},
      {"memory_alloc_misaligned", "not aligned"},
      {"copy_forgets_a_byte", "expected"},
      {"copy_writes_beside", "also changed byte 132"},
      {"copy_throws", "let an exception out"},
      {"unknown_accepted", "of an operator that nobody knows reported success"},
      {"unknown_accepted", "of an attribute that nobody knows reported success"},
      {"error_of_another_code", "failed with code 7 instead of 3"},
      {"plan_create_silent_error", "instead of 3"},
      {"device_info_overruns", "device_info wrote byte"},
      {"run_writes_the_next_element", "element 1030 of abs is"},
      {"event_create_null", "gave no event"},
  };
  for (auto& p : planted) {
    // Streams of this plugin are only names, so its events cannot come too early or too late.
    tenon::test::Environment fault("TENON_TEST_FAULT", p.fault);
    require_found(p.fault, failures_of(Device("joint", 1), p.about), p.said);
  }
  for (auto [name, said] : {std::pair("error_leaks", "a refusal by supports leaves about "),
                            std::pair("plan_leaks", "a plan that is made and destroyed leaves ")}) {
    tenon::test::Environment fault("TENON_TEST_FAULT", name);
    require_found(name, failures_of(Device("joint", 0)), said);
  }
  tenon::test::Environment fault("TENON_TEST_FAULT", "run_changes_the_rounding");
  require_found("the rounding", failures_of(Device("joint", 0), "two plugins"),
                "the thread that called it rounds otherwise");
}

BOOST_AUTO_TEST_CASE(work_that_is_not_waited_for_is_found) {
  tenon::test::PluginFolder folder;
  folder.add("joint_streams", {{"name", "joint_streams"}, {"version", "1.0"}});
  tenon::plugins::registry().add_path(folder.path());
  const Device device("joint_streams", 0);
  BOOST_TEST(failures_of(device) == "");
  struct {
    const char *fault, *said, *about;
  } const planted[] = {
      {"wait_skips", "after event_wait, event_query says that it is not reached", "after event_w"},
      {"query_skips", "is reached, and the work before it is not done", "anybody waiting"},
      {"stream_wait_skips", "did not wait for the event of another: it read", "event of another"},
      {"stream_wait_skips", "did not wait for the event of another device", "another device"},
      {"records_once", "counts as reached by its first recording", "recorded again"},
      {"keeps_the_arrays", "outputs was read after run had returned", "arrays of a run"}};
  for (auto& p : planted) {
    tenon::test::Environment fault("TENON_TEST_FAULT", p.fault);
    require_found(p.fault, failures_of(device, p.about), p.said);
  }
}

// What reference devices lack says nothing about the subject.
BOOST_AUTO_TEST_CASE(a_reference_may_lack_what_the_subject_has) {
  tenon::test::PluginFolder folder;
  folder.add("joint", {{"name", "joint"}, {"version", "1.0"}});
  tenon::plugins::registry().add_path(folder.path());
  Options options;
  options.op = "relu";
  options.dtype = tenon::f64;
  const auto statuses = [&](const Subject& subject) {
    auto checks = speed_checks(options, subject);
    for (auto& family : table())
      for (auto& line : family.lines)
        if (is_asked_for(options, line))
          for (auto& check : shape_checks(line, subject, 0, {.shapes = 24}))
            checks.push_back(std::move(check));
    std::set<Status> all;
    for (auto& check : checks) {
      // The reference cannot convert or copy the inputs of the others.
      if (check.dtype == tenon::f64 && has(check.name, "contiguous"))
        all.insert(result_of(check).status);
    }
    return all;
  };
  const Device has_it("cpu", 0), lacks_it("joint", 0);
  BOOST_TEST((statuses({has_it, lacks_it}) == std::set{Status::skipped}));
  BOOST_TEST(statuses({lacks_it, has_it}).count(Status::not_offered) == 1u);
  BOOST_TEST(statuses({lacks_it, Device("joint", 2)}).count(Status::not_offered) == 1u);
}

// A result of a transposed convolution has as many elements as the product of its inputs, of which
// a few thousand each would take all memory.
BOOST_AUTO_TEST_CASE(random_shapes_are_small_where_results_grow) {
  const Device cpu("cpu", 0);
  size_t count = 0;
  for (auto& family : table())
    for (auto& line : family.lines)
      for (size_t number = 0; line.growing && number < 20; ++number)
        for (auto& check : shape_checks(line, {cpu, cpu}, number, {.shapes = 60})) {
          double product = 1;
          static const std::regex extent(R"([(,] ?(\d+))");
          const std::string shapes = check.name.substr(check.name.find("of ("));
          for (std::sregex_iterator at(shapes.begin(), shapes.end(), extent), end; at != end; ++at)
            product *= std::stod((*at)[1]);
          BOOST_TEST(product <= 1e6, line.name << " " << check.name);
          ++count;
        }
  BOOST_TEST(count > 1000u);
}

BOOST_AUTO_TEST_CASE(other_hosts_and_the_end) {
  if (tenon::test::kSanitized) return;  // these processes take long there, and end otherwise
  constexpr const char* kUnnoticed = "[tenon] error: work failed, and nothing waited for it: ";
  tenon::test::PluginFolder folder;
  folder.add("joint", {{"name", "joint"}, {"version", "1.0"}});
  folder.add("joint_streams", {{"name", "joint_streams"}, {"version", "1.0"}});
  folder.add("joint_streams_overlay", {{"name", "joint_streams_overlay"},
                                       {"version", "1.0"},
                                       {"kind", "overlay"},
                                       {"overlays", "joint_streams"},
                                       {"priority", 1}});
  tenon::test::Environment path("TENON_PLUGIN_PATH", folder.path());
  size_t steps = 0;
  const auto found = [&](const char* plugin, std::string_view name, const char* fault,
                         Status status = Status::failed, unsigned limit = 60) {
    tenon::test::Environment planted("TENON_TEST_FAULT", fault);
    Launch launch;
    launch.program = build_dir() + "/bin/tenon";
    launch.limit = limit;
    launch.checked = has(fault, "wait_fails");
    launch.passed->insert("plans: one plan runs on many pointers before the first run is done");
    launch.alive = [&] { ++steps; };
    launch.command = {"tenon", "conformance", "--section",
                      "joint", "--plugin",    folder.file(std::string(plugin) + ".so")};
    std::vector<Check> checks;
    for (auto& check : process_checks(launch))
      if (has(check.name, std::string(name))) checks.push_back(check);
    BOOST_TEST(!checks.empty());
    return results_among(checks, "", status);
  };
  BOOST_TEST(found("joint", "", "") == "");
  BOOST_TEST(steps > 100u);  // of three processes: each check begins and ends
  BOOST_TEST(found("joint_streams", "", "") == "");
  BOOST_TEST(found("joint_streams_overlay", "drain", "") == "");
  require_found("has_no_drain", found("joint_streams", "drain", "has_no_drain", Status::skipped),
                "the plugin has no drain");
  struct {
    const char *plugin, *name, *fault, *said;
    unsigned limit = 60;
    const char *variable = "TENON_LOG", *value = "";
  } const planted[] = {
      {"joint", "1.0", "init_fills_all", "init filled more of the function table than the "},
      {"joint", "1.1", "init_wants_this_host", "the host is of another version"},
      {"joint", "newer", "init_wants_this_host", "the host is of another version"},
      {"joint", "1.1", "run_trusts_the_counts", "abs has one input"},
      {"joint", "1.0", "refuses_older_hosts", "passes under the present host, and not under that"},
      {"joint_streams", "drain", "drain_skips", "drain returned while work was queued"},
      {"joint_streams_overlay", "drain", "drain_skips", "drain of the overlay returned while"},
      {"joint_streams", "from main", "drain_fails", "] warning: drain: the driver is gone"},
      {"joint_streams", "from main", "shutdown_crashes", "at its end, it crashed: SIGSEGV"},
      {"joint_streams", "calls exit", "shutdown_crashes", "at its end, it crashed: SIGSEGV"},
      {"joint_streams", "calls exit", "drain_hangs", "at its end, it did not end within", 10},
      // Only what waits for work that is still queued sees this.
      {"joint_streams", "from main", "wait_fails", kUnnoticed},
      {"joint_streams", "calls exit", "wait_fails", kUnnoticed, 60, "TENON_SYNC", "1"},
      {"joint_streams", "calls exit", "drain_fails", "the driver is gone", 60, "TENON_LOG",
       "error"},
  };
  for (auto& p : planted) {
    tenon::test::Environment variable(p.variable, p.value);
    require_found(p.fault, found(p.plugin, p.name, p.fault, Status::failed, p.limit), p.said);
  }
  // Each check that crashes is told, and the others are run.
  const auto crashes = run_child({build_dir() + "/bin/tenon", "conformance", "--section", "joint",
                                  "--no-check", "--plugin", folder.file("joint.so")},
                                 {"TENON_TEST_FAULT=run_of_1031_crashes"});
  for (auto* said : {"FAILED joint: plans: one plan runs on",
                     "FAILED joint: plans: runs and copies", "FAILED joint: plans: threads make"})
    require_found("run_of_1031_crashes", crashes.output, said);
  // That it crashes under other hosts, too, is not because of them.
  BOOST_TEST(!has(crashes.output, "FAILED joint: hosts: "), crashes.output);
}

// What a process prints and the lines that it says come on two pipes, and a busy machine may read
// all that was printed before the line that its work begins. Of this program it always does.
BOOST_AUTO_TEST_CASE(a_complaint_counts_however_late_the_lines_are_read) {
  if (tenon::test::kSanitized) return;  // these processes take long there, and end otherwise
  tenon::test::PluginFolder folder;
  folder.add("joint_streams", {{"name", "joint_streams"}, {"version", "1.0"}});
  Launch launch;
  launch.program = folder.write("late", R"(#!/bin/bash
echo '[joint_streams] error: this is of the time before' >&2
eval "'$TENON_TEST_PROGRAM' \"\$@\" ${!#}>'$0.lines'"
status=$?
eval "cat '$0.lines' >&${!#}"
exit $status
)");
  chmod(launch.program.c_str(), 0755);
  tenon::test::Environment program("TENON_TEST_PROGRAM", build_dir() + "/bin/tenon");
  launch.command = {"tenon", "conformance", "--section",
                    "joint", "--plugin",    folder.file("joint_streams.so")};
  const auto found = [&](const char* fault) {
    tenon::test::Environment planted("TENON_TEST_FAULT", fault);
    std::vector<Check> checks;
    for (auto& check : process_checks(launch))
      if (has(check.name, "from main")) checks.push_back(check);
    return results_among(checks, "", Status::failed) +
           results_among(checks, "", Status::not_offered);
  };
  // What is printed before the work begins says nothing about its end.
  BOOST_TEST(found("") == "");
  require_found("wait_fails", found("wait_fails"), "nothing waited for it: ");
}

BOOST_AUTO_TEST_SUITE_END()
