// Compiled functions whose arguments have other sizes in each call.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "saved_nets.h"
#include "shared_runs.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(dynamic_test)

using namespace tenon;
using test::error_of;
using test::has;
using test::require_error;
using test::same_bits;
using test::says;
using test::saved::making;

namespace {

const auto adam = making<optim::Adam>(optim::AdamOptions{.lr = 0.01});

// Trains a twin of a model in the same way, compiled with dimension 0 dynamic, and returns how
// often its function ran.
template <class Run>
int train_twin(Run& plain, Run& other, const Shape& shape, const std::vector<int64_t>& sizes) {
  int runs = 0;
  auto step = compile(
      [&](const Tensor& x, const Tensor& y) {
        ++runs;
        return other.step(x, y);
      },
      {.dynamic = {0}});
  for (const int64_t n : sizes) {
    Shape batch = shape;
    batch.insert(0, n);
    const Tensor x = randn(batch), y = randint(0, 3, {n});
    const RandomState state = random_state();
    const Tensor expected = plain.step(x, y);
    set_random_state(state);
    BOOST_TEST_CONTEXT("size " << n) BOOST_TEST(same_bits(step(x, y), expected));
  }
  return runs;
}

template <class Net>
int train_alike(const Shape& shape, const std::vector<int64_t>& sizes) {
  manual_seed(3);
  test::saved::Run<Net> plain(adam);
  manual_seed(3);
  test::saved::Run<Net> other(adam);
  const int runs = train_twin(plain, other, shape, sizes);
  BOOST_TEST(same_bits(plain.net.parameters(), other.net.parameters()));
  BOOST_TEST(same_bits(plain.net.buffers(), other.net.buffers()));
  return runs;
}

int train_parts_alike(const std::vector<int64_t>& sizes) {
  test::shared_runs::Run plain(2, adam), other(2, adam);
  const int runs = train_twin(plain, other, {6}, sizes);
  test::shared_runs::require_alike(plain.net.parameters(), other.net.parameters());
  return runs;
}

const std::vector<int64_t> kSizes = {8, 5, 12, 7, 9, 33, 2, 8, 12, 40, 3, 64, 11, 6};

}  // namespace

// The first call is recorded apart, because it makes the state of the optimizer; then there are
// three sizes, and the first two that follow from these, and later one more, are looked at.
BOOST_AUTO_TEST_CASE(a_few_sizes_tell_what_training_steps_of_all_others_do) {
  BOOST_TEST(train_alike<test::saved::Perceptron>({6}, kSizes) <= 7);
  BOOST_TEST(train_alike<test::saved::SmallLeNet>({1, 8, 8}, kSizes) <= 7);
  BOOST_TEST(train_alike<test::saved::Recurrent>({4, 5}, kSizes) <= 7);
}

BOOST_AUTO_TEST_CASE(batches_and_sequences_may_have_any_size) {
  manual_seed(5);
  test::saved::Attending net;
  net.eval();
  int runs = 0;
  auto forward = compile(
      [&](const Tensor& x) {
        ++runs;
        return net(x);
      },
      {.dynamic = {0, 1}});
  const NoGrad guard;
  for (int i = 0; i < 30; ++i) {
    const Tensor x = randint(0, 11, {2 + i * 7 % 9, 2 + i * 5 % 13});
    BOOST_TEST_CONTEXT(x.shape()) BOOST_TEST(same_bits(forward(x), net(x)));
  }
  BOOST_TEST(runs <= 9);
  BOOST_TEST(says(forward, "programs follow from these"));
  BOOST_TEST(!says(forward, "0 programs made"));
  BOOST_TEST(says(forward, "follow from calls of other sizes"));
  BOOST_TEST(says(forward, "other sizes: programs that do the same"));
}

BOOST_AUTO_TEST_CASE(numbers_and_places_follow_from_sizes) {
  const Tensor table = randn({64, 3});
  const auto f = [&](const Tensor& x) {
    const int64_t n = x.size(0), t = x.size(1);
    const Tensor flat = x.reshape({n * t, 3});
    return std::vector{flat.mean({0}) + flat.std({0}), x[-1] + table.narrow(0, 64 - t, t),
                       cat({x.narrow(0, 1, n - 1), x.narrow(0, 0, 1)}, 0) * (1.0 / (n * t)),
                       matmul(x, x.transpose(1, 2)),
                       x + arange(static_cast<double>(t)).unsqueeze(1)};
  };
  auto compiled = compile(f, {.dynamic = {0, 1}});
  const Tensor data = randn({100, 20, 3});
  for (int64_t i = 0; i < 25; ++i) {
    // Parts of one tensor that lie elsewhere each time, and whole tensors.
    const int64_t n = 2 + i * 7 % 9, t = 2 + i * 5 % 11;
    const Tensor part = data.narrow(0, i, n).narrow(1, 0, t), whole = randn({n, t, 3});
    BOOST_TEST_CONTEXT(part.shape()) {
      BOOST_TEST(same_bits(compiled(part), f(part)));
      BOOST_TEST(same_bits(compiled(whole), f(whole)));
    }
  }
  const std::string text = compiled.explain();
  BOOST_TEST(text.find("programs follow") != text.rfind("programs follow"));
  BOOST_TEST_MESSAGE(text);
}

