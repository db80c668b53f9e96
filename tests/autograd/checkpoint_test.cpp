// What is computed again in the backward pass.
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/autograd/checkpoint.h>
#include <tenon/core/autograd/function.h>
#include <tenon/core/ops/activation.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/random.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(checkpoint_test)

using namespace tenon;
using test::require_error;

namespace {

using Doubles = std::vector<double>;
Doubles values(const Tensor& t) { return t.to_vector<double>(); }

struct Layer {
  Tensor weight, bias;
  int calls = 0;

  Layer() {
    manual_seed(7);
    weight = randn({4, 4}, f64).requires_grad_();
    bias = randn({4}, f64).requires_grad_();
  }
  Tensor operator()(const Tensor& x) {
    ++calls;
    const Tensor h = tanh(linear(x, weight, bias));
    return softmax(dropout(h * h, 0.5) + x, 1);
  }
};
Tensor input() {
  manual_seed(3);
  return randn({3, 4}, f64).requires_grad_();
}

// The gradients of the input, the weight and the bias, and those of second order.
template <class Run>
std::vector<Doubles> gradients(Run run) {
  Layer layer;
  Tensor x = input();
  manual_seed(11);
  Tensor y = run(layer, x), after = rand({2});
  const std::vector<Tensor> leaves{x, layer.weight, layer.bias};
  const Tensor weighted[] = {(y * y).sum()};
  auto first = grad(weighted, leaves, {}, {.create_graph = true});
  Tensor sum = (first[0] * first[0]).sum() + first[1].sum();
  auto second = grad(std::span(&sum, 1), leaves, {}, {.retain_graph = true});
  (y * y).sum().backward();
  std::vector<Doubles> all{values(after), values(x.grad()), values(layer.weight.grad())};
  for (auto& g : first) all.push_back(values(g.detach()));
  for (auto& g : second) all.push_back(values(g));
  return all;
}

}  // namespace

// Dropout has the same mask in both calls, and what is drawn afterwards is the same, too.
BOOST_AUTO_TEST_CASE(gradients_are_those_of_the_function) {
  const auto plain = gradients([](Layer& layer, const Tensor& x) { return layer(layer(x)); });
  const auto once = gradients([](Layer& layer, const Tensor& x) {
    return checkpoint([&](const Tensor& t) { return layer(layer(t)); }, x);
  });
  const auto twice = gradients([](Layer& layer, const Tensor& x) {
    return checkpoint(std::ref(layer), checkpoint(std::ref(layer), x));
  });
  const auto nested = gradients([](Layer& layer, const Tensor& x) {
    return checkpoint(
        [&](const Tensor& t) {
          return checkpoint(std::ref(layer), checkpoint(std::ref(layer), t));
        },
        x);
  });
  // Gradients of second order are sums of the same parts in another order.
  for (auto& other : {once, twice, nested})
    for (size_t i = 0; i < plain.size(); ++i)
      for (size_t k = 0; k < plain[i].size(); ++k)
        BOOST_CHECK_SMALL(plain[i][k] - other[i][k], i < 6 ? 1e-300 : 1e-12);
}

BOOST_AUTO_TEST_CASE(the_function_is_called_once_more_for_a_pass) {
  Layer layer;
  Tensor x = input();
  Tensor y = checkpoint(std::ref(layer), x);
  BOOST_TEST(layer.calls == 1);
  y.sum().backward(Tensor(), {.retain_graph = true});
  BOOST_TEST(layer.calls == 2);
  y.sum().backward();  // the values are still there
  BOOST_TEST(layer.calls == 2);
  require_error<AutogradError>([&] { y.sum().backward(); }, "for a second time");
  BOOST_TEST(layer.calls == 2);
  const NoGrad guard;
  checkpoint(std::ref(layer), x);
  BOOST_TEST(layer.calls == 3);
}

// Between the passes, only the arguments and the results are there.
BOOST_AUTO_TEST_CASE(memory_is_given_back) {
  auto in_use = [] {
    synchronize();
    return memory_stats(default_device()).allocated;
  };
  Tensor w = ones({64, 64}).requires_grad_(), x = ones({64, 64});
  auto deep = [&](Tensor t) {
    for (int i = 0; i < 8; ++i) t = tanh(t * w);
    return t;
  };
  auto kept_by = [&](auto&& run) {
    const uint64_t before = in_use();
    const Tensor y = run();
    return in_use() - before;
  };
  const uint64_t plain = kept_by([&] { return deep(x); });
  const uint64_t less = kept_by([&] { return checkpoint(deep, x); });
  const uint64_t one = 64 * 64 * sizeof(float);
  BOOST_TEST(plain >= 8 * one);
  BOOST_TEST(less < 2 * one);
  // After the backward pass, nothing of the second call is left, though the graph is.
  Tensor y = checkpoint(deep, x), loss = y.sum();
  const uint64_t before = in_use();
  loss.backward();
  BOOST_TEST(in_use() < before + 2 * one);
}

BOOST_AUTO_TEST_CASE(several_arguments_and_results) {
  Tensor a = full({2}, 3, f64).requires_grad_(), b = full({2}, 5, f64).requires_grad_();
  auto [product, sum] =
      checkpoint([](const Tensor& p, const std::vector<Tensor>& rest,
                    double scale) { return std::pair(p * rest[0] * scale, exp(p) * 0 + rest[0]); },
                 a, std::vector<Tensor>{b, Tensor()}, 2.0);
  (product.sum() + (sum * sum).sum()).backward();
  BOOST_TEST(values(a.grad()) == (Doubles{10, 10}));
  BOOST_TEST(values(b.grad()) == (Doubles{16, 16}));
}

