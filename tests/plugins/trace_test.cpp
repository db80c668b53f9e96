// What ran, for how long, by whom and why: TENON_TRACE, TENON_CPU_FALLBACK, dispatch_stats().
// Variables are read once, so most of it happens in processes of their own.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "joint_folder.h"
#include "support/expect.h"
#include "traced.h"

BOOST_AUTO_TEST_SUITE(trace_test)

using namespace tenon;
using namespace tenon::test;
namespace but = boost::unit_test;

namespace {

struct Net : nn::Module<Net> {
  nn::Linear first{4, 8}, second{8, 2};
  Tensor forward(const Tensor& x) { return second(relu(first(x))); }
};

constexpr int kSteps = 5;

size_t times(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
  return n;
}

std::optional<DispatchStats::Runs> runs_of(const DispatchStats& stats, const char* op) {
  for (auto& r : stats.runs)
    if (r.op == op) return r;
  return std::nullopt;
}

}  // namespace

#define ALONE *but::disabled() * but::label("alone")

// ---- counts for programs

BOOST_AUTO_TEST_CASE(a_program_may_count_what_its_operators_do) {
  backends();
  const Tensor x = ones({2, 4}).to("primitives:0"), y = ones({4, 3}).to("primitives:0");
  const Tensor whole = ones({2, 4}, {.dtype = i64}).to("primitives:0");
  synchronize();
  reset_dispatch_stats();
  abs(x).wait();
  BOOST_TEST(dispatch_stats().runs.empty());
  count_dispatch();
  for (int i = 0; i < 3; ++i) matmul(x, y).wait();
  softmax(x, 1).wait();
  (x + whole).wait();
  y.t().reshape({12}).wait();
  const auto stats = dispatch_stats();
  count_dispatch(false);
  abs(x).wait();

  BOOST_REQUIRE(runs_of(stats, "matmul"));
  BOOST_TEST(runs_of(stats, "matmul")->runs == 3u);
  BOOST_TEST(runs_of(stats, "matmul")->device == "primitives:0");
  BOOST_TEST(runs_of(stats, "matmul")->owner == "primitives");
  BOOST_TEST(runs_of(stats, "matmul")->seconds > 0);
  BOOST_TEST(!runs_of(stats, "softmax"));
  for (const char* part : {"amax", "sub", "exp", "sum", "div"})
    BOOST_TEST((runs_of(stats, part) && runs_of(stats, part)->runs == 1u), part);
  BOOST_REQUIRE(stats.decomposed.size() == 1u);
  BOOST_TEST(stats.decomposed[0].op == "softmax");
  BOOST_TEST(stats.decomposed[0].signature == "f32 (2, 4)");
  BOOST_TEST(stats.decomposed[0].reason == "\n  primitives: primitives has no softmax");
  BOOST_TEST(stats.decomposed[0].count == 1u);
  BOOST_REQUIRE(stats.hidden_copies.size() == 1u);
  BOOST_TEST(stats.hidden_copies[0].op == "reshape");
  BOOST_TEST(stats.hidden_copies[0].signature == "f32 (3, 4)");
  BOOST_TEST(stats.hidden_copies[0].bytes == 48u);
  BOOST_REQUIRE(stats.conversions.size() == 1u);
  BOOST_TEST(stats.conversions[0].op == "add");
  BOOST_TEST(stats.conversions[0].signature == "i64 (2, 4)");
  BOOST_TEST(!runs_of(stats, "abs"));
  BOOST_TEST(!runs_of(dispatch_stats(), "abs"));
  reset_dispatch_stats();
  BOOST_TEST(dispatch_stats().runs.empty());
}

BOOST_AUTO_TEST_CASE(copies_for_a_plugin_that_takes_contiguous_inputs_are_counted) {
  const Tensor x = ones({2, 3, 8, 6}).transpose(2, 3), w = ones({4, 3, 3, 3});
  const Tensor expected = conv2d(x.contiguous(), w);
  count_dispatch();
  reset_dispatch_stats();
  for (int i = 0; i < 2; ++i)
    BOOST_TEST(conv2d(x, w).to_vector<float>() == expected.to_vector<float>());
  const auto stats = dispatch_stats();
  count_dispatch(false);
  BOOST_REQUIRE(stats.hidden_copies.size() == 1u);
  auto& copied = stats.hidden_copies[0];
  BOOST_TEST(copied.op == "conv2d");
  BOOST_TEST(copied.signature == "f32 (2, 3, 6, 8)");
  BOOST_TEST(copied.count == 2u);
  BOOST_TEST(copied.bytes == 2u * 2 * 3 * 8 * 6 * 4);
  BOOST_TEST(has(copied.reason, "\n  cpu: "), copied.reason);
}

