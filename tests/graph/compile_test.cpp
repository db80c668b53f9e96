// Compiled functions: what they return, what they are made for, what they refuse.
#include <array>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "support/drain.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(compile_test)

using namespace tenon;
using test::error_of;
using test::has;
using test::require_error;
using test::same_bits;
using test::says;

BOOST_AUTO_TEST_CASE(a_function_is_recorded_twice_and_then_replayed) {
  int runs = 0;
  auto plain = [](const Tensor& x) { return relu(x * 2.0 - 1.0).sum({1}); };
  auto compiled = compile([&](const Tensor& x) {
    ++runs;
    return plain(x);
  });
  for (int i = 0; i < 10; ++i) {
    const Tensor x = randn({4, 5});
    BOOST_TEST(same_bits(compiled(x), plain(x)));
  }
  BOOST_TEST(runs == 2);
  BOOST_TEST(says(compiled, "a program of 1 operators, replayed 8 times, made of 4"));
}

BOOST_AUTO_TEST_CASE(the_function_is_looked_at_again_after_more_and_more_replays) {
  int runs = 0;
  auto compiled = compile([&](const Tensor& x) {
    ++runs;
    return x + 1.0;
  });
  for (int i = 0; i < 100; ++i) compiled(ones({2}));
  BOOST_TEST(runs == 4);  // two recordings, and one each after 16 and 64 replays
}

BOOST_AUTO_TEST_CASE(results_may_be_of_many_forms) {
  const Tensor x = randn({3});
  auto pair = compile([](const Tensor& a) { return std::pair(a + 1.0, a * 2.0); });
  auto tuple = compile([](const Tensor& a, const Tensor& b) {
    const Tensor sum = a + b;
    return std::tuple(sum, sum, a, Tensor());
  });
  auto list = compile([](const Tensor& a) { return (a * 3.0).split(1); });
  auto array = compile([](const Tensor& a) { return std::array{a - 1.0, a.neg()}; });
  Tensor total = zeros({3});
  auto nothing = compile([&](const Tensor& a) { total.add_(a); });
  for (int i = 0; i < 5; ++i) {
    auto [y, z] = pair(x);
    BOOST_TEST(same_bits(y, x + 1.0));
    BOOST_TEST(same_bits(z, x * 2.0));
    auto [sum, again, argument, none] = tuple(x, y);
    BOOST_TEST(same_bits(sum, x + y));
    BOOST_TEST(again.is_same(sum));
    BOOST_TEST(argument.is_same(x));
    BOOST_TEST(!none.defined());
    const auto parts = list(x);
    BOOST_TEST(same_bits(cat(parts), x * 3.0));
    BOOST_TEST(same_bits(array(x)[1], x.neg()));
    nothing(ones({3}));
  }
  BOOST_TEST(same_bits(total, full({3}, 5.0)));
  BOOST_TEST(says(list, "replayed 3 times"));
  BOOST_TEST(says(nothing, "replayed 3 times"));
}

BOOST_AUTO_TEST_CASE(results_are_new_tensors_in_each_call) {
  auto compiled = compile([](const Tensor& x) { return x + 1.0; });
  std::vector<Tensor> kept;
  for (int i = 0; i < 6; ++i) kept.push_back(compiled(full({2}, i)));
  for (int i = 0; i < 6; ++i) BOOST_TEST(same_bits(kept[static_cast<size_t>(i)], full({2}, i + 1)));
}

BOOST_AUTO_TEST_CASE(each_kind_of_arguments_gets_a_program) {
  auto compiled = compile([](const Tensor& x) { return x * x; }, {.max_programs = 2});
  for (int round = 0; round < 3; ++round)
    for (int64_t n = 1; n <= 2; ++n)
      for (int i = 0; i < 3; ++i) BOOST_TEST(same_bits(compiled(full({n}, 3.0)), full({n}, 9.0)));
  BOOST_TEST(says(compiled, "2 programs made"));
  for (int i = 0; i < 3; ++i) compiled(ones({2, 2}, {.dtype = f64}));
  BOOST_TEST(says(compiled, "3 programs made"));
  BOOST_TEST(!says(compiled, "(1,)"));  // two are kept
  compiled(ones({4, 4}).t().narrow(0, 0, 2));
  BOOST_TEST(says(compiled, "no program yet"));
}

// How many calls explain() says were recorded.
uint64_t recorded(const std::string& text) {
  const std::string before = "a compiled function: ";
  BOOST_REQUIRE(text.starts_with(before));
  return std::stoull(text.substr(before.size()));
}

