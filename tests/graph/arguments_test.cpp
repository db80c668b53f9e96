// Which tensors a program takes for its arguments and which for tensors from outside, where the
// calls that were recorded do not tell all of it.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"

BOOST_AUTO_TEST_SUITE(arguments_test)

using namespace tenon;
using test::same_bits;
using test::says;

namespace {

// What a pass throws; empty if it succeeds.
std::string refusal_of(const std::function<void()>& pass) {
  try {
    pass();
  } catch (const AutogradError& error) {
    return error.what();
  }
  return {};
}
std::string refusal_of(const Tensor& loss) {
  return refusal_of([&] { loss.backward(); });
}

}  // namespace

// A version belongs to memory, which two tensors had in common only when the program was made.
BOOST_AUTO_TEST_CASE(parts_of_one_tensor_that_are_changed_may_be_two_tensors_later) {
  auto compiled = compile([](Tensor x, Tensor y) {
    const NoGrad guard;
    x.add_(1.0);
    y.mul_(2.0);
    y.add_(1.0);
  });
  for (int i = 0; i < 6; ++i) {
    const Tensor all = ones({8});
    const uint64_t before = all.version();
    compiled(all.narrow(0, 0, 4), all.narrow(0, 4, 4));
    BOOST_TEST(all.version() - before == 3u);
    BOOST_TEST(same_bits(all, cat({full({4}, 2.0), full({4}, 3.0)}, 0)));
  }
  BOOST_TEST(says(compiled, "replayed 4 times"));
  for (int i = 0; i < 6; ++i) {
    const Tensor x = ones({4}), y = ones({4}), w = ones({4}).requires_grad_();
    const uint64_t of_x = x.version(), of_y = y.version();
    const Tensor loss = (w * (i % 2 ? x : y)).sum();
    compiled(x, y);
    BOOST_TEST(x.version() - of_x == 1u);
    BOOST_TEST(y.version() - of_y == 2u);
    BOOST_TEST(refusal_of(loss).find("changed in place") != std::string::npos);
    BOOST_TEST(same_bits(std::vector{x, y}, {full({4}, 2.0), full({4}, 3.0)}));
  }
  BOOST_TEST(says(compiled, "2 programs made"));
}

BOOST_AUTO_TEST_CASE(of_two_parts_of_one_tensor_one_may_be_changed) {
  const auto body = [](Tensor x, const Tensor& y) {
    const NoGrad guard;
    x.add_(y);
  };
  auto compiled = compile(body);
  const auto check = [&](int64_t first, int64_t second) {
    Tensor all = arange(0, 12).to(f32), plain = all.clone();
    const uint64_t before = all.version(), of_plain = plain.version();
    compiled(all.narrow(0, first, 4), all.narrow(0, second, 4));
    body(plain.narrow(0, first, 4), plain.narrow(0, second, 4));
    BOOST_TEST(same_bits(all, plain));
    BOOST_TEST(all.version() - before == plain.version() - of_plain);
  };
  for (int i = 0; i < 6; ++i) check(0, 4);
  BOOST_TEST(says(compiled, "replayed 4 times"));
  for (const int64_t at : {8, 5, 4}) check(0, at), check(at, 0);
  BOOST_TEST(says(compiled, "replayed 10 times"));
  for (int i = 0; i < 5; ++i) {
    const Tensor x = ones({4}), y = full({4}, 2.0);
    const uint64_t of_x = x.version(), of_y = y.version();
    compiled(x, y);
    BOOST_TEST(same_bits(x, full({4}, 3.0)));
    BOOST_TEST(x.version() - of_x == 1u);
    BOOST_TEST(y.version() == of_y);
  }
  BOOST_TEST(says(compiled, "2 programs made"));
  BOOST_TEST(says(compiled, "replayed 3 times"));
}

// What a history has of one part is out of date once the other part of its memory is changed.
BOOST_AUTO_TEST_CASE(a_gradient_notices_a_change_of_another_part_of_the_memory) {
  const Tensor w = ones({4}).requires_grad_();
  auto compiled = compile([&](Tensor x, const Tensor& y) {
    const Tensor loss = (w * y).sum();
    const NoGrad guard;
    x.add_(1.0);
    return loss;
  });
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 6; ++i) {
      const Tensor all = ones({8}), x = ones({4}), y = ones({4});
      if (round == 0)
        BOOST_TEST(refusal_of(compiled(all.narrow(0, 0, 4), all.narrow(0, 4, 4))) != "");
      else
        BOOST_TEST(refusal_of(compiled(x, y)) == "");
    }
  BOOST_TEST(says(compiled, "2 programs made"));
}

