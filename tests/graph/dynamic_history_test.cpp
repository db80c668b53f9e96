// Compiled functions of any size whose results have a history: backward passes outside of them
// follow from those of a few sizes, too.
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "saved_nets.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(dynamic_history_test)

using namespace tenon;
using test::require_error;
using test::same_bits;
using test::says;
using test::saved::train_step;
using test::saved::twins;

namespace {

const CompileOptions kBatches{.dynamic = {0}};
const std::vector<int64_t> kSizes = {8, 5, 12, 7, 9, 33, 2, 8, 12, 40, 3, 64, 11, 6, 1, 13, 1, 21};

// Counts how often its module is run, which a program does not.
template <class Net>
struct Counting : nn::Module<Counting<Net>> {
  Net net;
  int runs = 0;
  template <class X>
  auto forward(const X& x) {
    ++runs;
    return net(x);
  }
};

// Two twins, one of them compiled, take steps of plain training loops with batches of these sizes.
// Returns how often the module of the second has run.
template <class Net>
int train_alike(const std::function<Tensor(int64_t)>& batch,
                const std::vector<int64_t>& sizes = kSizes) {
  auto [a, b] = twins<Counting<Net>>();
  auto fast = compile(b, kBatches);
  optim::SGD of_a(a.parameters(), {.lr = 0.1, .momentum = 0.9}),
      of_b(b.parameters(), {.lr = 0.1, .momentum = 0.9});
  for (const int64_t n : sizes) {
    const Tensor x = batch(n), y = randint(0, 3, {n});
    const RandomState state = random_state();
    const Tensor expected = train_step(a, of_a, x, y);
    const RandomState after = random_state();
    set_random_state(state);
    BOOST_TEST_CONTEXT("size " << n) {
      BOOST_TEST(same_bits(train_step(fast, of_b, x, y), expected));
      BOOST_TEST((random_state() == after));
      for (size_t i = 0; i < a.parameters().size(); ++i)
        BOOST_TEST(same_bits(a.parameters()[i].grad(), b.parameters()[i].grad()));
    }
  }
  BOOST_TEST(same_bits(a.parameters(), b.parameters()));
  BOOST_TEST(same_bits(a.buffers(), b.buffers()));
  const std::string text = fast.explain();
  // The forward and the backward pass.
  BOOST_TEST(text.find("programs follow from these") != text.rfind("programs follow from these"));
  BOOST_TEST_MESSAGE(text);
  return b.runs;
}

// The gradients of the sum of one result with respect to these.
std::vector<Tensor> gradients(const Tensor& result, const std::vector<Tensor>& inputs) {
  return grad(std::vector{result.sum()}, inputs, {}, {.allow_unused = true});
}

}  // namespace

// Three sizes are recorded, three more to compare, and the size of 1 twice.
BOOST_AUTO_TEST_CASE(backward_passes_outside_follow_from_a_few_sizes) {
  using test::saved::SmallLeNet;
  BOOST_TEST(train_alike<test::saved::Perceptron>([](int64_t n) { return randn({n, 6}); }) <= 9);
  BOOST_TEST(train_alike<SmallLeNet>([](int64_t n) { return randn({n, 1, 8, 8}); }) <= 9);
  BOOST_TEST(train_alike<test::saved::Recurrent>([](int64_t n) { return randn({n, 4, 5}); }) <= 9);
  BOOST_TEST(train_alike<test::saved::Attending>([](int64_t n) {
               return randint(0, 11, {n, 5});
             }) <= 9);
}

BOOST_AUTO_TEST_CASE(random_batches_and_sequences_have_the_bits_of_the_module) {
  auto [a, b] = twins<test::saved::Attending>();
  auto fast = compile(b, {.dynamic = {0, 1}});
  a.eval(), b.eval();
  for (int i = 0; i < 40; ++i) {
    const Tensor x = randint(0, 11, {2 + i * 7 % 9, 2 + i * 5 % 13});
    const Tensor expected = a(x), found = fast(x);
    BOOST_TEST_CONTEXT(x.shape()) {
      BOOST_TEST(same_bits(found, expected));
      BOOST_TEST(same_bits(gradients(found, b.parameters()), gradients(expected, a.parameters())));
    }
  }
  BOOST_TEST(says(fast, "other sizes: programs that do the same"));
}

