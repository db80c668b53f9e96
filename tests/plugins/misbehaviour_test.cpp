// A plugin that breaks the contract after it was loaded: every way ends in an error that names the
// plugin, the function and what it did, and the next call works.
#include <functional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/base/module_path.h>
#include <tenon/core/error.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "joint_folder.h"
#include "logged.h"
#include "process/child.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(misbehaviour_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// Plans and devices are made once: each call computes on another shape.
int64_t next_size() {
  static int64_t n = 3;
  return ++n;
}
// A device that was not opened before; even indices compute on the caller's thread, odd ones on
// streams.
uint32_t next_index(bool streams) {
  static uint32_t n = 0;
  n += 2;
  return n + streams;
}

// Copies to the device, computes there, and reads the result.
void compute_on(Device device) {
  const int64_t n = next_size();
  const Tensor x = full({n}, -2.0).to(device);
  const Tensor y = abs(x);
  (void)y.is_ready();
  BOOST_TEST(y.to_vector<float>() == std::vector<float>(static_cast<size_t>(n), 2));
}
// What one device computed is read by another.
void compute_on_two(Device device, Device other) {
  const Tensor y = abs(full({next_size()}, -2.0).to(device));
  BOOST_TEST(abs(y.to(other)).to_vector<float>()[0] == 2);
}

