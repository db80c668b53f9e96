// A convolutional network whose input and weights are channels_last computes what it computes in
// row-major order, and keeps the order from the first layer to the last, forward and backward.
#include <algorithm>
#include <string>
#include <vector>

#include <tenon/core/runtime/dispatch_stats.h>
#include <tenon/tenon.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(channels_last_test)

using namespace tenon;
using namespace tenon::test;

namespace {

Tensor joined(const Tensor& a, const Tensor& b) { return cat({a, b}, 1); }

// A block with a shortcut.
struct Residual : nn::Module<Residual> {
  nn::Conv2d first, second, shortcut;
  nn::BatchNorm2d norm1, norm2;

  Residual(int64_t in, int64_t out, int64_t stride)
      : first(in, out, 3, {.stride = stride, .padding = 1}),
        second(out, out, 3, {.padding = 1, .groups = 2}),
        shortcut(in, out, 1, {.stride = stride}),
        norm1(out),
        norm2(out) {}
  static constexpr int num_fields = 5;
  Tensor forward(const Tensor& x) {
    return relu(norm2(second(relu(norm1(first(x))))) + shortcut(x));
  }
};

struct Net : nn::Module<Net> {
  nn::Conv2d stem{3, 16, 3, {.padding = 1}};
  Residual wide{16, 32, 2}, same{32, 32, 1};
  nn::Linear head{64, 5};

  std::vector<Tensor> maps(const Tensor& x) {
    std::vector<Tensor> all;
    auto keep = [&](Tensor t) { return all.push_back(t), all.back(); };
    const Tensor a = keep(max_pool2d(relu(keep(stem(x))), 3, {.stride = 2, .padding = 1}));
    const Tensor b = keep(wide(a)), c = keep(same(b));
    keep(avg_pool2d(joined(b, c), 3, {.stride = 1, .padding = 1}));
    keep(adaptive_avg_pool2d(all.back(), 2));
    keep(adaptive_avg_pool2d(all.back(), 1));
    return all;
  }
  Tensor forward(const Tensor& x) { return head(flatten(maps(x).back(), 1)); }
};

struct Result {
  std::vector<Tensor> values;  // of all feature maps, the loss, and all gradients
  std::vector<Tensor> maps;
  DispatchStats stats;
  Tensor gradient_of_x;
};

// One step of a network that always begins with the same numbers.
Result step(MemoryFormat format, DType dtype) {
  manual_seed(7);
  Net net;
  net.to(dtype).to(format);
  const Tensor labels = tensor(std::vector<int64_t>{0, 4, 2, 1}).to(default_device());
  Tensor x = randn({4, 3, 20, 18}).to(dtype).to(format).requires_grad_();
  count_dispatch();
  reset_dispatch_stats();
  Result result;
  result.maps = net.maps(x);
  const Tensor loss = cross_entropy(net.head(flatten(result.maps.back(), 1)), labels);
  loss.backward();
  synchronize();
  result.stats = dispatch_stats();
  count_dispatch(false);
  result.values = result.maps;
  result.values.push_back(loss);
  result.values.push_back(x.grad());
  for (auto& p : net.parameters()) {
    BOOST_TEST(p.grad().strides() == p.strides());
    result.values.push_back(p.grad());
  }
  result.gradient_of_x = x.grad();
  return result;
}

bool convolutions_by_onednn(const DispatchStats& stats) {
  return std::any_of(stats.runs.begin(), stats.runs.end(),
                     [](auto& r) { return r.op == "conv2d" && r.owner == "onednn"; });
}

void compare(const Result& result, const Result& expected, double tolerance) {
  BOOST_REQUIRE(result.values.size() == expected.values.size());
  for (size_t i = 0; i < result.values.size(); ++i) BOOST_TEST_CONTEXT("value " << i)
  require_equal(result.values[i].to("cpu").to(f64), expected.values[i].to("cpu").to(f64),
                tolerance);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_network_computes_the_same_in_both_orders) {
  for (const DType dtype : {f32, f64}) {
    const Result rows = step(contiguous_format, dtype), last = step(channels_last, dtype);
    compare(last, rows, dtype == f32 ? 2e-4 : 1e-11);
    BOOST_TEST(rows.stats.hidden_copies.empty());
    for (auto& map : rows.maps) BOOST_TEST(map.is_contiguous());
    BOOST_TEST(last.gradient_of_x.is_contiguous(channels_last));
    std::vector<std::string> copied;
    for (auto& c : last.stats.hidden_copies) copied.push_back(c.op);
    if (convolutions_by_onednn(last.stats)) {
      BOOST_TEST(copied.empty());
      for (auto& map : last.maps) BOOST_TEST(map.is_contiguous(channels_last));
    } else {
      // A backend whose convolutions are row-major gets copies, which are counted.
      BOOST_TEST(!copied.empty());
    }
    for (auto& op : copied) BOOST_TEST(has(op, "conv2d"), op);
  }
}

// What a plugin computes in a half type only row by row goes through f32 in the order that it has.
BOOST_AUTO_TEST_CASE(a_network_of_a_half_type_keeps_the_order) {
  const Result rows = step(contiguous_format, bf16), last = step(channels_last, bf16);
  const Tensor expected = rows.maps[0].to("cpu").to(f64);
  const double apart = (last.maps[0].to("cpu").to(f64) - expected).abs().max().item();
  BOOST_TEST(apart <= 0.02 * expected.abs().max().item());
  if (!convolutions_by_onednn(last.stats)) return;
  for (auto& c : last.stats.hidden_copies) BOOST_TEST(c.op == "", c.op << " " << c.reason);
  for (auto& map : last.maps) BOOST_TEST(map.is_contiguous(channels_last));
}

// Pooling, normalization and dropout of the cpu's kernels, which need no overlay.
BOOST_AUTO_TEST_CASE(layers_without_convolutions_copy_nothing) {
  manual_seed(3);
  Tensor rows = randn({3, 19, 9, 11}), last = rows.to(channels_last);
  rows.requires_grad_();
  last.requires_grad_();
  nn::BatchNorm2d norm_of_rows(19), norm_of_last(19);
  auto through = [](const Tensor& x, nn::BatchNorm2d& norm) {
    const Tensor y = max_pool2d(norm(x), 3, {.stride = 2, .padding = 1, .dilation = 1});
    const auto z = max_pool2d_with_indices(y, 2, {.stride = 1});
    return adaptive_avg_pool2d(avg_pool2d(z.values, {2, 3}, {.stride = 1, .ceil_mode = true}),
                               {2, 1}) +
           z.indices.to(f32).mean();
  };
  count_dispatch();
  reset_dispatch_stats();
  const Tensor y = through(last, norm_of_last);
  (y * y).sum().backward();
  const Tensor dropped = dropout(last.detach(), 0.5, true);
  synchronize();
  const auto stats = dispatch_stats();
  count_dispatch(false);
  for (auto& c : stats.hidden_copies) BOOST_TEST(c.op == "", c.op << " " << c.reason);
  BOOST_TEST(y.is_contiguous(channels_last));
  BOOST_TEST(last.grad().is_contiguous(channels_last));
  BOOST_TEST(dropped.strides() == last.strides());
  const auto before = last.to_vector<float>(), after = dropped.to_vector<float>();
  size_t kept = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (after[i] == 0) continue;
    ++kept;
    BOOST_REQUIRE(after[i] == 2 * before[i]);
  }
  BOOST_TEST((kept > before.size() / 3 && kept < 2 * before.size() / 3));
  const Tensor expected = through(rows, norm_of_rows);
  (expected * expected).sum().backward();
  require_equal(y.to("cpu"), expected.to("cpu"), 1e-5);
  require_equal(last.grad().to("cpu"), rows.grad().to("cpu"), 1e-4);
  require_equal(norm_of_last.running_var.to("cpu"), norm_of_rows.running_var.to("cpu"), 1e-6);
}

