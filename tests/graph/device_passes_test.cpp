// What passes and files make of a function that computes on several devices: nothing of one device
// gets into a program's work for another.
#include <functional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "../files.h"
#include "shared_runs.h"

BOOST_AUTO_TEST_SUITE(device_passes_test)

using namespace tenon;
using test::places;
using test::same_bits;
using test::says;
using Results = std::vector<Tensor>;

namespace {

// Calls a function of a tensor on each device and its compiled form. Returns what explain() says.
using Function = std::function<Results(const Tensor& x, const Tensor& y)>;
std::string explained(const Function& f, const std::vector<Device>& devices,
                      const CompilePasses& passes = {}) {
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return f(x, y); },
                          CompileOptions{.passes = passes});
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randn({60, 500}, {.device = devices[0]});
    const Tensor y = randn({60, 500}, {.device = devices[1]});
    const auto expected = f(x, y), found = compiled(x, y);
    BOOST_TEST(same_bits(found, expected));
    for (size_t k = 0; k < found.size(); ++k) BOOST_TEST(found[k].device() == expected[k].device());
  }
  return compiled.explain();
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

bool has_operators(const std::string& text, size_t operators, size_t recorded) {
  return test::has(text, "a program of " + std::to_string(operators) +
                             " operators, replayed 4 times, made of " + std::to_string(recorded) +
                             " ");
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_device_has_groups_of_its_own) {
  const auto devices = places(2);
  // One after the other, as a step does it for each part of a batch.
  const std::string text = explained(
      [](const Tensor& x, const Tensor& y) {
        const Tensor a = x * 2.0, b = y * 2.0, c = a + 1.0, d = b + 1.0;
        return Results{relu(c), relu(d)};
      },
      devices);
  BOOST_TEST(count(text, "fused: mul, add, relu\n") == 2u, text);
  BOOST_TEST(has_operators(text, 2, 6), text);
}

BOOST_AUTO_TEST_CASE(a_copy_between_devices_parts_groups) {
  const auto devices = places(2);
  const std::string text = explained(
      [&](const Tensor& x, const Tensor&) {
        const Tensor a = relu(x * 2.0 + 1.0);
        const Tensor b = sigmoid((a * 3.0).to(devices[1]) + 1.0);
        return Results{b * 0.5};
      },
      devices);
  BOOST_TEST(test::has(text, "fused: mul, add, relu, mul\n"), text);
  BOOST_TEST(test::has(text, "fused: add, sigmoid, mul\n"), text);
  BOOST_TEST(has_operators(text, 3, 8), text);
}

BOOST_AUTO_TEST_CASE(devices_share_no_results) {
  const auto devices = places(2);
  const CompilePasses sharing{.constants = false, .pointwise = false};
  const std::string text = explained(
      [&](const Tensor& x, const Tensor& y) {
        Results all;
        for (auto& t : {x, y, x, y}) {
          const Tensor rows = arange(0, 60, 1, {.device = t.device()});
          all.push_back(exp(t).sum({1}) + rows);
        }
        return Results{all[0] - all[2], all[1] - all[3]};
      },
      devices, sharing);
  // What x and y need each is left of 18 operators: exp, sum, the rows, and two sums.
  BOOST_TEST(has_operators(text, 10, 18), text);
  BOOST_TEST(test::has(text, "removed: 8 operators that compute something again"), text);
}

BOOST_AUTO_TEST_CASE(constants_of_two_devices_keep_their_devices) {
  const auto devices = places(2);
  const std::string text = explained(
      [&](const Tensor& x, const Tensor& y) {
        const Tensor a = arange(0, 500, 1, {.device = devices[0]}) * 0.5;
        const Tensor b = arange(0, 500, 1, {.device = devices[1]}) * 0.5;
        return Results{matmul(x, a), matmul(y, b), matmul(y, a.to(devices[1]) + b)};
      },
      devices);
  BOOST_TEST(test::has(text, "operators that always compute the same"), text);
}