// `action` fails with the fault, in an Error with all of `parts` in its text, and works without it.
void check_fault(const std::string& fault, const std::vector<std::string>& parts,
                 const std::function<void()>& action) {
  BOOST_TEST_CONTEXT(fault) {
    std::string text = "nothing was thrown";
    {
      Environment broken("TENON_TEST_FAULT", fault);
      try {
        action();
      } catch (const Error& e) {
        text = e.what();
      }
    }
    for (auto& part : parts) BOOST_TEST(has(text, part), "\"" << text << "\" lacks " << part);
    // What the host found out ends with what to do about it.
    if (const size_t at = text.find("joint.so): "); at != text.npos)
      BOOST_TEST(has(text.substr(at), "; "), "\"" << text << "\" has no remedy");
    forget_failures();
    action();
  }
}
// What an error of this kind says. What the plugin itself says is passed on; what the host found
// out names the function.
std::vector<std::string> parts_of(const std::string& function, const Way& way) {
  return {way.said, way.remedy, way.passed_on ? "joint" : "joint.so): " + function};
}
void check_every_way(const std::string& function, const std::function<void()>& action) {
  for (auto& way : kWays) check_fault(function + way.suffix, parts_of(function, way), action);
}
// The fault shows when a device is opened.
void check_opening(const std::string& fault, const std::vector<std::string>& parts, bool streams) {
  const Device device("joint", next_index(streams));
  check_fault(fault, parts, [&] { compute_on(device); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(when_a_device_is_opened) {
  backends();
  for (auto& way : kWays) {
    for (const std::string function : {"device_open", "device_info", "memory_kinds"})
      check_opening(function + way.suffix, parts_of(function, way), false);
    check_opening("stream_create" + way.suffix, parts_of("stream_create", way), true);
  }
  check_opening("device_open_null", {"device_open reported success, but gave no device"}, false);
  check_opening("device_count_zero", {"there are 0 devices of joint", "TN_DEVICE_LOGICAL"}, false);
  check_opening("memory_kinds_none", {"joint.so): memory_kinds offers no memory"}, false);
  check_opening("memory_kinds_null", {"joint.so): memory_kinds offers no memory"}, false);
  check_opening("memory_kinds_null_entry", {"memory_kinds kind 1 is NULL"}, false);
  check_opening("memory_kinds_short", {"kind 0 says it has 8 bytes"}, false);
  check_opening("memory_kinds_countless",
                {"memory_kinds says that there are 18446744073709551615 kinds of memory, more than "
                 "the 64 that a device may have"},
                false);
  for (const char* bytes : {"0", "8", "96", "9223372036854775808"})
    check_opening(std::string("memory_kinds_aligned_to_") + bytes,
                  {std::string("kind 0 has the alignment ") + bytes, "a power of two"}, false);
  check_opening("memory_kinds_granular",
                {"kind 0 has the granularity 18446744073709551615; it must be at most 2^40"},
                false);
  check_opening("stream_create_null", {"stream_create reported success, but gave no stream"}, true);
}

BOOST_AUTO_TEST_CASE(when_devices_are_counted) {
  backends();
  check_every_way("device_count",
                  [] { BOOST_TEST(plugins::registry().load("joint").device_count() == 2u); });
  check_fault("device_count_huge",
              {"joint.so): device_count says that there are 100000 devices, more than the 1024"},
              [] { BOOST_TEST(plugins::registry().load("joint").device_count() == 2u); });
}

BOOST_AUTO_TEST_CASE(when_memory_is_allocated) {
  backends();
  for (bool streams : {false, true}) {
    const Device device("joint", next_index(streams));
    compute_on(device);
    auto after_emptying = [&] {
      empty_cache(device);
      compute_on(device);
    };
    check_every_way("memory_alloc", after_emptying);
    check_fault("memory_alloc_null", {"memory_alloc reported success, but gave no memory"},
                after_emptying);
    check_fault("memory_alloc_misaligned", {"not aligned to the 64 bytes"}, after_emptying);
    check_fault("memory_alloc_overlaps",
                {"joint.so): memory_alloc gave ", ", which overlap the ", "give each call memory"},
                [&] {
                  empty_cache(device);
                  const Tensor small = empty({1000}, {.device = device});
                  empty({16 << 20}, {.device = device});
                });
  }
}

BOOST_AUTO_TEST_CASE(when_plans_are_made_and_run) {
  backends();
  for (bool streams : {false, true}) {
    const Device device("joint", next_index(streams));
    auto compute = [&] { compute_on(device); };
    compute();
    for (const char* function : {"plan_create", "run", "copy"}) check_every_way(function, compute);
    const std::string shapes = ",) on " + device.str();
    check_fault("run_throws", {"abs: (", shapes}, compute);
    check_fault("plan_create_throws", {"abs: (", shapes}, compute);
    // An error of the caller says which call it was, too.
    check_fault("plan_create_invalid", {"abs: (", shapes, ": joint: not available"}, compute);
    check_fault("plan_create_null", {"abs: (", "reported success, but gave no plan"}, compute);
    check_fault("plan_create_short", {"a plan that says it has 0 bytes"}, compute);
    check_fault("plan_create_without_run", {"a plan whose run is NULL"}, compute);
    check_fault("plan_create_without_destroy", {"a plan whose destroy is NULL"}, compute);
    check_fault("plan_create_huge_workspace",
                {"a workspace of 18446744073709551615 bytes, which no memory has"}, compute);
    check_fault("plan_create_large_workspace", {"cannot allocate 36028797018963968 bytes", "abs"},
                compute);
  }
}

BOOST_AUTO_TEST_CASE(when_a_plugin_asks_the_host) {
  backends();
  for (bool streams : {false, true}) {
    const Device device("joint", next_index(streams));
    auto compute = [&] { compute_on(device); };
    check_fault("run_in_a_loop_throws", {"joint.so): run let an exception out: a thrown text"},
                compute);
    check_fault("run_in_a_loop_without_body",
                {"run let an exception out: parallel_for was called without a body; give it"},
                compute);
    Environment broken("TENON_TEST_FAULT", "run_logs_without_context");
    BOOST_TEST(has(logged(compute), "[a plugin without tn_host.context] error: "));
  }
}

// Whichever function says so, it is final: the device is not asked again.
BOOST_AUTO_TEST_CASE(a_lost_device_stays_lost) {
  backends();
  for (const char* function : {"memory_alloc", "plan_create", "run"})
    for (bool streams : {false, true}) {
      const Device device("joint", next_index(streams));
      const Tensor x = full({5}, -2.0).to(device), known = abs(x);
      known.wait();
      std::string lost;
      {
        Environment broken("TENON_TEST_FAULT", std::string(function) + "_loses_the_device");
        if (std::string(function) == "memory_alloc") empty_cache(device);
        const auto lose = [&] { (void)abs(full({1 << 19}, -2.0).to(device)).to_vector<float>(); };
        lost = error_of(lose);
      }
      BOOST_TEST_CONTEXT(function << " on " << device.str()) {
        BOOST_TEST(has(lost, "it fell off the bus"), lost);
        if (std::string(function) != "run")
          BOOST_TEST(has(lost, device.str() + " is lost and cannot be used again"), lost);
        BOOST_TEST(error_of([&] { abs(x); }) == lost);
        BOOST_TEST(error_of([&] { full({7}, 1.0).to(device); }) == lost);
        BOOST_TEST(error_of([&] { abs(full({1 << 20}, 1.0, {.device = device})); }) == lost);
        BOOST_TEST(error_of([&] { (void)known.to_vector<float>(); }) == lost);
        BOOST_TEST(error_of([&] { synchronize(device); }) == lost);
      }
    }
}

BOOST_AUTO_TEST_CASE(the_loss_of_a_device_is_told_once,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  backends();
  const Device device("joint:1");
  const Tensor x = full({5}, -2.0).to(device);
  setenv("TENON_TEST_FAULT", "run_loses_the_device", 1);
  abs(x);
  setenv("TENON_TEST_FAULT", "", 1);
  BOOST_TEST(has(error_of([&] { abs(x); }), "it fell off the bus"));
}

BOOST_AUTO_TEST_CASE(a_loss_that_a_call_has_thrown_is_not_printed_at_the_end) {
  const Outcome outcome =
      run_alone("misbehaviour_test/the_loss_of_a_device_is_told_once", {}, kLongestHang);
  BOOST_TEST(outcome.status == 0, outcome.output);
  BOOST_TEST(!has(outcome.output, "it fell off the bus"), outcome.output);
}

BOOST_AUTO_TEST_CASE(the_shortage_of_memory_in_an_init,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  backends();
  setenv("TENON_TEST_FAULT", "init_lacks_memory", 1);
  for (int i = 0; i < 2; ++i)
    require_error<OutOfMemoryError>([] { compute_on("joint:0"); },
                                    "joint.so): init ran out of memory: no room for the tables",
                                    "calls it again");
  setenv("TENON_TEST_FAULT", "", 1);
  compute_on("joint:0");
}

BOOST_AUTO_TEST_CASE(an_init_that_runs_out_of_memory_says_where_and_is_called_again) {
  const Outcome outcome =
      run_alone("misbehaviour_test/the_shortage_of_memory_in_an_init", {}, kLongestHang);
  BOOST_TEST(outcome.status == 0, outcome.output);
}

BOOST_AUTO_TEST_CASE(a_loop_with_the_largest_grain_is_one_part) {
  backends();
  Environment asked("TENON_TEST_FAULT", "run_in_one_part");
  for (bool streams : {false, true}) compute_on(Device("joint", next_index(streams)));
}

// In a process of its own, as the number of threads is read once.
BOOST_AUTO_TEST_CASE(the_parts_of_the_longest_loop_cover_it) {
  const Outcome outcome =
      run_alone("misbehaviour_test/in_a_process_of_its_own",
                {"TENON_TEST_FAULT=run_in_the_longest_loop", "TENON_NUM_THREADS=7"}, kLongestHang);
  BOOST_TEST(outcome.status == 0, outcome.output);
  BOOST_TEST(!has(outcome.output, "refused: "), outcome.output);
}

BOOST_AUTO_TEST_CASE(when_streams_are_waited_for) {
  backends();
  // The loss of an event is told to whoever reads next, and the stream works on.
  for (const char* function : {"event_record", "event_query", "event_wait"}) {
    const Device device("joint", next_index(true));
    check_every_way(function, [&] { compute_on(device); });
    if (function == std::string("event_query"))
      check_fault("event_query_answers_7", {"event_query set *done to 7; set it to 1 once"},
                  [&] { compute_on(device); });
  }
  const Device one("joint", next_index(true)), two("joint", next_index(true));
  check_every_way("stream_wait", [&] { compute_on_two(one, two); });
  // Events are kept and used again: each fault needs a stream that has none.
  for (auto& way : kWays)
    check_opening("event_create" + way.suffix, parts_of("event_create", way), true);
  check_opening("event_create_null", {"event_create reported success, but gave no event"}, true);
}

// A wait for a device tries more than once to get an event.
BOOST_AUTO_TEST_CASE(a_lost_event_is_told_once_and_only_to_readers_of_its_device) {
  backends();
  const uint32_t index = next_index(true);
  const Device broken("joint", index), other("joint", next_index(true));
  auto made_on = [](Device device) {
    const Tensor x = full({next_size()}, -2.0).to(device);  // what this waits for is not abs
    return abs(x);
  };
  auto failure_of = [](const Tensor& x) { return error_of([&] { x.to_vector<float>(); }); };
  const Tensor here = made_on(broken), there = made_on(other), on_cpu = full({next_size()}, 1.0);
  Tensor read_there;
  {
    Environment only("TENON_TEST_FAULT_INDEX", std::to_string(index));
    Environment fault("TENON_TEST_FAULT", "event_record_error");
    (void)here.is_ready();
    read_there = abs(here.to(other));
  }
  BOOST_TEST(failure_of(there) == "");
  BOOST_TEST(failure_of(on_cpu) == "");
  const std::string told = failure_of(read_there);
  BOOST_TEST(has(told, "abs: (" + std::to_string(here.numel()) + ",) on " + broken.str()), told);
  BOOST_TEST(failure_of(here) == "");
  BOOST_TEST(failure_of(made_on(broken)) == "");
  BOOST_TEST(failure_of(abs(made_on(broken).to(other))) == "");
  BOOST_TEST(failure_of(made_on(broken).to("cpu")) == "");
}

BOOST_AUTO_TEST_CASE(an_overlay_that_fails_leaves_the_work_to_the_plugin_below) {
  backends();
  const Device device("joint", next_index(false));
  compute_on(device);
  for (const char* fault :
       {"plan_create_throws", "plan_create_throws_int", "plan_create_error", "plan_create_null",
        "plan_create_short", "plan_create_without_run", "plan_create_short_error"})
    BOOST_TEST_CONTEXT(fault) {
      Environment broken("TENON_TEST_OVERLAY_FAULT", fault);
      compute_on(device);
    }
  Environment broken("TENON_TEST_OVERLAY_FAULT", "run_throws");
  require_error<Error>([&] { compute_on(device); }, "joint_overlay.so): run let an exception out",
                       "by the overlay joint_overlay");
}

// ---- what ends or spoils the process

BOOST_AUTO_TEST_CASE(in_a_process_of_its_own,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  backends();
  const Device device("joint", std::getenv("TENON_TEST_STREAMS") ? 1 : 0);
  ModulePath path("Net");
  for (int i = 0; i < 2; ++i) {
    try {
      compute_on(device);
    } catch (const Error& e) {
      std::fprintf(stderr, "refused: %s\n", e.what());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_plugin_that_calls_exit_ends_the_process_and_is_named) {
  for (const char* function : {"load", "init", "device_open", "memory_alloc", "plan_create", "run",
                               "run_in_a_loop", "copy", "event_record", "device_close"})
    for (bool streams : {false, true}) BOOST_TEST_CONTEXT(function << ", " << streams) {
        if (!streams && std::string(function) == "event_record") continue;
        std::vector<std::string> environment = {
            std::string("TENON_TEST_FAULT=") + function + "_exits", "TENON_NUM_THREADS=2"};
        if (streams) environment.push_back("TENON_TEST_STREAMS=1");
        const Outcome outcome =
            run_alone("misbehaviour_test/in_a_process_of_its_own", environment, kLongestHang);
        if (std::string(function) == "device_close") {
          BOOST_TEST(outcome.status < 1000, outcome.output);
          continue;
        }
        BOOST_TEST(outcome.status == 3, outcome.output);
        const std::string name = function, device = streams ? "joint:1" : "joint:0";
        std::string said = "ended the process (exit) from inside ";
        if (name == "load")
          said += "a constructor of the library";
        else
          said += name == "run_in_a_loop" ? "run" : name;
        if (name.starts_with("run") || name == "plan_create")
          said += " of operator abs: (4,) on " + device + ", module Net";
        const size_t at = outcome.output.find(said + "; devices are left as they are");
        BOOST_REQUIRE_MESSAGE(at != std::string::npos, outcome.output << "lacks " << said);
        // It is said once.
        BOOST_TEST(outcome.output.find("(exit)") == outcome.output.rfind("(exit)"), outcome.output);
      }
}

BOOST_AUTO_TEST_CASE(pinned_memory_that_the_host_cannot_see_is_not_used) {
  const Outcome outcome = run_alone("misbehaviour_test/in_a_process_of_its_own",
                                    {"TENON_TEST_FAULT=memory_kinds_pinned_alone"}, kLongestHang);
  BOOST_TEST(outcome.status == 0, outcome.output);
  BOOST_TEST(has(outcome.output,
                 "[joint] warning: memory kind 1 of joint:0 is not used: it is TN_MEMORY_PINNED, "
                 "but not TN_MEMORY_HOST_VISIBLE; set both"),
             outcome.output);
}

BOOST_AUTO_TEST_CASE(a_library_that_throws_while_it_is_loaded_is_not_tried_again) {
  const Outcome outcome = run_alone("misbehaviour_test/in_a_process_of_its_own",
                                    {"TENON_TEST_FAULT=load_throws"}, kLongestHang);
  BOOST_TEST(outcome.status == 0, outcome.output);
  const std::string said = "let an exception out while it was loaded: a thrown text";
  const size_t first = outcome.output.find(said);
  BOOST_REQUIRE_MESSAGE(first != std::string::npos, outcome.output);
  BOOST_TEST((outcome.output.find(said, first + 1) != std::string::npos), outcome.output);
}

BOOST_AUTO_TEST_SUITE_END()