BOOST_AUTO_TEST_CASE(a_model_is_brought_into_a_format_and_back) {
  Net net;
  const auto weight = net.stem.weight.to_vector<float>();
  net.to(channels_last);
  BOOST_TEST((net.stem.weight.suggest_memory_format() == channels_last));
  BOOST_TEST((net.wide.shortcut.weight.suggest_memory_format() == channels_last));
  BOOST_TEST(net.head.weight.is_contiguous());
  BOOST_TEST(net.stem.weight.to_vector<float>() == weight, boost::test_tools::per_element());
  // Checkpoints hold values in row-major order, whatever the model has.
  Net other;
  load_state_dict(other, nn::state_dict(net));
  BOOST_TEST(other.stem.weight.to_vector<float>() == weight, boost::test_tools::per_element());
  BOOST_TEST(other.stem.weight.is_contiguous());
  net.to(contiguous_format);
  BOOST_TEST((net.stem.weight.suggest_memory_format() == contiguous_format));
  BOOST_TEST(net.stem.weight.to_vector<float>() == weight, boost::test_tools::per_element());
}

// An optimizer's state lies as its parameter, so that a step is one run over all of them.
BOOST_AUTO_TEST_CASE(a_model_trains) {
  auto train = [](MemoryFormat format) {
    manual_seed(11);
    Net net;
    net.to(format);
    optim::SGD sgd(net.parameters(), {.lr = 0.05, .momentum = 0.9});
    const Tensor x = randn({4, 3, 12, 12}).to(format),
                 labels = tensor(std::vector<int64_t>{0, 1, 2, 3}).to(default_device());
    double loss = 0;
    for (int i = 0; i < 4; ++i) {
      sgd.zero_grad();
      const Tensor l = cross_entropy(net(x), labels);
      l.backward();
      count_dispatch();
      reset_dispatch_stats();
      sgd.step();
      synchronize();
      BOOST_TEST(dispatch_stats().hidden_copies.empty());
      count_dispatch(false);
      loss = l.item();
    }
    return loss;
  };
  const double rows = train(contiguous_format), last = train(channels_last);
  BOOST_TEST(std::abs(last - rows) < 5e-3 * std::abs(rows) + 1e-3);
}

BOOST_AUTO_TEST_SUITE_END()
