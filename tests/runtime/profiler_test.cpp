// What a Profiler tells of a program: operators by device and module, copies, waits, ranges.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "files.h"
#include "sim/faults.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(profiler_test)

using namespace tenon;
using namespace tenon::test;
using profiler::Event;
using profiler::Kind;
using profiler::Profiler;

namespace {

struct Net : nn::Module<Net> {
  nn::Linear fc1{16, 32}, fc2{32, 4};
  Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))); }
};

const profiler::Average* find(const profiler::Averages& averages, const std::string& key) {
  auto it = std::find_if(averages.begin(), averages.end(), [&](auto& a) { return a.key == key; });
  return it == averages.end() ? nullptr : &*it;
}

size_t count(const Profiler& profiler, auto&& matches) {
  return static_cast<size_t>(
      std::count_if(profiler.events().begin(), profiler.events().end(), matches));
}

}  // namespace

BOOST_AUTO_TEST_CASE(operators_are_told_with_device_module_and_shapes) {
  Net net;
  const Tensor x = ones({8, 16});
  net(x).sum().backward();  // plans are made
  Profiler profiler({.record_shapes = true, .profile_memory = true});
  for (int step = 0; step < 3; ++step) net(x).sum().backward();
  BOOST_TEST(profiler.events().empty());
  profiler.stop();
  net(x).sum().item();  // not recorded any more

  BOOST_TEST(profiler.lost() == 0u);
  auto forward = [](const Event& e) {
    return e.kind == Kind::op && e.name == "linear" && e.module == "Net.fc1";
  };
  BOOST_TEST(count(profiler, forward) == 3u);
  auto event = std::find_if(profiler.events().begin(), profiler.events().end(), forward);
  BOOST_REQUIRE(event != profiler.events().end());
  BOOST_TEST(event->device == "cpu:0");
  BOOST_TEST(event->lane == "cpu:0");
  BOOST_TEST(event->tensors == "f32 (8, 16), f32 (32, 16), f32 (32,) -> f32 (8, 32)");
  BOOST_TEST(event->allocated >= 4u * 32 * 16);
  BOOST_TEST(!event->by.empty());
  for (auto& e : profiler.events()) {
    BOOST_TEST(0 <= e.queued);
    BOOST_TEST(e.queued <= e.began);
    BOOST_TEST(e.began <= e.ended);
    BOOST_TEST(e.ended <= profiler.seconds());
    BOOST_TEST(!e.failed);
  }
  BOOST_TEST(std::is_sorted(profiler.events().begin(), profiler.events().end(),
                            [](auto& a, auto& b) { return a.began < b.began; }));
  BOOST_TEST(count(profiler, [](const Event& e) {
               return e.kind == Kind::op && e.part_of.find("(gradient)") != e.part_of.npos;
             }) >= 3u);
}

BOOST_AUTO_TEST_CASE(tables_sum_up_operators_and_modules) {
  Net net;
  Profiler profiler;
  for (int step = 0; step < 2; ++step) net(ones({8, 16})).sum().backward();
  profiler.stop();
  const auto operators = profiler.key_averages(), modules = profiler.module_averages();
  auto* linear = find(operators, "linear");
  BOOST_REQUIRE(linear);
  BOOST_TEST(linear->count == 4u);
  BOOST_TEST(linear->longest <= linear->total);
  auto *whole = find(modules, "Net"), *first = find(modules, "Net.fc1"),
       *second = find(modules, "Net.fc2");
  BOOST_REQUIRE((whole && first && second));
  BOOST_TEST(whole->count > first->count + second->count);  // relu, too
  BOOST_TEST(whole->total >= first->total + second->total);
  BOOST_TEST(find(modules, "(no module)"));
  std::ostringstream text;
  text << operators << modules;
  for (auto* part : {"operator", "share", "calls", "linear", "Net.fc1", "(no module)"})
    BOOST_TEST(has(text.str(), part), text.str());
  BOOST_TEST(std::is_sorted(operators.begin(), operators.end(),
                            [](auto& a, auto& b) { return a.total > b.total; }));
}

