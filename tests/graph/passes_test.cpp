// What each pass makes of a recorded function, alone and with the others: fewer operators, the same
// bits.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "pass_runs.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(passes_test)

using namespace tenon;
using test::explained;
using test::only;
using test::require_operators;
using test::same_bits;
using test::says;

BOOST_AUTO_TEST_CASE(what_nobody_needs_goes) {
  require_operators(
      [](const Tensor& x) {
        const Tensor unused = matmul(x, x.t());
        softmax(unused, 1);
        return std::vector{matmul(x, x.t()).sum()};
      },
      &CompilePasses::dead_code, 4, 2);
}

BOOST_AUTO_TEST_CASE(what_is_changed_outside_stays) {
  Tensor total = zeros({6});
  auto compiled = compile([&](const Tensor& x) { total.copy_(x.sum({1})); });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = randn({6, 3});
    compiled(x);
    BOOST_TEST(same_bits(total, x.sum({1})));
  }
}

BOOST_AUTO_TEST_CASE(what_is_computed_twice_is_computed_once) {
  require_operators(
      [](const Tensor& x) { return std::vector{matmul(x, x.t()).sum() * matmul(x, x.t()).amax()}; },
      &CompilePasses::common_subexpressions, 5, 4);
}

BOOST_AUTO_TEST_CASE(what_changed_meanwhile_is_computed_again) {
  Tensor state = ones({6, 6});
  auto plain = [](const Tensor& x, Tensor& s) {
    const Tensor first = matmul(x, s);
    s.mul_(2.0);
    return first.sum() + matmul(x, s).sum();
  };
  Tensor other = state.clone();
  auto compiled = compile([&](const Tensor& x) { return plain(x, state); });
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randn({6, 6});
    BOOST_TEST(same_bits(compiled(x), plain(x, other)));
  }
}

BOOST_AUTO_TEST_CASE(copies_are_read_where_they_came_from) {
  require_operators([](const Tensor& x) { return std::vector{matmul(x.clone(), x.t()).sum()}; },
                    &CompilePasses::copies, 3, 2);
}

BOOST_AUTO_TEST_CASE(copies_of_what_changes_stay) {
  Tensor state = ones({4, 4}), other = ones({4, 4});
  auto plain = [](const Tensor& x, Tensor& s) {
    const Tensor before = s.clone();
    s.copy_(matmul(x, s));
    return matmul(before, x);
  };
  auto compiled = compile([&](const Tensor& x) { return plain(x, state); });
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randn({4, 4}) * 0.1;
    BOOST_TEST(same_bits(compiled(x), plain(x, other)));
    BOOST_TEST(same_bits(state, other));
  }
}

// Memory of which a part alone is written, such as a cache that is filled step by step, is not what
// that part was copied from.
BOOST_AUTO_TEST_CASE(parts_of_larger_memory_stay_where_they_are) {
  const Tensor first = arange(0, 4096) < 16;
  const auto filled = [](const Tensor& x, int64_t size) {
    Tensor all = empty({size});
    all.narrow(0, 0, 16).copy_(x);
    return all;
  };
  const auto argument = [] { return randn({16}); };
  std::string text =
      explained([&](const Tensor& x) { return std::vector{where(first, filled(x, 4096), 0.0)}; },
                only(&CompilePasses::copies), argument);
  BOOST_TEST(!test::has(text, "removed"), text);
  text = explained(
      [&](const Tensor& x) {
        return std::vector{filled(x, 16) * 2.0, where(first, filled(x, 4096), 0.0)};
      },
      only(&CompilePasses::common_subexpressions), argument);
  BOOST_TEST(!test::has(text, "removed"), text);
}

BOOST_AUTO_TEST_CASE(what_is_always_the_same_is_computed_once) {
  require_operators(
      [](const Tensor& x) {
        const Tensor positions = arange(0, 500) * 0.01;
        return std::vector{matmul(x, positions.unsqueeze(1)).sum()};
      },
      &CompilePasses::constants, 4, 2);
}

BOOST_AUTO_TEST_CASE(constants_that_change_are_none) {
  auto plain = [](const Tensor& x) {
    Tensor sum = zeros({6});
    for (int i = 0; i < 3; ++i) sum.add_(x[i]);
    return sum;
  };
  auto compiled = compile(plain);
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randn({3, 6});
    BOOST_TEST(same_bits(compiled(x), plain(x)));
  }
}

