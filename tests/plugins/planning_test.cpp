// Who is asked for a plan, in which words, and what is said when nobody makes it.
#include <cstdio>
#include <string>
#include <utility>

#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/runtime/dispatch_stats.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "plugin_folder.h"
#include "process/child.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(planning_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// Devices of the fixtures are opened once a process: these plugins lie in the registry that the
// core asks.
struct Planners {
  Planners() {
    const json of_1_0 = {{"major", 1}, {"minor", 0}},
               overlay = {{"kind", "overlay"}, {"overlays", "good"}};
    auto over = [&](const char* name, int priority, json changes) {
      changes.update(overlay);
      changes.update({{"name", name}, {"priority", priority}});
      folder.add(name, changes);
    };
    folder.add("first", {{"name", "first"}, {"abi", of_1_0}});
    folder.add("newer", {{"name", "newer"}, {"abi", {{"major", 1}, {"minor", 7}}}});
    folder.add("good");
    over("overlay_shy", 10, json::object());
    over("overlay_first", 5, {{"abi", of_1_0}});
    folder.add("versions", {{"name", "versions"}});
    folder.add("priced", {{"name", "priced"}});
    folder.add(
        "overlay_priced",
        {{"kind", "overlay"}, {"overlays", "priced"}, {"name", "overlay_priced"}, {"priority", 1}});
    plugins::registry().add_path(folder.path());
  }
  PluginFolder folder;
};
Planners& planners() {
  static Planners all;
  return all;
}

// What plugins of the device were asked while `call` ran.
std::string questions(Device device, auto&& call) {
  Tensor opened = empty({1}, {.device = device});
  const std::string trace = planners().folder.file("trace");
  {
    Environment marker("TENON_TEST_TRACE", trace);
    call();
  }
  const std::string text = read_text(trace);
  fs::remove(trace);
  return text;
}

std::vector<float> absolute(Device device) {
  return abs(empty({4}, {.device = device})).to_vector<float>();
}

const std::vector<float> expected{42, 43, 44, 45};

}  // namespace

BOOST_AUTO_TEST_CASE(a_plugin_of_1_0_is_asked_what_it_supports_before_it_plans) {
  planners();
  std::vector<float> values;
  BOOST_TEST(questions("first:0", [&] { values = absolute("first:0"); }) ==
             "first supports\nfirst plan\n");
  BOOST_TEST(values == expected, boost::test_tools::per_element());
  const Tensor x = empty({4}, {.device = "first:0"});
  std::string text;
  BOOST_TEST(questions("first:0", [&] { text = error_of<UnsupportedError>([&] { exp(x); }); }) ==
             "first supports\n");
  BOOST_TEST(
      has(text,
          "exp: (4,) on first:0: no plugin of this device offers it:\n  first: not for first\n"),
      text);
}

BOOST_AUTO_TEST_CASE(pointwise_calls_without_gaps_share_a_plan_by_their_number_of_elements) {
  planners();
  auto absolute_of = [](const Shape& shape) { return abs(empty(shape, {.device = "newer:0"})); };
  BOOST_TEST(questions("newer:0", [&] { absolute_of({3, 2}); }) == "newer plan\n");
  BOOST_TEST(questions("newer:0", [&] {
               for (const Shape& shape : {Shape{6}, Shape{2, 3}, Shape{1, 6, 1}})
                 BOOST_TEST(absolute_of(shape).shape() == shape);
               // Without gaps, and the result is in the same order.
               abs(empty({3, 2}, {.device = "newer:0"}).transpose(0, 1));
             }) == "");
  BOOST_TEST(questions("newer:0", [&] {
               abs(empty({3, 4}, {.device = "newer:0"}).narrow(1, 0, 2));  // has gaps
             }) == "newer plan\n");
}