BOOST_AUTO_TEST_CASE(each_device_has_a_lane_in_which_one_thing_happens_at_a_time) {
  Profiler profiler;
  Tensor a = ones({64, 64}, {.device = "cpu:0"}), b = ones({64, 64}, {.device = "cpu:1"});
  for (int step = 0; step < 20; ++step) a = matmul(a, a) * 1e-2, b = matmul(b, b) * 1e-2;
  const Tensor there = a.to("cpu:1");
  profiler.stop();
  for (std::string device : {"cpu:0", "cpu:1"}) {
    double free_from = 0;
    size_t products = 0;
    for (auto& e : profiler.events()) {
      if (e.lane != device) continue;
      BOOST_TEST(e.device == device);
      BOOST_TEST(e.began >= free_from);
      free_from = e.ended;
      products += e.name == "matmul";
    }
    BOOST_TEST(products == 20u);
  }
  auto copied = std::find_if(profiler.events().begin(), profiler.events().end(),
                             [](auto& e) { return e.kind == Kind::copy; });
  BOOST_REQUIRE(copied != profiler.events().end());
  BOOST_TEST(copied->bytes == 64u * 64 * 4);
  BOOST_TEST(copied->device == "cpu:1");
}

BOOST_AUTO_TEST_CASE(ranges_and_waits_belong_to_their_threads) {
  { profiler::Range unseen("before"); }
  Profiler profiler;
  {
    profiler::Range range("a batch");
    Tensor x = ones({256, 256});
    for (int step = 0; step < 50; ++step) x = matmul(x, x) * 1e-3;
    x.sum().item();
  }
  std::thread([] { profiler::Range range("elsewhere"); }).join();
  profiler.stop();
  const auto ranges = profiler.range_averages();
  BOOST_TEST(find(ranges, "a batch"));
  BOOST_TEST(!find(ranges, "before"));
  for (auto& e : profiler.events()) {
    if (e.kind != Kind::range) continue;
    BOOST_TEST((e.lane == "main") == (e.name == "a batch"));
    if (e.name == "elsewhere") BOOST_TEST(e.lane.starts_with("thread "), e.lane);
  }
}

BOOST_AUTO_TEST_CASE(one_records_at_a_time_and_no_more_than_it_may) {
  require_error<ValueError>([] { Profiler none({.max_events = 0}); }, "max_events is 0");
  {
    Profiler first({.max_events = 5});
    require_error<ValueError>([] { Profiler second; }, "another profiler records", "stop()");
    require_error<ValueError>([&] { first.export_chrome_trace("never.json"); }, "stop() it first");
    for (int i = 0; i < 20; ++i) ones({3}) + 1;
    first.stop();
    first.stop();
    BOOST_TEST(first.events().size() == 5u);
    BOOST_TEST(first.lost() >= 15u);
  }
  { Profiler ended_by_its_scope; }
  Profiler next;
  next.stop();
  BOOST_TEST(next.key_averages().empty());
}

BOOST_AUTO_TEST_CASE(a_trace_has_all_events_in_named_lanes) {
  TempFolder folder;
  const std::string path = folder / "trace.json";
  Profiler profiler({.record_shapes = true, .profile_memory = true});
  {
    profiler::Range range("says \"hello\"\n");
    Net net;
    net(ones({2, 16})).sum().item();
  }
  profiler.stop();
  profiler.export_chrome_trace(path);
  std::ifstream file(path);
  const auto trace = nlohmann::json::parse(file);
  size_t events = 0, curves = 0;
  std::set<std::string> lanes;
  for (auto& e : trace) {
    events += e.at("ph") == "X";
    curves += e.at("ph") == "C" && e.at("name") == "memory of cpu:0";
    if (e.at("name") == "thread_name") lanes.insert(e.at("args").at("name").get<std::string>());
  }
  BOOST_TEST(events == profiler.events().size());
  BOOST_TEST(curves > 0u);
  BOOST_TEST((lanes == std::set<std::string>{"cpu:0", "main"}));
  require_error<Error>([&] { profiler.export_chrome_trace(folder / "absent/trace.json"); },
                       "absent/trace.json", "cannot be written", "No such file");
}

BOOST_AUTO_TEST_CASE(errors_of_the_work_end_the_recording_too) {
  Profiler profiler;
  Tensor x = ones({4});
  x.index_select(0, full({1}, 9, {.dtype = i64}));
  BOOST_CHECK_THROW(profiler.stop(), Error);
  BOOST_TEST(count(profiler, [](const Event& e) { return e.failed; }) == 1u);
  Profiler next;  // may begin
}