// More of them than are kept: each would be recorded anew in each turn.
BOOST_AUTO_TEST_CASE(kinds_of_arguments_that_take_turns_are_not_recorded_for_ever) {
  auto compiled = compile([](const Tensor& x) { return x * x + 1.0; }, {.max_programs = 4});
  const auto turn = [&](int64_t kinds) {
    for (int64_t n = 1; n <= kinds; ++n)
      BOOST_TEST(same_bits(compiled(full({n}, 3.0)), full({n}, 10.0)));
  };
  for (int i = 0; i < 100; ++i) turn(5);
  BOOST_TEST(recorded(compiled.explain()) < 100u);
  BOOST_TEST(
      says(compiled, "more kinds of arguments take turns than CompileOptions::max_programs"));
  // Some of them have programs, which are used.
  const uint64_t before = recorded(compiled.explain());
  for (int i = 0; i < 4; ++i) turn(5);
  BOOST_TEST(recorded(compiled.explain()) < before + 4 * 5);
  BOOST_TEST(says(compiled, "replayed"));

  // A kind that comes to stay gets its program, though it may have to wait.
  for (int i = 0; i < 300; ++i) BOOST_TEST(same_bits(compiled(full({7}, 3.0)), full({7}, 10.0)));
  BOOST_TEST(says(compiled, "(7,)"));
  BOOST_TEST(!says(compiled, "no program: "));

  compiled.reset();
  BOOST_TEST(!says(compiled, "take turns"));
  for (int i = 0; i < 3; ++i) turn(4);
  BOOST_TEST(says(compiled, "replayed 1 times"));
}

// A few that are used once, such as to warm up, keep nobody waiting.
BOOST_AUTO_TEST_CASE(kinds_of_arguments_that_come_once_keep_no_others_out) {
  auto compiled = compile([](const Tensor& x) { return x * x; });
  for (int64_t n = 1; n <= 15; ++n) compiled(ones({n}));
  for (int i = 0; i < 3; ++i) compiled(ones({16}));
  BOOST_TEST(says(compiled, "replayed 1 times"));
  BOOST_TEST(!says(compiled, "take turns"));
}

BOOST_AUTO_TEST_CASE(reading_a_value_inside_is_an_error_that_says_where) {
  struct Picky : nn::Module<Picky> {
    Tensor forward(const Tensor& x) {
      const Tensor y = x + 1.0;
      return y.sum().item() > 0 ? y : x;
    }
  };
  Picky net;
  const Tensor x = ones({2});
  auto compiled = compile([&](const Tensor& a) { return net(a); });
  for (int i = 0; i < 3; ++i)
    require_error<ValueError>([&] { compiled(x); }, "a value is read inside a function",
                              "tenon::compile", "Picky", "after sum", "where()");
  auto printing = compile([&](const Tensor& a) { return (void)a.str(), a + 1.0; });
  require_error<ValueError>([&] { printing(x); }, "is read inside a function");
  auto shuffling = compile([](const Tensor& t) { return index_select(t, 0, randperm(2)); });
  require_error<ValueError>([&] { shuffling(x); }, "what randperm draws is read inside");
  BOOST_TEST(same_bits(x + 1.0, full({2}, 2.0)));  // nothing is recorded any more
}

BOOST_AUTO_TEST_CASE(a_kind_of_arguments_that_comes_to_stay_finds_room) {
  auto compiled = compile([](const Tensor& x) { return x * x + 1.0; }, {.max_programs = 4});
  for (int64_t n = 1; n < 2000; ++n) compiled(ones({n}));
  const Tensor x = randn({3000});
  for (int i = 0; i < 100; ++i) BOOST_TEST(same_bits(compiled(x), x * x + 1.0));
  BOOST_TEST(says(compiled, "1 programs made"));
}

BOOST_AUTO_TEST_CASE(a_number_that_changes_is_an_error_that_names_the_operator) {
  struct Scaled : nn::Module<Scaled> {
    double factor = 1;
    Tensor forward(const Tensor& x) { return x * factor; }
  };
  Scaled net;
  auto compiled = compile([&](const Tensor& x) {
    net.factor *= 0.5;
    return net(x);
  });
  compiled(ones({2}));
  require_error<ValueError>([&] { compiled(ones({2})); }, "number 0 of mul", "Scaled", "0.5",
                            "0.25", "pass it as a tensor");
}

BOOST_AUTO_TEST_CASE(a_number_that_changes_later_is_found_when_the_function_is_looked_at) {
  double factor = 2;
  auto compiled = compile([&](const Tensor& x) { return x * factor; });
  for (int i = 0; i < 10; ++i) compiled(ones({2}));
  factor = 3;
  for (int i = 10; i < 18; ++i) compiled(ones({2}));
  require_error<ValueError>([&] { compiled(ones({2})); }, "number 0 of mul", "2", "3");
  compiled(ones({2}));
  BOOST_TEST(same_bits(compiled(ones({2})), full({2}, 3.0)));
}