BOOST_AUTO_TEST_CASE(a_plan_in_use_stays_when_others_come_and_go) {
  planners();
  Tensor x = empty({20000}, {.device = "newer:0"});
  auto absolute_of = [&](int64_t n) { return abs(x.narrow(0, 0, n)); };
  const std::string once = "newer plan\n";
  auto plans = [&](int64_t first, int64_t last, auto&& between) {
    return questions("newer:0",
                     [&] {
                       for (int64_t n = first; n <= last; ++n) {
                         absolute_of(n);
                         between(n);
                       }
                     })
               .size() /
           once.size();
  };
  // A hundred that come back every hundred calls. Where the table's order, which is chance, brings
  // one to its turn before it comes back, it is planned once more: about one in a hundred on each
  // way round. First in, first out would plan each of them again.
  for (int64_t n = 100; n < 200; ++n) absolute_of(n);
  const size_t made = plans(5000, 20000, [&](int64_t n) { absolute_of(100 + n % 100); });
  BOOST_TEST(made >= 15001u);
  BOOST_TEST(made < 15001u + 40u);
  // The latest of the others are still there, and all but a few of the first have gone.
  BOOST_TEST(plans(14000, 20000, [](int64_t) {}) < 600u);
  BOOST_TEST(plans(5000, 5100, [](int64_t) {}) > 50u);
}