BOOST_AUTO_TEST_CASE(parts_of_one_tensor_that_are_changed_may_lie_anywhere_in_it) {
  auto compiled = compile([](Tensor x, Tensor y) {
    const NoGrad guard;
    x.add_(1.0);
    y.mul_(2.0);
  });
  const Tensor ring = ones({8, 4}), plain = ones({8, 4});
  const auto check = [&](int64_t a, int64_t b) {
    compiled(ring.select(0, a), ring.select(0, b));
    plain.select(0, a).add_(1.0);
    plain.select(0, b).mul_(2.0);
    BOOST_TEST(same_bits(ring, plain));
    BOOST_TEST(ring.version() == plain.version());
  };
  for (int64_t i = 0; i < 7; ++i) check(i, (2 * i + 1) % 8);
  BOOST_TEST(says(compiled, "replayed 5 times"));
  // One and the same is none of these, and gets a program, too.
  for (int64_t i = 0; i < 5; ++i) check(i, i);
  BOOST_TEST(says(compiled, "2 programs made"));
  BOOST_TEST(says(compiled, "replayed 3 times"));
  for (int64_t i = 0; i < 4; ++i) check(i, 7 - i);
  BOOST_TEST(says(compiled, "replayed 9 times"));
  BOOST_TEST(says(compiled, "2 programs made"));
}

BOOST_AUTO_TEST_CASE(gradients_that_are_parts_of_one_tensor_may_be_two_tensors_later) {
  Tensor u = ones({4}).requires_grad_(), v = ones({4}).requires_grad_();
  auto compiled = compile([&](const Tensor& x) {
    const NoGrad guard;
    u.grad().mul_(x);
    v.grad().add_(x);
    v.grad().add_(x);
  });
  for (int i = 0; i < 8; ++i) {
    const Tensor all = ones({8});
    u.set_grad(i < 4 ? all.narrow(0, 0, 4) : ones({4}));
    v.set_grad(i < 4 ? all.narrow(0, 4, 4) : ones({4}));
    const uint64_t of_u = u.grad().version(), of_v = v.grad().version();
    compiled(full({4}, 3.0));
    BOOST_TEST(u.grad().version() - of_u == (i < 4 ? 3u : 1u));
    BOOST_TEST(v.grad().version() - of_v == (i < 4 ? 3u : 2u));
    BOOST_TEST(same_bits(u.grad(), full({4}, 3.0)));
    BOOST_TEST(same_bits(v.grad(), full({4}, 7.0)));
    if (i % 4 == 3) BOOST_TEST(says(compiled, "replayed 2 times"));
  }
  BOOST_TEST(says(compiled, "2 programs made"));
}

BOOST_AUTO_TEST_CASE(an_argument_without_elements_is_not_taken_for_one_that_begins_there) {
  for (const int64_t at : {0, 3}) {
    const auto body = [at](const Tensor& none, const Tensor& x) {
      return cat({none, x.narrow(0, at, 6 - at)}, 0) * 2.0;
    };
    auto compiled = compile(body);
    auto other_order = compile([&](const Tensor& x, const Tensor& none) { return body(none, x); });
    const auto check = [&](const Tensor& none, const Tensor& x) {
      BOOST_TEST(same_bits(compiled(none, x), body(none, x)));
      BOOST_TEST(same_bits(other_order(x, none), body(none, x)));
    };
    for (int i = 0; i < 4; ++i) {
      const Tensor x = full({6}, i + 1.0);
      check(x.narrow(0, at, 0), x);
    }
    BOOST_TEST(says(compiled, "replayed 2 times"));
    BOOST_TEST(says(other_order, "replayed 2 times"));
    const Tensor all = full({100}, 5.0);
    for (int i = 0; i < 4; ++i) {
      check(zeros({0}), randn({6}));
      check(all.narrow(0, 50, 0), randn({6}));
    }
    BOOST_TEST(says(compiled, "2 programs made"));
    BOOST_TEST(says(other_order, "2 programs made"));
  }
}

// The passes inside and outside of the function hold leaves, too.
BOOST_AUTO_TEST_CASE(a_leaf_that_was_assigned_anew_and_dropped_is_noticed) {
  const auto leaf = [](double value) { return full({3}, value).requires_grad_(); };
  Tensor w = leaf(2.0), other = leaf(5.0);
  const auto product = [&](const Tensor& x) { return (x * w).sum(); };
  const auto pass = [&](const Tensor& x) {
    w.set_grad(Tensor());
    Tensor loss = (x * w * w).sum();
    loss.backward();
    return loss;
  };
  auto outside = compile(product), learned = compile(product);
  auto inside = compile(pass);
  auto any_size = compile(product, {.dynamic = {0}});
  for (int i = 0; i < 4; ++i) outside(ones({3})), inside(ones({3}));
  Tensor last;  // has the leaf as well
  for (int i = 0; i < 4; ++i) last = learned(ones({3})), last.backward();
  for (const int64_t n : {2, 3, 4, 5, 6, 7, 8, 9, 9}) any_size(ones({n, 3}));
  for (auto* compiled : {&outside, &learned}) BOOST_TEST(says(*compiled, "replayed 2 times"));
  BOOST_TEST(says(inside, "replayed 2 times"));
  BOOST_TEST(says(any_size, "programs follow from these"));
  BOOST_TEST(!says(any_size, "0 programs follow from these"));
  w = other;
  w.set_grad(Tensor());
  BOOST_TEST(outside(ones({3})).item() == 15.0);
  BOOST_TEST(any_size(ones({9, 3})).item() == 135.0);
  BOOST_TEST(any_size(ones({10, 3})).item() == 150.0);
  learned(ones({3})).backward();
  BOOST_TEST(same_bits(w.grad(), ones({3})));
  BOOST_TEST(inside(ones({3})).item() == 75.0);
  BOOST_TEST(same_bits(w.grad(), full({3}, 10.0)));
}