BOOST_AUTO_TEST_CASE(a_number_is_never_stale_for_more_than_1024_replays) {
  double factor = 2;
  // A program that is set aside would be compared later.
  auto compiled = compile([&](const Tensor& x) { return x * factor; }, {.measure = false});
  const Tensor x = ones({2});
  for (int i = 0; i < 5000; ++i) compiled(x);
  factor = 3;
  int stale = 0;
  const auto replay = [&] {
    for (; stale < 5000; ++stale) compiled(x);
  };
  require_error<ValueError>(replay, "number 0 of mul", "2", "3");
  BOOST_TEST(stale <= 1024);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_a_program_runs_as_always_and_says_why) {
  const Tensor x = randn({4});
  Tensor last;
  auto keeps = compile([&](const Tensor& a) {
    last = a * 2.0;
    return last.sum();
  });
  std::vector<float> numbers = {1, 2, 3, 4};
  auto adopts =
      compile([&](const Tensor& a) { return a.to("cpu") + from_blob(numbers.data(), {4}); });
  auto seeds = compile([&](const Tensor& a) { return manual_seed(1), dropout(a, 0.5); });
  for (int i = 0; i < 4; ++i) {
    const Tensor y = x + static_cast<double>(i);
    BOOST_TEST(same_bits(keeps(y), (y * 2.0).sum()));
    BOOST_TEST(same_bits(last, y * 2.0));
    BOOST_TEST(same_bits(adopts(y), y.to("cpu") + tensor(numbers, {.device = "cpu"})));
    seeds(y);
  }
  BOOST_TEST(says(keeps, "kept by something that is no result"));
  BOOST_TEST(says(adopts, "memory of the program becomes a tensor"));
  BOOST_TEST(says(seeds, "generator of random numbers is set"));
}

BOOST_AUTO_TEST_CASE(calls_that_differ_in_attributes_alone_are_told_apart) {
  int64_t dim = 0;
  auto compiled = compile([&](const Tensor& x) { return softmax(x, dim++ % 2); });
  for (int i = 0; i < 4; ++i) compiled(ones({2, 2}));
  BOOST_TEST(says(compiled, "operator 0, softmax"));
  BOOST_TEST(
      says(compiled, "had other attributes than before, or tensors of another memory layout"));
}

BOOST_AUTO_TEST_CASE(a_result_with_a_history_has_another_program_than_one_without) {
  const Tensor w = ones({3}).requires_grad_();
  auto compiled = compile([&](const Tensor& x) { return (x * w).sum(); });
  for (int i = 0; i < 4; ++i) {
    const Tensor loss = compiled(full({3}, 2.0));
    Tensor(w).set_grad(Tensor());
    loss.backward();
    BOOST_TEST(same_bits(w.grad(), full({3}, 2.0)));
  }
  BOOST_TEST(says(compiled, "a history of 2 operators"));
  for (int i = 0; i < 4; ++i)
    BOOST_TEST(!no_grad([&] { return compiled(ones({3})); }).requires_grad());
  BOOST_TEST(says(compiled, "under NoGrad"));
  BOOST_TEST(says(compiled, "2 programs made"));
}

BOOST_AUTO_TEST_CASE(an_exception_inside_leaves_everything_as_it_would_be) {
  bool fails = true;
  auto compiled = compile([&](const Tensor& x) {
    Tensor y = x + 1.0;
    if (fails) throw std::runtime_error("stop");
    return y;
  });
  for (int i = 0; i < 3; ++i) BOOST_CHECK_THROW(compiled(ones({2})), std::runtime_error);
  fails = false;
  for (int i = 0; i < 4; ++i) BOOST_TEST(same_bits(compiled(ones({2})), full({2}, 2.0)));
  BOOST_TEST(says(compiled, "replayed 2 times"));
}

BOOST_AUTO_TEST_CASE(a_compiled_function_inside_another_is_a_part_of_it) {
  auto inner = compile([](const Tensor& x) { return x * 2.0; });
  auto outer = compile([&](const Tensor& x) { return inner(x) + 1.0; });
  for (int i = 0; i < 4; ++i) BOOST_TEST(same_bits(outer(ones({2})), full({2}, 3.0)));
  BOOST_TEST(says(outer, "a program of 2 operators, replayed 2 times"));
  BOOST_TEST(says(inner, "0 calls recorded"));
}

BOOST_AUTO_TEST_CASE(a_function_may_call_its_compiled_form) {
  std::function<Tensor(const Tensor&)> again;
  int depth = 0;
  auto compiled = compile([&](const Tensor& x) -> Tensor {
    if (depth == 3) return x;
    ++depth;
    Tensor y = again(x + 1.0);
    --depth;
    return y;
  });
  again = [&](const Tensor& x) { return compiled(x); };
  for (int i = 0; i < 4; ++i) BOOST_TEST(same_bits(compiled(zeros({2})), full({2}, 3.0)));
  BOOST_TEST(says(compiled, "replayed 2 times, made of 3"));
}