BOOST_AUTO_TEST_CASE(each_of_several_results_has_backward_passes) {
  const Tensor w = randn({3}).requires_grad_(), v = randn({3}).requires_grad_();
  const auto plain = [&](const Tensor& x) {
    const Tensor h = tanh(x * w);
    return std::tuple(h, h * v, (h * h).mean(), (x > 0.0).to(f32));
  };
  auto fast = compile(plain, kBatches);
  for (int i = 0; i < 60; ++i) {
    const int64_t n = 2 + i * 5 % 31;
    const Tensor x = randn({n, 3}), g = randn({n, 3});
    const auto of = [&](const std::tuple<Tensor, Tensor, Tensor, Tensor>& results) {
      auto& [h, y, s, positive] = results;
      BOOST_TEST(!positive.requires_grad());
      const std::vector<Tensor> inputs{w, v};
      const GradOptions options{.allow_unused = true};
      if (i % 3 == 0) return grad(std::vector{h}, inputs, std::vector{g}, options);
      if (i % 3 == 1) return grad(std::vector{y, s}, inputs, std::vector{g, Tensor()}, options);
      return grad(std::vector{s}, std::vector{w}, {}, options);
    };
    BOOST_TEST_CONTEXT("size " << n) BOOST_TEST(same_bits(of(fast(x)), of(plain(x))));
  }
}

// The gradient of `x` has a shape that no tensor of the backward pass has.
BOOST_AUTO_TEST_CASE(arguments_get_gradients_of_their_size) {
  const Tensor w = randn({3, 2}).requires_grad_(), u = randn({3}).requires_grad_();
  const auto plain = [&](const Tensor& x) { return matmul(x.mean({0}), w); };
  auto fast = compile(plain, kBatches);
  for (int i = 0; i < 40; ++i) {
    const Tensor values = randn({2 + i * 5 % 31, 3});
    const auto of = [&](auto& function) {
      const Tensor x = values.clone().requires_grad_();
      const Tensor result = function(i % 2 ? x * u : x);
      return gradients(result, {x, w, u});
    };
    BOOST_TEST_CONTEXT(values.shape()) BOOST_TEST(same_bits(of(fast), of(plain)));
  }
  BOOST_TEST(says(fast, "programs follow from these"));
}

// Results are parts of one tensor, and gradients read several parts of another.
BOOST_AUTO_TEST_CASE(values_that_share_memory_go_on_to_do_so) {
  const Tensor w = randn({4, 12}).requires_grad_();
  const auto plain = [&](const Tensor& x) {
    const auto parts = matmul(x, w).chunk(3, -1);
    return matmul(softmax(matmul(parts[0], parts[1].transpose(-2, -1)), -1), parts[2]) * x;
  };
  auto fast = compile(plain, {.dynamic = {0, 1}});
  for (int i = 0; i < 40; ++i) {
    const Tensor x = randn({2 + i * 5 % 7, 2 + i * 3 % 11, 4});
    BOOST_TEST_CONTEXT(x.shape())
    BOOST_TEST(same_bits(gradients(fast(x), {w}), gradients(plain(x), {w})));
  }
  const std::string text = fast.explain();
  BOOST_TEST(text.find("programs follow from these") != text.rfind("programs follow from these"));
  BOOST_TEST_MESSAGE(text);
}

// Gradient rules read parts of parameters from other places, and what was changed in place.
BOOST_AUTO_TEST_CASE(parts_of_parameters_and_changes_in_place_follow) {
  const Tensor table = randn({64, 6}).requires_grad_(), w = randn({6, 6}).requires_grad_(),
               image = randn({3, 2, 3, 3}).requires_grad_();
  const auto sequences = [&](const Tensor& x) {
    const int64_t t = x.size(1);
    Tensor h = matmul(x * table.narrow(0, 64 - t, t), w);
    h.relu_();
    return layer_norm(h + table.narrow(0, 0, t), {6}).mean({1});
  };
  const auto images = [&](const Tensor& x) {
    Tensor h = conv2d(x, image, Tensor(), {.padding = 1});
    h.mul_(2.0).add_(1.0);
    return max_pool2d(gelu(h) * h, 2).flatten(1);
  };
  auto of_sequences = compile(sequences, {.dynamic = {0, 1}});
  auto of_images = compile(images, kBatches);
  for (int i = 0; i < 40; ++i) {
    const Tensor x = randn({2 + i * 5 % 7, 2 + i * 3 % 11, 6});
    Tensor y = randn({2 + i * 5 % 11, 2, 6, 6});
    if (i % 2) y = y.to(channels_last);
    const Autocast guard(bf16, {.enabled = i >= 20});
    BOOST_TEST_CONTEXT(x.shape()) {
      BOOST_TEST(
          same_bits(gradients(of_sequences(x), {table, w}), gradients(sequences(x), {table, w})));
      BOOST_TEST(same_bits(gradients(of_images(y), {image}), gradients(images(y), {image})));
    }
  }
  for (const std::string& text : {of_sequences.explain(), of_images.explain()}) {
    BOOST_TEST(text.find("programs follow from these") != text.rfind("programs follow from these"));
    BOOST_TEST_MESSAGE(text);
  }
}