// Graphviz' own program is not at hand everywhere, so the text is looked at.
BOOST_AUTO_TEST_CASE(programs_can_be_drawn) {
  auto compiled = compile([](const Tensor& x) { return matmul(relu(x * 2.0 - 1.0), x.t()); });
  test::require_error<ValueError>([&] { compiled.to_dot(); }, "no program to draw yet");
  for (int i = 0; i < 3; ++i) compiled(randn({400, 50}));
  const std::string before = compiled.to_dot(true), after = compiled.to_dot();
  BOOST_TEST(before.find("label=\"relu\"") != before.npos);
  BOOST_TEST(after.find("label=\"relu\"") == after.npos);
  for (auto* part : {"digraph program {", "label=\"fused\"", "n0 -> n1;", "-> \"result 0\""})
    BOOST_TEST(after.find(part) != after.npos, part << " in " << after);
}

BOOST_AUTO_TEST_CASE(pointwise_operators_become_one) {
  require_operators(
      [](const Tensor& x) { return std::vector{(relu(x * 2.0 - 1.0) + sigmoid(x)) * x}; },
      &CompilePasses::pointwise, 6, 1);
}

// Norms and softmax from their parts: reductions of rows are members, too.
BOOST_AUTO_TEST_CASE(reductions_of_rows_become_part_of_one_operator) {
  const Tensor scale = randn({500}), shift = randn({500});
  require_operators(
      [&](const Tensor& x) {
        const Tensor d = x - x.mean({-1}, true);
        return std::vector{d * rsqrt((d * d).mean({-1}, true) + 1e-5) * scale + shift};
      },
      &CompilePasses::pointwise, 9, 1);
  require_operators(
      [](const Tensor& x) {
        const Tensor e = exp(x - x.amax({-1}, true));
        return std::vector{e / e.sum({-1}, true)};
      },
      &CompilePasses::pointwise, 5, 1);
  // What a row comes to is a result, with its dimension or without, and so is what is made of it.
  require_operators(
      [](const Tensor& x) {
        const Tensor sums = (x * x).sum({1}), roots = sqrt(sums) + 1.0;
        return std::vector{sums, roots, x / roots.unsqueeze(1)};
      },
      &CompilePasses::pointwise, 5, 1);
}

BOOST_AUTO_TEST_CASE(other_reductions_stay_alone) {
  require_operators(
      [](const Tensor& x) {
        return std::vector{(x * 2.0).sum({0}) + 1.0, (x + 1.0).sum()};
      },
      &CompilePasses::pointwise, 5, 5);
}

BOOST_AUTO_TEST_CASE(rows_of_all_kinds) {
  const Tensor mask = rand({4, 1, 1, 300}) > 0.2, bias = randn({1, 3, 60, 300});
  const auto attention = [&](const Tensor& x) {
    const Tensor scores = where(mask, x.to(f32).view({4, 3, 60, 300}) * 0.5 + bias, -1e9);
    const Tensor e = exp(scores - scores.amax({-1}, true));
    return std::vector{e / e.sum({-1}, true), e.sum({-1}).view({12, 60}).amax({-1})};
  };
  const auto plain = [](const Tensor& x) {
    const Tensor y = x - x.mean({-1}, true);
    return std::vector{y.to(f32) * 2.0, y.amin({-1}), x.var({-1}) + x.logsumexp({-1})};
  };
  for (DType t : {f32, f64, bf16, f16}) {
    explained(attention, {}, [t] { return randn({12, 60, 300}).to(t); });
    for (const Shape& shape :
         {Shape{1, 300}, Shape{300}, Shape{300, 1}, Shape{40, 2}, Shape{3, 5000}})
      explained(plain, {}, [&] { return randn(shape).to(t); });
    explained(plain, {}, [t] { return randn({50, 40}).to(t).t(); });
  }
}

// A bias, a mask of another type, and a part of a larger tensor.
BOOST_AUTO_TEST_CASE(operands_are_repeated_or_strided) {
  const Tensor bias = randn({500}), scale = randn({60, 1}), table = randn({120, 1000});
  require_operators(
      [&](const Tensor& x) {
        const Tensor part = table.narrow(0, 3, 60).narrow(1, 20, 500);
        return std::vector{where(x > bias, x * scale, part + bias)};
      },
      &CompilePasses::pointwise, 4, 1);
}

BOOST_AUTO_TEST_CASE(results_in_the_middle_are_results_of_the_group) {
  require_operators(
      [](const Tensor& x) {
        const Tensor y = x * 2.0, z = exp(y);
        return std::vector{y, z + 1.0, matmul(z, z.t())};
      },
      &CompilePasses::pointwise, 4, 2);
}

// The elements are the same, though the shapes are not.
BOOST_AUTO_TEST_CASE(shapes_may_be_written_in_several_ways) {
  const Tensor rows = randn({30, 1}), columns = randn({2, 500});
  require_operators(
      [&](const Tensor& x) {
        const Tensor a = x.reshape({30, 1000}) * rows;
        return std::vector{a.reshape({30, 2, 500}) + columns, relu(a)};
      },
      &CompilePasses::pointwise, 3, 1);
}