// What the host reads as a tensor has a storage of its own, which no pass takes away.
BOOST_AUTO_TEST_CASE(what_the_host_copies_stays) {
  const auto devices = places(2);
  const std::string text = explained(
      [&](const Tensor& x, const Tensor& y) {
        const Tensor a = arange(0, 500, 1, {.device = devices[0]});  // constant, and copied
        const Tensor b = exp(x), c = exp(x);                         // the same, and both copied
        const Tensor d = x.clone();                                  // a copy that is copied
        Tensor all = y + a.to(devices[1]) + b.to(devices[1]);
        all.add_(c.to(devices[1]));
        return Results{all, d.to(devices[1])};
      },
      devices);
  BOOST_TEST(test::has(text, "copy x5"), text);  // the clone is one of them
}

BOOST_AUTO_TEST_CASE(all_passes_and_none_do_the_same) {
  const auto devices = places(3);
  const Function f = [&](const Tensor& x, const Tensor& y) {
    Tensor far = softmax(x * 0.5, 1).to(devices[2]);
    far.mul_(2.0);
    const Tensor near = layer_norm(y + far.to(devices[1]), {500});
    return Results{near, far, (near.mean({1}) * 2.0).to(devices[0]) + x.amax({1})};
  };
  for (const bool on : {false, true}) {
    const std::string text = explained(f, devices,
                                       {.dead_code = on,
                                        .common_subexpressions = on,
                                        .copies = on,
                                        .constants = on,
                                        .residuals = on,
                                        .activations = on,
                                        .pointwise = on});
    BOOST_TEST(test::has(text, "replayed 4 times"), text);
    BOOST_TEST(test::has(text, "on " + devices[0].str() + " "), text);
  }
}

// A file has one device and no host; what is in the way is named.
BOOST_AUTO_TEST_CASE(what_a_file_cannot_hold_is_refused_by_name) {
  const auto devices = places(2);
  TempFolder folder;
  NoGrad guard;
  const auto refusal = [&](const Function& f) {
    auto compiled = compile([&](const Tensor& x, const Tensor& y) { return f(x, y); });
    for (int i = 0; i < 3; ++i)
      compiled(randn({2, 3}, {.device = devices[0]}), randn({2, 3}, {.device = devices[1]}));
    BOOST_TEST(says(compiled, "replayed 1 times"));
    return test::error_of<ValueError>([&] { compiled.save(folder / "f.tenon"); });
  };
  const std::string first = devices[0].str(), second = devices[1].str();
  std::string text =
      refusal([&](const Tensor& x, const Tensor& y) { return Results{x.to(devices[1]) + y}; });
  BOOST_TEST(test::has(text, "\"copy\" is work of the host, which a file cannot hold"), text);
  text = refusal([&](const Tensor& x, const Tensor&) {
    return Results{x + tensor({1.0f}, {.device = devices[0]})};
  });
  BOOST_TEST(test::has(text, "\"values of the host\" is work of the host"), text);
  text = refusal([](const Tensor& x, const Tensor&) { return Results{x + 1.0}; });
  BOOST_TEST(test::has(text, "argument 1 is on " + second + ", and the function computes on " +
                                 first + "; a file has one device"),
             text);

  const Tensor outside = ones({2, 3}, {.device = devices[1]});
  const auto save = [&](const std::function<Results(const Tensor&)>& f) {
    auto compiled = compile([&](const Tensor& x) { return f(x); });
    for (int i = 0; i < 3; ++i) compiled(randn({2, 3}, {.device = devices[0]}));
    return test::error_of<ValueError>([&] { compiled.save(folder / "g.tenon"); });
  };
  text = save([&](const Tensor& x) { return Results{x + 1.0, outside}; });
  BOOST_TEST(test::has(text, "result 1 is on " + second), text);
  text = save([&](const Tensor& x) { return Results{x + 1.0, outside * 2.0}; });
  BOOST_TEST(test::has(text, "runs on " + second + ", and what came before it on " + first), text);
}

BOOST_AUTO_TEST_SUITE_END()
