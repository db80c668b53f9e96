// What operators do under an Autocast guard: every line of the table of rules, looked at with the
// line of the table of operators that has its name.
#include <algorithm>
#include <cmath>
#include <set>

#include <tenon/conformance/run.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/ops/recurrent.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(autocast)

using namespace tenon;
using namespace tenon::test;
using conformance::contains;
using conformance::Line;
using conformance::List;
using conformance::Values;
using conformance::Variant;

namespace {

bool has_floating(const Line& line, const Variant& variant) {
  return std::any_of(variant.in.begin(), variant.in.end(), [&](auto& in) {
    const Values kind = kind_of(line, in);
    return kind != Values::flags && kind != Values::index && kind != Values::absent;
  });
}

// The smallest variant with elements that takes f32.
const Variant* variant_of(const Line& line) {
  const Variant* found = nullptr;
  int64_t least = 0;
  for (auto& v : line.variants) {
    if (!contains(v.types, f32) || !has_floating(line, v)) continue;
    int64_t size = 0;
    bool empty = false;
    for (auto& in : v.in) size += in.shape.numel(), empty = empty || in.shape.numel() == 0;
    if (empty || (found && size >= least)) continue;
    found = &v, least = size;
  }
  return found;
}

List inputs_of(const Line& line, const Variant& variant) {
  conformance::Random random(line, 1);
  List inputs;
  for (auto& in : variant.in) {
    const Values kind = kind_of(line, in);
    if (kind == Values::absent) {
      inputs.emplace_back();
      continue;
    }
    const bool wild = kind == Values::any || kind == Values::sums || kind == Values::lowest;
    inputs.push_back(random.values(in, wild ? Values::ordinary : kind, f32, in.shape, Device()));
  }
  return inputs;
}

Tensor halved(const Tensor& t) { return t.defined() && t.dtype() == f32 ? t.to(bf16) : t; }
Tensor widened(const Tensor& t) { return t.defined() && t.dtype() == bf16 ? t.to(f32) : t; }
List each(const List& list, Tensor (*change)(const Tensor&)) {
  List all;
  for (auto& t : list) all.push_back(change(t));
  return all;
}
// All but the first floating input in bf16.
List mixed(const List& list) {
  List all;
  bool first = true;
  for (auto& t : list) {
    const bool floating = t.defined() && t.dtype() == f32;
    all.push_back(floating && !first ? halved(t) : t);
    first = first && !floating;
  }
  return all;
}

List under_guard(const Line& line, const Variant& variant, const List& inputs) {
  const Autocast guard(bf16);
  return line.call(parsed(variant), inputs);
}

// What a call makes of its inputs before it calls the function is computed under the guard as well:
// of such lines only the dtypes are the same.
void require_same(const Line& line, const List& found, const List& expected,
                  bool with_made_inputs) {
  BOOST_REQUIRE_EQUAL(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    BOOST_REQUIRE_EQUAL(found[i].defined(), expected[i].defined());
    if (!found[i].defined()) continue;
    BOOST_TEST(found[i].dtype() == expected[i].dtype(),
               line.name << ": output " << i << " is " << found[i].dtype() << ", but should be "
                         << expected[i].dtype());
    if (with_made_inputs) continue;
    const auto a = found[i].to(f64).to_vector<double>(),
               b = expected[i].to(f64).to_vector<double>();
    BOOST_TEST(
        std::equal(a.begin(), a.end(), b.begin(), b.end(),
                   [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }),
        line.name << ": output " << i);
  }
}

// The call under a guard gives what it gives with inputs that were converted before.
void check_rule(const Line& line, AutocastRule rule) {
  const Variant* variant = variant_of(line);
  BOOST_REQUIRE_MESSAGE(variant, line.name << ": no variant in f32 has elements");
  const List in_f32 = inputs_of(line, *variant), in_bf16 = each(in_f32, halved);
  const auto args = parsed(*variant);
  const bool made = args.contains("made");
  if (rule == AutocastRule::lower) {
    const List expected = line.call(args, in_bf16);
    BOOST_TEST(expected[0].dtype() == bf16, line.name);
    require_same(line, under_guard(line, *variant, in_f32), expected, made);
    require_same(line, under_guard(line, *variant, mixed(in_f32)), expected, made);
    return;
  }
  if (rule == AutocastRule::f32) {
    const List expected = line.call(args, each(in_bf16, widened));
    require_same(line, under_guard(line, *variant, in_bf16), expected, made);
    return;
  }
  const List some = mixed(in_f32);
  require_same(line, under_guard(line, *variant, some), line.call(args, each(some, widened)), made);
}

const Line* line_of(std::string_view name) {
  for (auto& family : conformance::table())
    for (auto& line : family.lines)
      if (line.name == name) return &line;
  return nullptr;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_rule_is_followed) {
  const DeviceGuard on_cpu("cpu");
  for (auto& [name, rule] : autocast_rules()) {
    // The table has these by the cases of their layers.
    if (std::set<std::string_view>{"gru", "lstm", "rnn"}.contains(name)) continue;
    const Line* line = line_of(name);
    BOOST_REQUIRE_MESSAGE(line, name << " is no line of the table of operators");
    try {
      check_rule(*line, rule);
    } catch (const Error& e) {
      BOOST_ERROR(name << ": " << e.what());
    }
  }
}

BOOST_AUTO_TEST_CASE(recurrent_layers_follow_theirs) {
  const Tensor x = sample({5, 2, 3}).to(f32), h = sample({1, 2, 4}).to(f32), c = h * 0.5;
  const auto weights = [](int64_t gates, DType dtype) {
    return std::vector{sample({gates * 4, 3}, 0.2).to(f32).to(dtype),
                       sample({gates * 4, 4}, 0.4).to(f32).to(dtype)};
  };
  const auto outputs = [&](DType dtype, DType of_weights) {
    const auto to = [&](const Tensor& t) { return t.to(dtype); };
    return std::vector{std::get<0>(lstm(to(x), to(h), to(c), weights(4, of_weights))),
                       gru(to(x), to(h), weights(3, of_weights)).first,
                       rnn(to(x), to(h), weights(1, of_weights)).first};
  };
  const auto expected = outputs(bf16, bf16);
  const Autocast guard(bf16);
  for (DType dtype : {f32, bf16}) {
    const auto found = outputs(dtype, f32);
    for (size_t i = 0; i < found.size(); ++i) {
      BOOST_TEST(found[i].dtype() == bf16);
      require_equal(found[i], expected[i]);
    }
  }
}

BOOST_AUTO_TEST_CASE(undefined_tensors_are_refused_as_without_a_guard) {
  for (auto& [name, rule] : autocast_rules()) {
    const Line* line = line_of(name);
    const Variant* variant = line ? variant_of(*line) : nullptr;
    if (!variant) continue;
    const List inputs = inputs_of(*line, *variant);
    for (size_t i = 0; i < inputs.size(); ++i) {
      List some = inputs;
      some[i] = Tensor();
      const std::string expected = error_of([&] { line->call(parsed(*variant), some); }),
                        found = error_of([&] { under_guard(*line, *variant, some); });
      BOOST_TEST(found.empty() == expected.empty(), name << ", input " << i << ": " << found);
    }
  }
}

// Whatever runs without a guard, runs under one: in f32, and in bf16 where it takes that.
BOOST_AUTO_TEST_CASE(everything_runs_under_a_guard) {
  const DeviceGuard on_cpu("cpu");
  size_t count = 0;
  for (auto& family : conformance::table())
    for (auto& line : family.lines) {
      const Variant* variant = variant_of(line);
      if (!variant || std::string_view(family.name) == "optimizer") continue;
      for (const List& inputs :
           {inputs_of(line, *variant), each(inputs_of(line, *variant), halved)}) {
        if (!error_of([&] { line.call(parsed(*variant), inputs); }).empty()) continue;
        ++count;
        const std::string error = error_of([&] { under_guard(line, *variant, inputs); });
        BOOST_TEST(error.empty(), line.name << ": " << error);
      }
    }
  BOOST_TEST(count > 400u);
}

BOOST_AUTO_TEST_SUITE_END()