// ---- the trace

BOOST_AUTO_TEST_CASE(a_small_net, ALONE) {
  backends();
  Net net;
  const Tensor x = ones({3, 4});
  for (int i = 0; i < kSteps; ++i) net(x).wait();
  matmul(ones({512, 512}), ones({512, 512})).wait();
  const Tensor there = x.to("primitives:0");
  softmax(there, 1).wait();
}

BOOST_AUTO_TEST_CASE(a_file_holds_all_that_ran) {
  const PluginFolder folder;
  const Outcome outcome = traced("trace_test/a_small_net", folder.file("a.json"));
  BOOST_REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  const auto events = events_of(folder.file("a.json"));
  auto runs = counts_of(events, "run");
  BOOST_TEST(runs["linear"] + runs["linear_relu"] == 2 * kSteps);
  BOOST_TEST(runs["relu"] == kSteps);
  BOOST_TEST(runs["matmul"] == 1);
  BOOST_TEST(runs["amax"] == 1);
  BOOST_TEST(runs["softmax"] == 0);
  BOOST_TEST((counts_of(events, "detour") == Counts{{"softmax: decomposed", 1}}));
  BOOST_TEST(counts_of(events, "plan")["plan relu"] == 1);
  BOOST_TEST(counts_of(events, "plan")["plan softmax"] == 1);
  BOOST_TEST((counts_of(events, "copy") == Counts{{"copy from the host", 1}}));
  bool big = false, in_module = false;
  for (auto& e : events) {
    const json& args = e.at("args");
    if (e.at("name") == "matmul") {
      big = args.at("how") == "on the worker thread" ||
            args.at("how") == "on the caller's thread";  // which waited, and was faster
      BOOST_TEST(args.at("tensors") == "f32 (512, 512), f32 (512, 512) -> f32 (512, 512)");
      BOOST_TEST(args.at("device") == "cpu:0");
    }
    if (e.at("cat") == "run" && args.value("module", "") == "Net.first") in_module = true;
    if (e.at("name") == "plan softmax")
      BOOST_TEST(has(args.at("passed over").get<std::string>(), "primitives has no softmax"));
  }
  BOOST_TEST(big);
  BOOST_TEST(in_module);
  BOOST_TEST(!has(outcome.output, "[trace]"), outcome.output);
  BOOST_TEST(has(outcome.output, "runs of operators: "), outcome.output);
  BOOST_TEST(has(outcome.output, "\n         1 softmax: f32 (3, 4) on primitives:0\n"),
             outcome.output);
}

// Each reader waits for its value: also where nothing asks for that (TENON_SYNC).
BOOST_AUTO_TEST_CASE(a_reader, ALONE) {
  backends();
  const Tensor y = abs(ones({3}).to("joint:1"));
  synchronize();
  // From now on no event says by itself that it is reached.
  setenv("TENON_TEST_FAULT", "event_wait_is_needed", 1);
  abs(y).wait();
}

BOOST_AUTO_TEST_CASE(a_file_holds_the_waits_of_readers) {
  const PluginFolder folder;
  const Outcome outcome = traced("trace_test/a_reader", folder.file("a.json"));
  BOOST_REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  BOOST_TEST(counts_of(events_of(folder.file("a.json")), "wait")["wait for joint:1"] >= 1);
}

BOOST_AUTO_TEST_CASE(lines_tell_each_run_and_each_plan) {
  const PluginFolder folder;
  const Outcome outcome = traced("trace_test/a_small_net", "ops,plans," + folder.file("a.json"));
  BOOST_REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  auto& text = outcome.output;
  const size_t runs = counts_of(events_of(folder.file("a.json")), "run").size();
  BOOST_TEST(runs > 5u);
  BOOST_TEST(times(text, "[trace] relu: f32 (3, 8) -> f32 (3, 8) on cpu:0 by cpu, ") ==
             static_cast<size_t>(kSteps));
  BOOST_TEST(times(text, " on the caller's thread, in module Net\n") == static_cast<size_t>(kSteps),
             text);
  BOOST_TEST(times(text, "[trace] plan: relu: ") == 1u, text);
  BOOST_TEST(has(text,
                 "[trace] plan: softmax: f32 (3, 4) -> f32 (3, 4) on primitives:0 by no "
                 "plugin, decomposed, made in "),
             text);
  BOOST_TEST(has(text, "; passed over\n  primitives: primitives has no softmax\n"), text);
  BOOST_TEST(has(text, "[trace] softmax: f32 (3, 4) on primitives:0 is decomposed\n"), text);
  BOOST_TEST(has(text, "[trace] copy of 48 bytes from the host by primitives, "), text);
}

