// Operators that a device lacks: on the CPU by TENON_CPU_FALLBACK, or errors that name what the
// user called.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/optimizer.h>
#include <tenon/tenon.h>

#include "joint_folder.h"
#include "process/child.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(fallback_test)

using namespace tenon;
using namespace tenon::test;
namespace but = boost::unit_test;

#define ALONE *but::disabled() * but::label("alone")

namespace {

size_t times(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
  return n;
}

void check_same(const Tensor& there, const Tensor& here) {
  BOOST_TEST(there.device() != here.device());
  BOOST_TEST(there.dtype() == here.dtype());
  BOOST_TEST(there.to_vector<double>() == here.to_vector<double>(),
             boost::test_tools::per_element());
}
}  // namespace

BOOST_AUTO_TEST_CASE(what_the_device_lacks, ALONE) {
  backends();
  const Device device("joint", std::getenv("TENON_TEST_STREAMS") ? 1 : 0);
  auto on_both = [&](auto&& make) {
    manual_seed(7);
    const Tensor there = make(device);
    manual_seed(7);
    check_same(there, make(Device()));
    return there;
  };
  // Without inputs.
  const Tensor x = on_both([](Device d) { return randn({4, 6}, {.device = d}); });
  on_both([](Device d) { return arange(0, 5, 1, {.dtype = i64, .device = d}); });
  on_both([](Device d) { return randint(0, 9, {5}, {.device = d}); });
  // With inputs that are not contiguous, decomposed, and in place.
  check_same(sum(x.t(), 0), sum(x.to("cpu").t(), 0));
  check_same(x.t().contiguous(), x.to("cpu").t().contiguous());
  const Tensor on_cpu = x.to("cpu");  // computes softmax as a whole
  BOOST_TEST(amax(abs(softmax(x, 1).to("cpu") - softmax(on_cpu, 1))).item() < 1e-6);
  on_both([](Device d) {
    Tensor m = zeros({4, 6}, {.device = d});
    m.slice(1, 1, 6, 2).copy_(ones({4, 3}, {.device = d}));
    m.select(0, 2).fill_(5);
    m.t().slice(0, 0, 2).uniform_(2, 3);
    std::vector<Tensor> parameters = {m.slice(1, 0, 5, 3)}, gradients = {m.slice(1, 1, 6, 3)};
    std::vector<Tensor> momenta = {zeros({4, 2}, {.device = d})};
    sgd_step(parameters, gradients, momenta, {.lr = 0.5, .momentum = 0.9});
    return m;
  });
  // The one that it has.
  check_same(abs(x), abs(x.to("cpu")));
  BOOST_TEST(zeros({0, 3}, {.device = device}).to_vector<float>().empty());
}

BOOST_AUTO_TEST_CASE(the_cpu_computes_all_that_a_device_lacks) {
  for (const char* streams : {"", "TENON_TEST_STREAMS=1"}) {
    std::vector<std::string> environment = {"TENON_CPU_FALLBACK=report"};
    if (*streams) environment.push_back(streams);
    const Outcome outcome = run_alone("fallback_test/what_the_device_lacks", environment);
    auto& text = outcome.output;
    BOOST_REQUIRE_MESSAGE(outcome.status == 0, text);
    const std::string device = *streams ? "joint:1" : "joint:0";
    for (const char* op : {"normal", "arange", "randint", "sum", "copy", "fill", "uniform"})
      BOOST_TEST(times(text, std::string("tenon: ") + op + " on " + device) +
                         times(text, std::string("tenon: ") + op + ": ") ==
                     1u,
                 op << text);
    BOOST_TEST(times(text, "tenon: abs") == 0u, text);
    const size_t list = text.find("[tenon] computed on the CPU, because the device lacks them:\n");
    BOOST_REQUIRE_MESSAGE(list != text.npos, text);
    for (const std::string& entry :
         {"  1 normal: -> f32 (4, 6) on " + device + ", 96 bytes\n",
          "  1 arange: -> i64 (5,) on " + device + ", 40 bytes\n",
          "  1 sum: f32 (6, 4) on " + device + ", 112 bytes\n",
          "  1 exp: f32 (4, 6) on " + device + ", for softmax, 192 bytes\n",
          "  1 sub: f32 (4, 6), f32 (4, 1) on " + device + ", for softmax, 208 bytes\n"})
      BOOST_TEST((text.find(entry, list) != text.npos), entry << text);
    BOOST_TEST(has(text, "\n            joint: only abs of contiguous f32"), text);
  }
}

// Starts to count before it opens a device. It has to be the only test of its process.
BOOST_AUTO_TEST_CASE(counted_from_the_start, ALONE) {
  count_dispatch();
  backends();
  BOOST_TEST(sum(ones({2, 3}).to(Device("joint:0"))).item<float>() == 6.0f);
  BOOST_TEST(dispatch_stats().on_cpu.size() == 1u);
}

BOOST_AUTO_TEST_CASE(who_counts_for_itself_is_told_nothing_at_the_end) {
  const Outcome outcome =
      run_alone("fallback_test/counted_from_the_start", {"TENON_CPU_FALLBACK=1"});
  BOOST_TEST(outcome.status == 0, outcome.output);
  BOOST_TEST(!has(outcome.output, "[tenon] computed on the CPU"), outcome.output);
}

BOOST_AUTO_TEST_CASE(an_error_names_what_the_user_called) {
  backends();
  const Tensor x = ones({2, 3}).to("joint:2");
  const std::string only = "\n  joint: only abs of contiguous f32\nMove the tensors";
  std::string text;
  {
    ModulePath module("Head");
    text = error_of<UnsupportedError>([&] { softmax(x, 1); });
  }
  BOOST_TEST(text.starts_with("softmax: (2, 3) on joint:2: its decomposition needs amax: (2, 3) on "
                              "joint:2, which no plugin of it offers (in module Head):"),
             text);
  BOOST_TEST(
      has(text,
          "\n  joint: only abs of contiguous f32\nBefore that, softmax itself was refused:\n"),
      text);
  BOOST_TEST(has(text, "\n  joint: its rows do not fit\nMove the tensors"), text);
  const Tensor weight = ones({3}).to("joint:2");
  text = error_of<UnsupportedError>([&] { layer_norm(x, {3}, weight, weight); });
  BOOST_TEST(
      text.starts_with("layer_norm: (2, 3), (3,), (3,) on joint:2: its decomposition needs "),
      text);
  BOOST_TEST(has(text, only), text);  // that of layer_norm is the same, and is said once
  text = error_of<UnsupportedError>([&] { x + ones({2, 3}, {.dtype = f64}).to("joint:2"); });
  BOOST_TEST(
      text.starts_with("add: (2, 3), (2, 3) on joint:2: its conversion of its inputs to one "
                       "type needs copy: (2, 3) on joint:2 from f32 to f64, which no plugin of "
                       "it offers"),
      text);
  text = error_of<UnsupportedError>([&] { x.t().reshape({6}); });
  BOOST_TEST(text.starts_with("reshape: (3, 2) on joint:2: its copy of a tensor needs copy: "),
             text);
  text = error_of<UnsupportedError>([&] { exp(x); });
  BOOST_TEST(text.starts_with("exp: (2, 3) on joint:2: no plugin of this device offers it:"), text);
  // A scalar has a shape, too.
  text = error_of<UnsupportedError>([&] { exp(scalar(1).to("joint:2")); });
  BOOST_TEST(text.starts_with("exp: () on joint:2: "), text);
}

BOOST_AUTO_TEST_SUITE_END()