BOOST_AUTO_TEST_CASE(a_plugin_of_1_1_or_later_is_asked_for_the_plan_alone) {
  planners();
  for (const char* name : {"good", "newer"}) {
    const Device device(name);
    const Tensor x = empty({4}, {.device = device});
    std::string text;
    const std::string asked =
        questions(device, [&] { text = error_of<UnsupportedError>([&] { exp(x); }); });
    BOOST_TEST(!has(asked, std::string(name) + " supports"), asked);
    BOOST_TEST(has(asked, std::string(name) + " plan\n"), asked);
    BOOST_TEST(has(text, std::string("\n  ") + name + ": not for " + name + "\n"), text);
  }
  std::vector<float> values;
  BOOST_TEST(questions("newer:0", [&] { values = absolute("newer:0"); }) == "newer plan\n");
  BOOST_TEST(values == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(each_that_refuses_hands_on_to_the_next_whichever_way_it_says_no) {
  planners();
  std::vector<float> values;
  const std::string chain = "overlay_shy plan\noverlay_first supports\ngood plan\n";
  BOOST_TEST(questions("good:0", [&] { values = absolute("good:0"); }) == chain);
  BOOST_TEST(values == expected, boost::test_tools::per_element());
  // Made once: the next call asks nobody.
  BOOST_TEST(questions("good:0", [&] { absolute("good:0"); }) == "");
}

BOOST_AUTO_TEST_CASE(the_plan_that_is_known_to_cost_less_is_used) {
  planners();
  // The base's costs 100; that of the overlay, which is asked first, 10 an element.
  auto first_of = [](int64_t n) {
    return abs(empty({n}, {.device = "priced:0"})).to_vector<float>()[0];
  };
  const std::string both = "overlay_priced plan\npriced plan\n";
  float of_overlay = 0, of_base = 0, equal = 0;
  BOOST_TEST(questions("priced:0", [&] { of_overlay = first_of(9); }) == both + "priced destroy\n");
  BOOST_TEST(questions("priced:0", [&] { of_base = first_of(11); }) ==
             both + "overlay_priced destroy\n");
  BOOST_TEST(questions("priced:0", [&] { equal = first_of(10); }) == both + "priced destroy\n");
  BOOST_TEST(of_overlay == 1);
  BOOST_TEST(of_base == 42);
  BOOST_TEST(equal == 1);
  // Each choice was made once.
  BOOST_TEST(questions("priced:0", [&] { first_of(9), first_of(11); }) == "");
}

BOOST_AUTO_TEST_CASE(a_plan_that_costs_more_is_not_counted_as_a_refusal) {
  planners();
  reset_dispatch_stats();
  count_dispatch();
  abs(empty({13}, {.device = "priced:0"})).wait();  // both make a plan
  abs(empty({2}, {.device = "priced:0"})).wait();
  const size_t dearer = dispatch_stats().refused.size();
  abs(empty({13}, {.device = "good:0"})).wait();  // overlay_shy and overlay_first refuse
  const auto refused = dispatch_stats().refused;
  count_dispatch(false);
  BOOST_TEST(dearer == 0u);
  BOOST_REQUIRE(refused.size() == 1u);
  BOOST_TEST(has(refused[0].reason, "\n  overlay_shy: not for overlay_shy"), refused[0].reason);
}

BOOST_AUTO_TEST_CASE(a_plan_of_unknown_cost_ends_the_search) {
  planners();
  BOOST_TEST(questions("priced:0", [&] {
               BOOST_TEST(abs(empty({3}, {.device = "priced:0"})).to_vector<float>()[0] == 1);
             }) == "overlay_priced plan\n");
}

// Prints whose plan is used for some numbers of elements: 1 is stated_high, 2 stated_low, 42 the
// plugin below.
BOOST_AUTO_TEST_CASE(choices_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  PluginFolder folder;
  folder.add("stated", {{"name", "stated"}});
  for (auto& [name, priority] : {std::pair("stated_high", 3), std::pair("stated_broken", 2),
                                 std::pair("stated_invalid", 2), std::pair("stated_low", 1)})
    folder.add(
        name,
        {{"kind", "overlay"}, {"overlays", "stated"}, {"name", name}, {"priority", priority}});
  plugins::registry().add_path(folder.path());
  std::string choices;
  for (int64_t n : {3, 5, 8, 12, 20})
    choices += " " + std::to_string(static_cast<int>(
                         abs(empty({n}, {.device = "stated:0"})).to_vector<float>()[0]));
  std::printf("choices:%s\n", choices.c_str());
}

BOOST_AUTO_TEST_CASE(which_of_two_plans_is_used_does_not_depend_on_others) {
  auto output = [](const std::string& disabled, const std::string& fails = "stated_broken") {
    const std::string sound = fails == "stated_broken" ? "stated_invalid" : "stated_broken";
    return run_alone("planning_test/choices_alone",
                     {"TENON_TRACE=plans", "TENON_DISABLE=" + sound + "," + disabled}, 20)
        .output;
  };
  const std::string all = output("stated_broken"),
                    without_high = output("stated_broken,stated_high"),
                    without_low = output("stated_broken,stated_low"),
                    alone = output("stated_broken,stated_high,stated_low");
  // An overlay that states no cost goes first, the plugin below that states none last.
  BOOST_TEST(has(all, "choices: 1 2 2 2 2\n"), all);
  BOOST_TEST(has(without_high, "choices: 2 2 2 2 2\n"), without_high);
  BOOST_TEST(has(without_low, "choices: 1 1 1 42 42\n"), without_low);
  BOOST_TEST(has(alone, "choices: 42 42 42 42 42\n"), alone);
  for (const char* line :
       {"\n  stated_high: estimated to take 120 ns; stated_low states no cost, and an overlay "
        "that states none goes first\n  stated: not asked, because stated_low, an overlay, states "
        "no cost\n",
        ", estimated to take 50 ns; passed over\n",
        "\n  stated: dearer, estimated to take 100 ns where stated_low takes 50 ns\n"})
    BOOST_TEST(has(all, line), all << " lacks " << line);
  const std::string behind =
      "\n  stated: it states no cost, and so goes behind the 50 ns of stated_high\n";
  BOOST_TEST(has(without_low, behind), without_low);
  // One that fails is told whether or not there is a plan already.
  for (const std::string disabled : {"stated_low", "stated_low,stated_high"}) {
    const std::string text = output(disabled);
    BOOST_TEST(has(text, "[stated_broken] warning: abs: (8,) on stated:0 is left to "), text);
    BOOST_TEST(has(text, disabled == "stated_low" ? "choices: 1 1 1 42 42\n"
                                                  : "choices: 42 42 42 42 42\n"),
               text);
  }
  // Where there is one, also what would else end the call.
  const std::string text = output("stated_low", "stated_invalid");
  BOOST_TEST(has(text,
                 "[stated_invalid] warning: abs: (8,) on stated:0 is left to the other plugins: "
                 "not for stated_invalid"),
             text);
  BOOST_TEST(has(text, "choices: 1 1 1 42 42\n"), text);
}

BOOST_AUTO_TEST_CASE(the_plans_of_a_preferred_overlay_are_used_whatever_they_cost) {
  auto with = [](const std::string& preferred, const std::string& disabled) {
    return run_alone(
        "planning_test/choices_alone",
        {"TENON_TRACE=plans", "TENON_PREFER=" + preferred, "TENON_DISABLE=" + disabled}, 20);
  };
  const Outcome high = with("stated_high", "stated_invalid,stated_broken"),
                low = with("stated_low", "stated_broken,stated_invalid"),
                both = with("stated_low,stated_high", "stated_broken,stated_invalid");
  BOOST_TEST(has(high.output, "choices: 1 1 1 1 1\n"), high.output);
  BOOST_TEST(has(high.output, "\n  stated: not asked, because stated_high is preferred\n"),
             high.output);
  BOOST_TEST(has(low.output, "choices: 2 2 2 2 2\n"), low.output);
  BOOST_TEST(has(low.output, "\n  stated_high: not asked, because stated_low is preferred\n"),
             low.output);
  BOOST_TEST(has(both.output, "choices: 1 1 1 1 1\n"), both.output);
  // What it cannot do is no secret.
  const Outcome broken = with("stated_broken", "stated_invalid");
  BOOST_TEST(broken.status != 0);
  BOOST_TEST(has(broken.output, "stated:0: stated_broken: not for stated_broken"), broken.output);
  // It goes by its name, which is that of an overlay.
  for (const char* name : {"stated", "stated_hihg"}) {
    const Outcome none = with(name, "stated_broken,stated_invalid");
    BOOST_TEST(has(none.output, std::string("TENON_PREFER names \"") + name +
                                    "\", and no overlay of that name was found"),
               none.output);
    BOOST_TEST(has(none.output, "choices: 1 2 2 2 2\n"), none.output);
  }
  const Outcome off = with("stated_high", "stated_broken,stated_invalid,stated_high");
  BOOST_TEST(has(off.output,
                 "TENON_PREFER names \"stated_high\", and TENON_DISABLE switches it off; take the "
                 "name out of one of the two\n"),
             off.output);
}

BOOST_AUTO_TEST_CASE(a_plan_that_asks_gets_the_versions_of_its_inputs) {
  planners();
  const Device device("versions");
  std::vector<Tensor> x;
  for (int i = 0; i < 5; ++i) x.push_back(tensor({1, 2}, {2}, {.device = device}));
  // In place, from the queue, and with more than fit into a slot of the queue.
  for (const std::vector<Tensor>& inputs : {std::vector{x[0], x[1]}, std::vector{x[2], x[0], x[1]},
                                            std::vector{x[4], x[3], x[2], x[1], x[0]}}) {
    const auto first = cat(inputs).to_vector<float>(), again = cat(inputs).to_vector<float>();
    for (size_t i = 0; i < inputs.size(); ++i) {
      BOOST_TEST(first[i] == inputs[i].impl()->storage->values_number());
      BOOST_TEST(again[i] == first[i]);
    }
  }
  const float before = cat({x[0], x[1]}).to_vector<float>()[1];
  set_data(x[1], tensor({3, 4}, {2}, {.device = device}));
  const auto after = cat({x[0], x[1]}).to_vector<float>();
  BOOST_TEST(after[1] > before);
  BOOST_TEST(after[0] < before);
  BOOST_TEST(abs(x[0]).to_vector<float>()[0] == -1);  // did not ask
}

struct Absolute : nn::Module<Absolute> {
  Tensor forward(const Tensor& x) { return abs(x); }
};
struct Outer : nn::Module<Outer> {
  Absolute inner;
  Tensor forward(const Tensor& x) { return inner(x); }
};

BOOST_AUTO_TEST_CASE(what_a_gradient_rule_lacks_is_said_with_the_module_whose_gradient_it_is) {
  planners();
  Tensor x = empty({4}, {.device = "good:0"});
  x.requires_grad_();
  Outer model;
  Tensor y = model(x);
  const auto text =
      error_of<UnsupportedError>([&] { y.backward(empty({4}, {.device = "good:0"})); });
  BOOST_TEST(
      has(text,
          "sign: (4,) on good:0: no plugin of this device offers it (in module Outer.inner):"),
      text);
}

BOOST_AUTO_TEST_CASE(where_nobody_makes_it_the_error_has_every_reason_in_order) {
  planners();
  const Tensor x = empty({4}, {.device = "good:0"});
  const auto text = error_of<UnsupportedError>([&] { log(x); });
  BOOST_TEST(has(text,
                 "log: (4,) on good:0: no plugin of this device offers it:\n  overlay_shy: "
                 "not for overlay_shy\n"
                 "  overlay_first: not for overlay_first\n  good: not for good\n"),
             text);
}

BOOST_AUTO_TEST_SUITE_END()