// Two devices stand before a gate at the same time, and the program does something meanwhile.
BOOST_AUTO_TEST_CASE(devices_with_streams_tell_when_they_worked) {
  SimFolder sim;
  const auto& gate = *plugins::registry().load("sim").extension<sim::Gate>("sim.gate", 1);
  for (bool again : {false, true}) {
    Tensor a = empty({3}, {.device = "sim:0"}), b = empty({3}, {.device = "sim:1"});
    if (again) a.fill_(1), b.fill_(1), synchronize();
    gate.shut();
    Profiler profiler;
    a.fill_(sim::kWaitsAtGate), b.fill_(sim::kWaitsAtGate);
    while (gate.waiting() < 2) std::this_thread::yield();
    {
      profiler::Range range("while devices work");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    gate.open();
    const auto on_host = a.to("cpu");
    profiler.stop();
    const auto& events = profiler.events();
    const auto range = std::find_if(events.begin(), events.end(),
                                    [](auto& e) { return e.name == "while devices work"; });
    BOOST_REQUIRE((range != events.end()));
    size_t fills = 0, copies = 0;
    for (auto& e : events) {
      if (e.kind != Kind::op && e.kind != Kind::copy) continue;
      BOOST_TEST(e.on_device, e.name << " on " << e.device);
      BOOST_TEST((e.queued <= e.began && e.began <= e.ended && e.ended <= profiler.seconds()));
      copies += e.kind == Kind::copy && e.lane == "sim:0";
      if (e.name != "fill") continue;
      ++fills;
      BOOST_TEST(e.lane == e.device);
      // The host may notice late that work has begun or ended, but never early.
      BOOST_TEST(e.ended >= range->ended - 1e-6);
    }
    BOOST_TEST(fills == 2u);
    BOOST_TEST(copies == 1u);
  }
}

BOOST_AUTO_TEST_CASE(sums_over_devices_are_events_of_each) {
  SimFolder sim;
  const std::vector<Device> devices = {"sim:0", "sim:1"};
  std::vector<Tensor> parts = {full({8}, 1, {.device = devices[0]}),
                               full({8}, 2, {.device = devices[1]})};
  synchronize();
  Profiler profiler;
  nn::parallel::all_reduce_(parts);
  profiler.stop();
  std::string lanes;
  for (auto& e : profiler.events()) {
    if (e.kind != Kind::collective) continue;
    lanes += e.lane + " ";
    BOOST_TEST(e.name == "all_reduce");
    BOOST_TEST(e.by == "sim");
    BOOST_TEST(e.device == e.lane);
    BOOST_TEST(e.bytes == 32u);
    BOOST_TEST(e.on_device);
    BOOST_TEST((e.queued <= e.began && e.began <= e.ended && e.ended <= profiler.seconds()));
  }
  BOOST_TEST((lanes == "sim:0 sim:1 " || lanes == "sim:1 sim:0 "), lanes);
  BOOST_TEST(parts[1].sum().item() == 24.0);
}

// What the device reports of work that is timed is told as ever, and names the operator.
BOOST_AUTO_TEST_CASE(errors_that_devices_report_late_are_told_while_they_are_watched) {
  SimFolder sim;
  Tensor x = ones({3}, {.device = "sim:2"}), y = ones({3}, {.device = "sim:2"});
  for (double accident : {sim::kFailsLate, sim::kFailsAtOnce}) {
    Profiler profiler;
    y.fill_(2);
    x.fill_(accident);
    y.fill_(3);
    const std::string told = error_of([&] { (void)x.to_vector<float>(); });
    BOOST_TEST(has(told, "an accident"), told);
    BOOST_TEST(has(told, "fill on sim:2"), told);
    profiler.stop();
    y.fill_(4);
    BOOST_TEST(y.to_vector<float>()[2] == 4.0f);
  }
}

BOOST_AUTO_TEST_CASE(the_child_of_a_fork_is_not_recorded) {
  Profiler profiler;
  (ones({3}) + 1).sum().item();
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    (ones({3}) + 1).sum().item();
    profiler.stop();
    wrong |= !profiler.events().empty();
    Profiler own;
    (ones({3}) + 1).sum().item();
    own.stop();
    wrong |= (own.events().empty() ? 2 : 0);
    _exit(wrong);
  }
  int status = 0;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_TEST(WEXITSTATUS(status) == 0);
  profiler.stop();
  BOOST_TEST(!profiler.events().empty());
}

BOOST_AUTO_TEST_CASE(threads_that_follow_each_other_have_rows_of_their_own) {
  Profiler profiler;
  for (int i = 0; i < 3; ++i) std::thread([] { profiler::Range range("work"); }).join();
  profiler.stop();
  std::set<std::string> lanes;
  for (auto& e : profiler.events()) lanes.insert(e.lane);
  BOOST_TEST(lanes.size() == 3u);
}

BOOST_AUTO_TEST_SUITE_END()