BOOST_AUTO_TEST_CASE(graphs_are_kept_or_freed_and_changes_are_found_as_always) {
  const Tensor w = randn({3}).requires_grad_();
  const auto plain = [&](const Tensor& x) { return std::pair((x * w).sum(), x + w); };
  auto fast = compile(plain, kBatches);
  for (const int64_t n : kSizes) {
    Tensor x = randn({n, 3});
    const auto [product, sum] = fast(x);
    for (int k = 0; k < 2; ++k)
      BOOST_TEST(same_bits(grad(product, w, {.retain_graph = true}), grad(plain(x).first, w)));
    x.add_(1.0);
    BOOST_TEST(same_bits(grad(sum.sum(), w, {.retain_graph = true}), full({3}, double(n))));
    require_error<AutogradError>([&, of = product] { of.backward(); }, "mul: input 0 of shape",
                                 "changed in place (version", "change a clone()");
    const Tensor again = fast(x).first;
    again.backward();
    require_error<AutogradError>([&] { again.backward(); }, "for a second time", "retain_graph");
  }
}

BOOST_AUTO_TEST_CASE(frozen_and_new_parameters_are_noticed) {
  auto [a, b] = twins<test::saved::Perceptron>();
  auto fast = compile(b, kBatches);
  a.eval(), b.eval();
  const auto require_alike = [&] {
    for (const int64_t n : kSizes) {
      const Tensor x = randn({n, 6});
      a.zero_grad(), b.zero_grad();
      a(x).sum().backward();
      fast(x).sum().backward();
      for (size_t i = 0; i < a.parameters().size(); ++i)
        BOOST_TEST(same_bits(a.parameters()[i].grad(), b.parameters()[i].grad()));
    }
  };
  require_alike();
  for (auto* net : {&a, &b}) net->fc1.weight.requires_grad_(false);
  require_alike();
  for (auto* net : {&a, &b}) {
    manual_seed(4);
    net->fc2 = nn::Linear(8, 3);
    net->fc1.weight.requires_grad_(true);
  }
  require_alike();
}

namespace {

// Its backward has numbers of its own.
struct Scaled : autograd::Function<Scaled> {
  static Tensor forward(autograd::Context& context, const Tensor& x, double scale) {
    context.save("scale", scale);
    return x * scale;
  }
  static std::vector<Tensor> backward(autograd::Context& context, std::span<const Tensor> grads) {
    return {grads[0] * context.get<double>("scale"), Tensor()};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_does_not_follow_is_recorded_and_explain_says_why) {
  const Tensor w = randn({3}).requires_grad_();
  const auto fixed = [&](const Tensor& x) { return Scaled::apply(x * w, 3.0); };
  const auto by_size = [&](const Tensor& x) {
    return Scaled::apply(x * w, 1.0 / static_cast<double>(x.size(0)));
  };
  auto follows = compile(fixed, kBatches);
  auto does_not = compile(by_size, kBatches);
  for (const int64_t n : kSizes)
    for (int k = 0; k < 3; ++k) {
      const Tensor x = randn({n, 3});
      BOOST_TEST(same_bits(gradients(follows(x), {w}), gradients(fixed(x), {w})));
      BOOST_TEST(same_bits(gradients(does_not(x), {w}), gradients(by_size(x), {w})));
    }
  BOOST_TEST(says(follows, "programs follow from these"));
  BOOST_TEST(says(does_not, "\"scale\", which Scaled saves for its backward, had another value"));
}

BOOST_AUTO_TEST_SUITE_END()