// What follows from sizes of at least two may be one: the part is a view then, and not a copy.
BOOST_AUTO_TEST_CASE(sizes_inside_of_one_are_recorded_too) {
  const auto f = [](const Tensor& x) {
    const Tensor y = x * 2.0;
    y.narrow(0, 0, x.size(0) / 2).transpose(0, 1).reshape({-1}).zero_();
    return y.sum();
  };
  auto compiled = compile(f, {.dynamic = {0}});
  for (const int64_t n : {4, 6, 8, 10, 2, 12, 2, 14}) {
    const Tensor x = randn({n, 3});
    BOOST_TEST_CONTEXT("size " << n) BOOST_TEST(same_bits(compiled(x), f(x)));
  }
}

BOOST_AUTO_TEST_CASE(factors_are_those_that_the_function_wrote) {
  const auto f = [](const Tensor& x) {
    const auto n = static_cast<double>(x.size(0));
    return (x.to(f64) * (0.1 / n) + 0.7 / (n - 1.0)) * (0.3 * n);
  };
  auto compiled = compile(f, {.dynamic = {0}});
  for (int64_t n = 3; n < 120; ++n) {
    const Tensor x = randn({n});
    BOOST_TEST_CONTEXT("size " << n) BOOST_TEST(same_bits(compiled(x), f(x)));
  }
}

// Operators often do something else there.
BOOST_AUTO_TEST_CASE(sizes_of_zero_and_one_are_recorded_by_themselves) {
  int runs = 0;
  auto compiled = compile(
      [&](const Tensor& x) {
        ++runs;
        return (x * 2.0).sum({0});
      },
      {.dynamic = {0}});
  for (const int64_t n : {3, 4, 5, 6, 7, 8, 9}) compiled(ones({n, 2}));
  const int before = runs;
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(same_bits(compiled(ones({1, 2})), full({2}, 2.0)));
    BOOST_TEST(same_bits(compiled(ones({0, 2})), zeros({2})));
  }
  BOOST_TEST(runs == before + 4);
}

BOOST_AUTO_TEST_CASE(sizes_that_were_equal_may_come_to_differ) {
  const auto f = [](const Tensor& x, const Tensor& y) { return matmul(x, y.t()) * 0.5; };
  auto compiled = compile(f, {.dynamic = {0}});
  for (const int64_t n : {5, 6, 7, 9, 4}) compiled(ones({n, 3}), ones({n, 3}));
  for (const int64_t n : {2, 3, 4, 5, 6, 7, 8, 9}) {
    const Tensor x = randn({n, 3}), y = randn({n * n % 7 + 2, 3});
    BOOST_TEST(same_bits(compiled(x, y), f(x, y)));
  }
}

BOOST_AUTO_TEST_CASE(modes_and_new_parameters_are_noticed) {
  manual_seed(1);
  test::saved::Perceptron net;
  int runs = 0;
  auto forward = compile(
      [&](const Tensor& x) {
        ++runs;
        return net(x);
      },
      {.dynamic = {0}});
  const NoGrad guard;
  net.eval();
  const auto require_same = [&] {
    for (const int64_t n : kSizes) {
      const Tensor x = randn({n, 6});
      BOOST_TEST(same_bits(forward(x), net(x)));
    }
  };
  require_same();
  net.train();
  for (const int64_t n : kSizes) {
    const Tensor x = randn({n, 6});
    const RandomState state = random_state();
    const Tensor expected = net(x);
    set_random_state(state);
    BOOST_TEST(same_bits(forward(x), expected));
  }
  net.eval();
  const int before = runs;
  require_same();
  BOOST_TEST(runs <= before + 2);  // both modes have their programs, and are looked at
  net.fc1 = nn::Linear(6, 8);
  require_same();
}