BOOST_AUTO_TEST_CASE(a_step, ALONE) {
  backends();
  Net net;
  abs(net(ones({3, 4}))).sum().backward();
  Tensor there = ones({3, 4}).to("primitives:0");
  there.requires_grad_();
  (softmax(there, 1) * there).sum().backward();
  synchronize();
}

BOOST_AUTO_TEST_CASE(parts_name_the_operator_that_needs_them) {
  const PluginFolder folder;
  const Outcome outcome = traced("trace_test/a_step", "ops," + folder.file("a.json"));
  BOOST_REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  const auto events = events_of(folder.file("a.json"));
  auto gradients = counts_of(events, "gradient");
  BOOST_TEST(gradients["abs (gradient)"] == 1);
  BOOST_TEST(gradients["softmax (gradient)"] == 1);
  std::set<std::string> seen;  // "<operator>: part of <operator>, in <module>"
  for (auto& e : events) {
    if (e.at("cat") != "run") continue;
    const json& args = e.at("args");
    seen.insert(e.at("name").get<std::string>() + ": part of " + args.value("part of", "no other") +
                ", in " + args.value("module", "no module"));
  }
  for (const char* run :
       {"abs: part of no other, in no module", "mul: part of abs (gradient), in no module",
        "matmul: part of linear (gradient), in Net.first",
        "matmul: part of linear (gradient), in Net.second", "exp: part of softmax, in no module",
        "sum: part of softmax_backward of softmax (gradient), in no module"})
    BOOST_TEST(seen.contains(run), run << " is not there");
  for (const char* line : {", part of abs (gradient)\n", ", part of softmax\n",
                           ", part of linear (gradient), in module Net.second\n"})
    BOOST_TEST(has(outcome.output, line), outcome.output << " lacks " << line);
}

BOOST_AUTO_TEST_CASE(an_overlay_that_refuses, ALONE) {
  backends();
  abs(ones({3}).to("joint:0")).wait();
  setenv("TENON_TEST_OVERLAY_FAULT", "none", 1);
  abs(ones({4}).to("joint:1")).wait();
  BOOST_CHECK_THROW(exp(ones({5}).to("joint:1")), UnsupportedError);
  const PluginFolder folder;
  folder.add("priced", {{"name", "priced"}});
  folder.add(
      "overlay_priced",
      {{"kind", "overlay"}, {"overlays", "priced"}, {"name", "overlay_priced"}, {"priority", 1}});
  plugins::registry().add_path(folder.path());
  abs(ones({9}).to("priced:0")).wait();
}

BOOST_AUTO_TEST_CASE(plans_tell_their_owner_and_who_refused) {
  const Outcome outcome = traced("trace_test/an_overlay_that_refuses", "ops,plans");
  BOOST_REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  auto& text = outcome.output;
  BOOST_TEST(has(text, "plan: abs: f32 (3,) -> f32 (3,) on joint:0 by joint, made in"), text);
  BOOST_TEST(has(text, "; passed over\n  joint_overlay: not asked for\n"), text);
  BOOST_TEST(has(text, "plan: abs: f32 (4,) -> f32 (4,) on joint:1 by joint_overlay, made"), text);
  BOOST_TEST(has(text, "abs: f32 (4,) -> f32 (4,) on joint:1 by joint_overlay, "), text);
  BOOST_TEST(has(text, " queued on the device\n"), text);
  BOOST_TEST(has(text, "plan: abs: f32 (9,) -> f32 (9,) on priced:0 by overlay_priced, made"),
             text);
  BOOST_TEST(
      has(text,
          ", estimated to take 90 ns; passed over\n  priced: dearer, estimated to take 100 ns "
          "where overlay_priced takes 90 ns\n"),
      text);
  BOOST_TEST(
      has(text,
          "plan: exp: f32 (5,) -> f32 (5,) on joint:1 was not made: exp: (5,) on joint:1: no "
          "plugin of this device offers it:"),
      text);
}

BOOST_AUTO_TEST_SUITE_END()