BOOST_AUTO_TEST_CASE(a_second_pass_through_a_result_is_refused_in_the_same_words) {
  nn::Linear net(3, 1);
  const auto body = [&](const Tensor& x) {
    Tensor loss = (net(x) * 2.0).square().sum();
    loss.backward();
    return loss;
  };
  auto compiled = compile(body);
  const std::string expected = refusal_of(body(ones({2, 3})));
  BOOST_TEST(!expected.empty());
  for (int i = 0; i < 5; ++i) {
    const Tensor loss = compiled(ones({2, 3}));
    BOOST_TEST(loss.requires_grad());
    BOOST_TEST(refusal_of(loss) == expected);
    BOOST_TEST(refusal_of(loss * 2.0 + loss) == expected);
  }
  BOOST_TEST(says(compiled, "replayed 3 times"));
}

// The program has no graph by which a pass that is asked for some gradients could find its way.
BOOST_AUTO_TEST_CASE(a_spent_result_leaves_no_terms_out_of_gradients) {
  nn::Linear net(3, 1);
  const auto body = [&](const Tensor& x) {
    Tensor loss = (net(x) * 2.0).square().sum();
    loss.backward();
    return loss;
  };
  const Tensor w = net.weight;
  const auto all_refusals = [&](const Tensor& loss) {
    const Tensor more = loss + (w * w).sum();
    const std::vector<Tensor> of{w};
    return std::vector{refusal_of([&] { grad(std::vector{loss}, of); }),
                       refusal_of([&] { grad(std::vector{loss}, of, {}, {.allow_unused = true}); }),
                       refusal_of([&] { grad(std::vector{more}, of); }), refusal_of([&] {
                         grad(std::vector{(loss + w.sum()) * 3.0, more}, of);
                       })};
  };
  auto compiled = compile(body);
  const auto expected = all_refusals(body(ones({2, 3})));
  for (auto& text : expected) BOOST_TEST(text.find("a second time") != std::string::npos);
  for (int i = 0; i < 5; ++i)
    BOOST_TEST(all_refusals(compiled(ones({2, 3}))) == expected, boost::test_tools::per_element());
  BOOST_TEST(says(compiled, "replayed 3 times"));
}

BOOST_AUTO_TEST_CASE(a_leaf_over_the_memory_of_another_gets_its_own_gradient) {
  Tensor a = ones({3}).requires_grad_(), b = a.detach().requires_grad_();
  auto compiled = compile([](const Tensor& x) { (x * x).sum().backward(); });
  for (int i = 0; i < 6; ++i) compiled(a);
  BOOST_TEST(says(compiled, "replayed"));
  b.set_grad(zeros({3}));
  const Tensor before = a.grad().clone();
  for (int i = 1; i < 5; ++i) {
    compiled(b);
    BOOST_TEST(same_bits(a.grad(), before));
    BOOST_TEST(same_bits(b.grad(), full({3}, 2.0 * i)));
  }
  BOOST_TEST(says(compiled, "2 programs made"));
}

BOOST_AUTO_TEST_CASE(a_tensor_from_outside_that_is_returned_is_not_taken_for_the_argument) {
  const Tensor u = randn({3}), v = randn({3}), w = randn({3});
  auto outside = compile([&](const Tensor&) { return std::pair(w, u * 2.0); });
  auto argument = compile([&](const Tensor& x) { return std::pair(x, u * 2.0); });
  for (int i = 0; i < 4; ++i) outside(w), argument(w);
  BOOST_TEST(says(outside, "replayed 2 times"));
  BOOST_TEST(says(argument, "replayed 2 times"));
  for (const Tensor& x : {v, u, w, v, u}) {
    BOOST_TEST(outside(x).first.is_same(w));
    BOOST_TEST(argument(x).first.is_same(x));
  }
  BOOST_TEST(says(outside, "2 programs made"));
  for (int i = 0; i < 4; ++i) {
    const Tensor x = randn({3});
    BOOST_TEST(argument(x).first.is_same(x));
  }
  BOOST_TEST(says(argument, "2 programs made"));
}

BOOST_AUTO_TEST_CASE(an_argument_that_is_only_returned_gets_a_program_for_all_tensors) {
  const Tensor u = randn({3}), w = randn({3});
  auto compiled = compile([&](const Tensor& x) { return std::pair(x, u * 2.0); });
  for (int i = 0; i < 2; ++i) compiled(w);
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randn({3});
    BOOST_TEST(compiled(x).first.is_same(x));
  }
  BOOST_TEST(says(compiled, "2 programs made"));
  BOOST_TEST(says(compiled, "replayed 4 times"));
}

BOOST_AUTO_TEST_SUITE_END()