// What it would say of itself meanwhile, or forget, is not known before it ends.
BOOST_AUTO_TEST_CASE(a_function_that_is_running_refuses_questions) {
  std::vector<std::function<void()>> questions;
  size_t refused = 0;
  auto compiled = compile([&](const Tensor& x) {
    for (auto& ask : questions)
      if (has(error_of<ValueError>(ask), "the compiled function is running; ")) ++refused;
    return x + 1.0;
  });
  questions = {[&] { compiled.explain(); }, [&] { compiled.to_dot(); }, [&] { compiled.reset(); },
               [&] { compiled.save("unwritten.tenon"); }};
  for (int i = 0; i < 3; ++i) compiled(ones({2}));
  BOOST_TEST(refused == 8u);
  BOOST_TEST(says(compiled, "replayed 1 times"));
}

BOOST_AUTO_TEST_CASE(a_function_that_was_moved_from_says_so) {
  auto compiled = compile([](const Tensor& x) { return x + 1.0; });
  const auto moved = std::move(compiled);
  const auto refused = [](auto&& call) {
    require_error<ValueError>(call, "tenon::compile: this object was moved from");
  };
  refused([&] { compiled(ones({2})); });
  refused([&] { compiled.explain(); });
  refused([&] { compiled.to_dot(); });
  refused([&] { compiled.reset(); });
  refused([&] { compiled.save("unwritten.tenon"); });
}

BOOST_AUTO_TEST_CASE(threads_take_turns_in_one_compiled_function) {
  auto compiled = compile([](const Tensor& x) { return (x * 2.0).sum(); });
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        if (compiled(full({8}, t)).item() != 16.0 * t) ++wrong;
    });
  for (auto& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(a_failed_operator_spoils_its_results_and_no_others) {
  if (default_device() != Device()) return;  // others cannot say which values a failure affected
  auto compiled = compile([](const Tensor& x, const Tensor& index) {
    return std::pair(x.index_select(0, index) * 2.0, x + 1.0);
  });
  const Tensor x = randn({3, 2}), good = tensor({0, 2}).to(i64), bad = tensor({0, 7}).to(i64);
  for (int i = 0; i < 4; ++i) compiled(x, good);
  auto [spoilt, fine] = compiled(x, bad);
  BOOST_TEST(same_bits(fine, x + 1.0));
  require_error<IndexError>([&] { spoilt.to_vector<float>(); }, "index_select");
  auto [later, other] = compiled(x, good);
  BOOST_TEST(same_bits(later, x.index_select(0, good) * 2.0));
  test::drain();
}

BOOST_AUTO_TEST_CASE(replays_that_are_far_ahead_keep_their_arguments_apart) {
  const int n = 200;
  auto compiled = compile([](const Tensor& x) { return matmul(x, x).sum(); });
  std::vector<Tensor> xs, results;
  for (int i = 0; i < n; ++i) xs.push_back(full({64, 64}, i % 7));
  for (auto& x : xs) results.push_back(compiled(x));
  for (int i = 0; i < n; ++i) {
    const double v = i % 7;
    BOOST_TEST(results[static_cast<size_t>(i)].item() == v * v * 64 * 64 * 64);
  }
}

// As a loss is there before the backward pass and the step of an optimizer. Once in many calls is
// enough: a busy machine may let the rest be done before it asks.
BOOST_AUTO_TEST_CASE(a_result_does_not_wait_for_what_follows_it) {
  Tensor after = zeros({200, 200}, {.device = "cpu"});
  auto compiled = compile([&](const Tensor& x) {
    const Tensor result = x.sum();
    Tensor y = x;
    for (int i = 0; i < 20; ++i) y = y.matmul(x);
    after.copy_(y);
    return result;
  });
  const Tensor x = ones({200, 200}, {.device = "cpu"}) / 200;
  for (int i = 0; i < 3; ++i) compiled(x).wait();
  bool seen = false;
  for (int i = 0; i < 100 && !seen; ++i) {
    synchronize();
    compiled(x).wait();
    seen = !after.is_ready();
  }
  BOOST_TEST(seen);
  BOOST_TEST(std::abs(after.mean().item() - 1.0 / 200) < 1e-6);
}

BOOST_AUTO_TEST_CASE(reset_forgets_programs) {
  auto compiled = compile([](const Tensor& x) { return x + 1.0; });
  for (int i = 0; i < 4; ++i) compiled(ones({2}));
  compiled.reset();
  BOOST_TEST(!says(compiled, "replayed"));
  auto moved = std::move(compiled);
  BOOST_TEST(same_bits(moved(ones({2})), full({2}, 2.0)));
}

BOOST_AUTO_TEST_SUITE_END()