BOOST_AUTO_TEST_CASE(other_types_are_members) {
  require_operators(
      [](const Tensor& x) {
        return std::vector{(x.to(f64) * 3.0).to(bf16).to(f32) + x, (x > 0.0).to(f32)};
      },
      &CompilePasses::pointwise, 7, 1);
}

BOOST_AUTO_TEST_CASE(transposed_results_keep_their_order) {
  require_operators([](const Tensor& x) { return std::vector{relu(x.t() * 2.0) + x.t()}; },
                    &CompilePasses::pointwise, 3, 1);
}

// Adam from its parts: three tensors from outside are changed in one go.
BOOST_AUTO_TEST_CASE(changes_in_place_are_part_of_a_group) {
  std::vector<Tensor> state = {randn({5000}), zeros({5000}), zeros({5000})}, other;
  for (auto& t : state) other.push_back(t.clone());
  auto plain = [](const Tensor& g, std::vector<Tensor>& s) {
    s[1].copy_(s[1] * 0.9 + g * 0.1);
    s[2].copy_(s[2] * 0.99 + g * g * 0.01);
    s[0].sub_(s[1] * 0.01 / (sqrt(s[2]) + 1e-8));
  };
  auto compiled = compile([&](const Tensor& g) { plain(g, state); });
  for (int i = 0; i < 6; ++i) {
    const Tensor g = randn({5000});
    compiled(g);
    plain(g, other);
    BOOST_TEST(same_bits(state, other));
  }
  BOOST_TEST(says(compiled, "a program of 1 operators"));
}

// What reads a part of what the group changes comes after it, and is none of its members.
BOOST_AUTO_TEST_CASE(parts_of_what_changes_keep_operators_apart) {
  Tensor state = randn({8, 8}), other = state.clone();
  auto plain = [](const Tensor& x, Tensor& s) {
    s.mul_(0.5);
    s.narrow(0, 2, 3).add_(x.narrow(0, 0, 3));
    const Tensor y = s * x + s.t();
    s.t().mul_(x);
    return y - s;
  };
  auto compiled = compile([&](const Tensor& x) { return plain(x, state); });
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randn({8, 8});
    BOOST_TEST(same_bits(compiled(x), plain(x, other)));
    BOOST_TEST(same_bits(state, other));
  }
}

BOOST_AUTO_TEST_CASE(empty_and_single_elements) {
  for (const Shape& shape : {Shape{0, 5}, Shape{1}, Shape{}, Shape{1, 1, 1}})
    explained(
        [](const Tensor& x) {
          return std::vector{relu(x * 2.0) + 1.0, exp(x)};
        },
        {}, [&] { return randn(shape); });
}

// NaN, infinity and -0 come through as they do alone.
BOOST_AUTO_TEST_CASE(special_values_stay) {
  explained(
      [](const Tensor& x) {
        return std::vector{maximum(x / 0.0, x) * x, x.neg() + x};
      },
      {},
      [] {
        return tensor({0.0, -0.0, 1.0, -1.0 / 0.0, 0.0 / 0.0});
      });
}

BOOST_AUTO_TEST_CASE(a_network_is_the_same_with_each_pass_and_with_all) {
  for (auto pass : {&CompilePasses::dead_code, &CompilePasses::common_subexpressions,
                    &CompilePasses::copies, &CompilePasses::constants, &CompilePasses::residuals,
                    &CompilePasses::activations, &CompilePasses::pointwise}) {
    for (const CompilePasses& passes : {only(pass), CompilePasses(), test::kNoPasses}) {
      manual_seed(3);
      nn::Sequential net(nn::Linear(8, 16), nn::GELU(), nn::Dropout(0.2), nn::LayerNorm(16),
                         nn::Linear(16, 3));
      nn::Sequential twin = nn::clone(net);
      optim::SGD one(net.parameters(), {.lr = 0.1}), two(twin.parameters(), {.lr = 0.1});
      const auto step = [](auto& model, auto& optimizer, const Tensor& x) {
        optimizer.zero_grad();
        Tensor loss = (model(x) * model(x)).mean() + sigmoid(model(x)).sum() * 0.1;
        loss.backward();
        optimizer.step();
        return loss.detach();
      };
      auto compiled = compile([&](const Tensor& x) { return step(net, one, x); },
                              CompileOptions{.passes = passes});
      for (int i = 0; i < 5; ++i) {
        const Tensor x = randn({4, 8});
        const RandomState state = random_state();
        const Tensor expected = step(twin, two, x);
        set_random_state(state);
        BOOST_TEST(same_bits(compiled(x), expected));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