BOOST_AUTO_TEST_CASE(functions_with_gradients_of_their_own) {
  struct Square : autograd::Function<Square> {
    static Tensor forward(autograd::Context& context, const Tensor& x) {
      context.save_for_backward({x});
      return x * x;
    }
    static Tensor backward(autograd::Context& context, std::span<const Tensor> grads) {
      return grads[0] * context.saved_tensors()[0] * 2;
    }
  };
  Tensor x = full({1}, 3, f64).requires_grad_();
  checkpoint([](const Tensor& t) { return Square::apply(Square::apply(t)); }, x).backward();
  BOOST_TEST(values(x.grad()) == (Doubles{108}));
}

BOOST_AUTO_TEST_CASE(the_second_call_has_to_do_the_same) {
  Tensor x = full({2}, 3, f64).requires_grad_();
  int calls = 0;
  auto changing = [&](auto first, auto second) {
    calls = 0;
    return checkpoint(
               [&, first, second](const Tensor& t) { return calls++ ? second(t) : first(t); }, x)
        .sum();
  };
  auto plain = [](const Tensor& t) { return exp(t); };
  require_error<AutogradError>(
      [&] { changing(plain, [](const Tensor& t) { return exp(exp(t)); }).backward(); },
      "checkpoint: the function computed something else", "more than 1 values");
  require_error<AutogradError>(
      [&] { changing([](const Tensor& t) { return exp(exp(t)); }, plain).backward(); },
      "1 values where there were 2");
  require_error<AutogradError>(
      [&] { changing(plain, [](const Tensor& t) { return exp(t.sum()); }).backward(); },
      "value 0 is f64 (), and was f64 (2,)");
  require_error<std::out_of_range>(
      [&] {
        changing(plain, [](const Tensor&) -> Tensor {
          throw std::out_of_range("mine");
        }).backward();
      },
      "mine");
  Tensor y = x * 1, z = checkpoint(plain, y);
  no_grad([&] { y.fill_(0); });
  require_error<AutogradError>([&] { z.sum().backward(); },
                               "checkpoint: input 0 of shape (2,) is needed",
                               "changed in place (version 1, expected 0)");
  require_error<AutogradError>(
      [&] {
        checkpoint([](const Tensor& t) { return grad(exp(t).sum(), t, {.create_graph = true}); },
                   x);
      },
      "the function runs a backward pass through what it has computed itself");
}

BOOST_AUTO_TEST_CASE(values_that_change_after_they_were_computed_again) {
  const Tensor w = ones({2, 2}, f64).requires_grad_();
  Tensor x = full({1, 2}, 3.0, f64);
  const Tensor y = checkpoint([&](const Tensor& t) { return matmul(t, w); }, x);
  y.sum().backward({}, {.retain_graph = true});
  x.fill_(5);
  require_error<AutogradError>([&] { y.sum().backward(); }, "checkpoint: value 0 of shape (1, 2)",
                               "changed in place");
  const Tensor v = ones({2}, f64).requires_grad_();
  const Tensor z = checkpoint(
      [&](const Tensor& t) {
        const Tensor h = exp(t);
        no_grad([&] { Tensor(h).fill_(1); });
        return h * v;
      },
      ones({2}, f64).requires_grad_());
  require_error<AutogradError>([&] { z.sum().backward(); }, "changed in place");
}

namespace {
// Stops in its backward where the test says so.
struct Stop : autograd::Function<Stop> {
  static inline std::function<void()> reached;
  static Tensor forward(autograd::Context& context, const Tensor& x) {
    const Tensor kept = x * x;
    context.save_for_backward({kept});
    return kept.sum();
  }
  static Tensor backward(autograd::Context& context, std::span<const Tensor> grads) {
    const Tensor& kept = context.saved_tensors()[0];
    if (reached) std::exchange(reached, nullptr)();
    return kept * grads[0];
  }
};
}  // namespace

// A pass frees the values while another one computes them again: the function and its arguments
// stay until that has returned.
BOOST_AUTO_TEST_CASE(what_is_forgotten_while_it_runs) {
  auto argument = std::make_shared<int>(0);
  std::promise<void> waits, runs, ends;
  std::atomic<int> calls{0};
  long holders = 0;
  const std::weak_ptr<int> known = argument;
  Tensor x = ones({2}).requires_grad_();
  const Tensor y = checkpoint(
      [&, held = std::move(argument)](const Tensor& t) {
        if (++calls == 3) {  // of the recorded pass below
          runs.set_value();
          ends.get_future().wait();
          holders = known.use_count();
        }
        return Stop::apply(t);
      },
      x);
  Stop::reached = [&] {
    waits.set_value();
    runs.get_future().wait();
  };
  std::thread other([&] {
    y.backward();
    ends.set_value();
  });
  waits.get_future().wait();
  require_error<AutogradError>([&] { grad(y, x, {.create_graph = true}); }, "for a second time");
  other.join();
  BOOST_TEST(calls == 3);
  BOOST_TEST(holders > 0);
  BOOST_TEST(known.expired());
  BOOST_TEST(x.grad().to_vector<float>() == std::vector<float>(2, 1));
}

BOOST_AUTO_TEST_SUITE_END()
