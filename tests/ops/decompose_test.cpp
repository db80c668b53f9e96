// A backend that offers simple operators only (tests/ops/primitives) gives the same results: the
// core makes the others of them.
#include <algorithm>
#include <string>

#include <tenon/conformance/driver.h>
#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/optimizer.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/recurrent.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/runtime/dispatch_stats.h>
#include <tenon/plugins/host/registry.h>

#include "ops/check.h"
#include "places.h"

BOOST_AUTO_TEST_SUITE(decompose)

using namespace tenon;
using namespace tenon::test;

namespace {

const char* const device = "primitives:0";

struct PrimitivesFolder {
  PrimitivesFolder() { plugins::registry().add_path(test::build_dir() + "/tests/primitives"); }
};

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(PrimitivesFolder);

BOOST_AUTO_TEST_CASE(what_cannot_be_decomposed_is_refused_with_the_reason) {
  require_error<UnsupportedError>([] { randn({2}, {.device = device}); },
                                  "primitives has no normal");
}

// That is no word about the backend that is compared with it.
BOOST_AUTO_TEST_CASE(what_the_kit_compares_with_may_lack_an_operator) {
  plugins::registry().add_path(test::build_dir() + "/tests/conformance/poor.tenon.json");
  const conformance::Subject subject{.device = Device("cpu"), .reference = Device("poor")};
  size_t count = 0;
  for (auto& family : conformance::table())
    for (auto& line : family.lines) {
      if (line.name != std::string("tanh")) continue;
      for (auto& check : conformance::layout_checks(line, subject, 0, {.runs = 8})) {
        if (check.dtype != f32) continue;
        const auto result = conformance::result_of(check);
        BOOST_TEST((result.status == conformance::Status::skipped), result.detail);
        BOOST_TEST(has(result.detail, "poor:0, which it is compared with, does not offer it: "),
                   result.detail);
        ++count;
      }
    }
  BOOST_TEST(count > 0);
}

BOOST_AUTO_TEST_CASE(steps_in_place_reach_parameters_that_are_not_contiguous) {
  auto step = [](const Tensor& p, const Tensor& m, const Tensor& v) {
    std::vector<Tensor> params = {p}, gradients = {sample({4, 6}, 0.9).to(p.device())}, first = {m},
                        second = {v};
    for (int64_t i = 1; i < 4; ++i)
      adam_step(params, gradients, first, second, {}, {.lr = 0.1, .step = i});
    sgd_step(params, gradients, first, {.lr = 0.1, .momentum = 0.9});
  };
  auto strided = [](double phase) {
    return sample({6, 8}, phase).to(device).slice(1, 0, 8, 2).t();
  };
  Tensor p = strided(0.1), m = strided(0.2), v = abs(strided(0.3)).t().clone().t();
  Tensor twins[] = {p.clone(), m.clone(), v.clone()};
  step(p, m, v);
  step(twins[0], twins[1], twins[2]);
  require_equal(p, twins[0]);
  require_equal(m, twins[1]);
  require_equal(v, twins[2]);
}

BOOST_AUTO_TEST_CASE(whole_powers_without_a_kernel_for_them) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> bases = {3, -3, 0, 1, -1, 2, 3037000499, least},
                             exponents = {39, 3, 0, -7, -7, -1, 2, 1};
  for (DType dtype : {i64, i32, u8}) {
    Tensor a = ints(bases, {8}).to(dtype), b = ints(exponents, {8}).to(dtype), there = a.to(device);
    require_equal(pow(there, b.to(device)).to(Device()), pow(a, b));
    for (int64_t e : {int64_t{0}, int64_t{1}, int64_t{13}, (int64_t{1} << 40) + 3})
      require_equal(pow(there, e).to(Device()), pow(a, e));
    for (int64_t base : {0, 1, -1, 7})
      require_equal(pow(base, b.to(device)).to(Device()), pow(base, b));
  }
}

// Where a sequence is no operator, it is made of steps, with the same results.
BOOST_AUTO_TEST_CASE(an_lstm_is_made_of_its_steps) {
  const auto result = [](const Device& where) {
    const auto on = [&](const Shape& shape, double phase) {
      return sample(shape, phase).to(f32).to(where).requires_grad_();
    };
    const std::vector<Tensor> args = {on({4, 2, 3}, 0.1), on({1, 2, 5}, 0.2), on({1, 2, 5}, 0.3),
                                      on({20, 3}, 0.4),   on({20, 5}, 0.5),   on({20}, 0.6),
                                      on({20}, 0.7)};
    const auto [y, h, c] = lstm(args[0], args[1], args[2], {args.begin() + 3, args.end()});
    const Tensor loss = sum(square(y)) + sum(h * c);
    std::vector<Tensor> all = grad(std::span(&loss, 1), args);
    for (auto& t : {y, h, c}) all.push_back(t.detach());
    return all;
  };
  count_dispatch();
  reset_dispatch_stats();
  const auto found = result(Device(device)), expected = result(Device("cpu"));
  const DispatchStats stats = dispatch_stats();
  count_dispatch(false);
  for (const std::string op : {"lstm_sequence", "lstm_sequence_backward"})
    BOOST_TEST(std::ranges::count(stats.decomposed, op, &DispatchStats::Detours::op) == 1, op);
  for (size_t i = 0; i < found.size(); ++i) require_equal(found[i].to("cpu"), expected[i], 1e-5);
}

// What is put together piece by piece has no values where a piece was never made.
BOOST_AUTO_TEST_CASE(a_piece_that_was_never_made_is_never_read) {
  Tensor bad = embedding(tensor(std::vector<int64_t>{9}), ones({4, 3})).to(device),
         good = full({1, 3}, 1, {.device = device});
  Tensor pieces[] = {good, bad};
  Tensor both = cat(pieces, 0);
  BOOST_CHECK_THROW(both.to_vector<float>(), IndexError);
  BOOST_CHECK_THROW(both.to("cpu").to_vector<float>(), IndexError);
  BOOST_TEST(both.narrow(0, 0, 1).to("cpu").to_vector<float>()[2] == 1.0f);
  // The gradient of a slice is zero around it, but not where it could not be computed.
  Tensor x = full({2, 3}, 1, {.device = device});
  x.requires_grad_();
  mul(x.narrow(0, 1, 1), bad).backward(good);
  BOOST_CHECK_THROW(x.grad().to_vector<float>(), IndexError);
}

BOOST_AUTO_TEST_SUITE_END()