// The batch is odd, so one device gets more of it than the other.
BOOST_AUTO_TEST_CASE(parts_on_several_devices_have_sizes_that_follow) {
  BOOST_TEST(train_parts_alike({8,  12, 6,  10, 16, 4,  40, 24, 26, 9,
                                14, 18, 20, 30, 22, 28, 34, 36, 38, 32}) <= 15);
}

// Parts of an odd batch have two sizes. It may be the last one of an epoch, and any of the calls.
BOOST_AUTO_TEST_CASE(an_odd_batch_keeps_no_other_from_following) {
  for (const auto& first : {std::vector<int64_t>{5, 8, 12}, {8, 5, 12}, {8, 12, 5, 7}}) {
    std::vector<int64_t> sizes = first;
    for (const int64_t n : {16, 10, 44, 14, 18, 22, 6, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 20})
      sizes.push_back(n);
    BOOST_TEST(train_parts_alike(sizes) <= 13);
  }
}

// How much of its memory has values follows from the size, too.
BOOST_AUTO_TEST_CASE(results_that_begin_without_values_have_all_of_them) {
  auto compiled = compile(
      [](const Tensor& x) {
        Tensor y = empty(x.shape());
        y.copy_(x);
        return y;
      },
      {.dynamic = {0}});
  auto next = compile([](const Tensor& y) { return y * 2.0; });
  for (const int64_t n : {4, 5, 6, 7, 8, 9, 20})
    for (int i = 0; i < 3; ++i) BOOST_TEST(same_bits(next(compiled(ones({n}))), full({n}, 2.0)));
  BOOST_TEST(!has(next.explain(), "has no values yet"));
}

BOOST_AUTO_TEST_CASE(time_and_memory_stay_flat_however_many_sizes_there_are) {
  int runs = 0;
  auto compiled = compile(
      [&](const Tensor& x) {
        ++runs;
        return (softmax(x, 1) * 2.0).sum({1});
      },
      {.dynamic = {1}});
  for (int64_t i = 0; i < 2000; ++i) {
    const Tensor x = ones({4, 2 + i * 37 % 300});
    BOOST_TEST(std::abs(compiled(x).sum().item<float>() - 8.0f) < 1e-4f);
  }
  BOOST_TEST(says(compiled, "for 63 other sizes") | says(compiled, "for 64 other sizes"));
  BOOST_TEST(runs < 2000);
}

BOOST_AUTO_TEST_CASE(a_program_for_another_size_can_be_saved) {
  manual_seed(2);
  test::saved::Run<test::saved::Perceptron> run(adam);
  auto step =
      compile([&](const Tensor& x, const Tensor& y) { return run.step(x, y); }, {.dynamic = {0}});
  for (const int64_t n : {4, 5, 6, 7, 9, 10, 11, 12}) step(randn({n, 6}), randint(0, 3, {n}));
  const Tensor x = randn({12, 6}), y = randint(0, 3, {12});
  step(x, y);
  const TempFolder folder;
  step.save(folder / "dynamic.tenon");
  auto program = Program::load(folder / "dynamic.tenon");
  BOOST_TEST(same_bits(program.run({{"0", x}, {"1", y}})["0"], step(x, y)));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_derived_says_why) {
  BOOST_TEST(has(
      error_of<IndexError>([] { compile([](const Tensor& x) { return x; }, {.dynamic = {8}}); }),
      "8 in CompileOptions::dynamic is no dimension"));
  for (const int64_t d : {5, -3}) {
    auto misnamed = compile([](const Tensor& x) { return x * 2.0; }, {.dynamic = {0, d}});
    require_error<IndexError>([&] { misnamed(ones({2, 3})); }, "no argument", "(2, 3)");
  }
  auto vectors = compile([](const Tensor& x, const Tensor& y) { return x * y; }, {.dynamic = {1}});
  BOOST_TEST(same_bits(vectors(ones({2, 3}), ones({3})), ones({2, 3})));
}

BOOST_AUTO_TEST_CASE(more_sizes_have_programs_where_the_options_say_so) {
  const auto body = [](const Tensor& x) { return x * 2.0 + 1.0; };
  auto usual = compile(body, {.dynamic = {0}}),
       roomy = compile(body, {.max_programs = 100, .dynamic = {0}});
  for (int round = 0; round < 4; ++round)
    for (int64_t n = 2; n < 82; ++n) {
      const Tensor x = randn({n});
      const bool same = same_bits(usual(x), body(x)) && same_bits(roomy(x), body(x));
      BOOST_REQUIRE(same);
    }
  BOOST_TEST(says(usual, "more than 64 sizes take turns: raise CompileOptions::max_programs"));
  BOOST_TEST(!says(roomy, "take turns"));
}

BOOST_AUTO_TEST_SUITE_END()
