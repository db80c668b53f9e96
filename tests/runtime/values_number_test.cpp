// The number that plugins get for the values of an input: the same as long as these stay, and
// another one after every kind of change, in whatever memory the values are.
#include <set>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/host_tensor.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/tenon.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(values_number_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;

namespace {

uint64_t number(const Tensor& t) { return impl_of(t).storage->values_number(); }

// Every number is new.
void expect_change(const Tensor& t, const char* what, auto&& change) {
  static std::set<uint64_t> seen;
  seen.insert(number(t));
  change();
  const uint64_t after = number(t);
  BOOST_TEST(after != 0u);
  BOOST_TEST(seen.insert(after).second, what << " on " << t.device().str());
  BOOST_TEST(number(t) == after);
}

}  // namespace

BOOST_AUTO_TEST_CASE(reading_changes_nothing) {
  Tensor w = rand({4, 6}), x = rand({3, 6});
  const uint64_t before = number(w);
  linear(x, w).wait();
  w.to("cpu:1").wait();
  (void)w.to_vector<float>();
  BOOST_TEST(number(w) == before);
  BOOST_TEST(number(w.t()) == before);
  BOOST_TEST(number(w.detach()) == before);
  BOOST_TEST(number(w.clone()) != before);
}

BOOST_AUTO_TEST_CASE(every_mutator_makes_another) {
  for (const char* device : {"cpu:0", "sim:0"}) {
    Tensor w = rand({4, 6}, {.device = device});
    expect_change(w, "fill_", [&] { w.fill_(2); });
    expect_change(w, "copy_", [&] { w.copy_(zeros({4, 6}, {.device = device})); });
    expect_change(w, "copy_ from elsewhere", [&] { w.copy_(rand({4, 6}, {.device = "cpu:1"})); });
    expect_change(w, "a view", [&] { w.select(0, 1).fill_(3); });
    expect_change(w, "a view of a view", [&] {
      w.t().slice(0, 1, 3).copy_(ones({2, 4}, {.device = device}));
    });
    expect_change(w, "a converted copy", [&] {
      w.copy_(ones({4, 6}, {.dtype = f64, .device = device}));
    });
    expect_change(w, "values of another tensor", [&] {
      set_data(w, ones({4, 6}, {.device = device}));
    });
    for (const bool adam : {false, true}) {
      Tensor p = rand({5}, {.device = device}).requires_grad_();
      auto step = [&](auto optimizer) {
        expect_change(p, "an optimizer", [&] {
          (p * p).sum().backward();
          optimizer.step();
        });
      };
      if (adam)
        step(optim::Adam({p}, {.lr = 0.1}));
      else
        step(optim::SGD({p}, {.lr = 0.1}));
    }
    nn::BatchNorm1d norm(3);
    norm.to(device);
    expect_change(norm.running_mean, "running statistics", [&] {
      norm(rand({4, 3}, {.device = device}));
    });
  }
}

BOOST_AUTO_TEST_CASE(memory_that_is_used_again_has_another_number) {
  for (const char* device : {"cpu:0", "sim:0"}) {
    std::set<uint64_t> numbers;
    std::set<const void*> places;
    for (int i = 0; i < 20; ++i) {
      Tensor x = ones({100}, {.device = device});
      numbers.insert(number(x));
      places.insert(impl_of(x).data());
    }
    BOOST_TEST(numbers.size() == 20u);
    BOOST_TEST(places.size() < 20u);
  }
}

BOOST_AUTO_TEST_CASE(replays_and_collectives_make_others) {
  Tensor in = ones({8}, {.device = "sim:0"}), total = zeros({8}, {.device = "sim:0"}), made;
  total.copy_(total + in);
  auto graph = StreamGraph::capture("sim:0", [&] {
    total.copy_(total + in);
    made = in * 2.0;
  });
  expect_change(total, "a replay", [&] { graph.replay(); });
  expect_change(made, "a replay", [&] { graph.replay(); });
  const uint64_t read = number(in);
  graph.replay();
  BOOST_TEST(number(in) == read);

  auto model = nn::DataParallel(nn::Linear(4, 2), parse_devices("sim:0,sim:1"));
  const Tensor p = model.parameters()[0];
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  for (int i = 0; i < 3; ++i)
    expect_change(p, "a step of several devices", [&] {
      sgd.zero_grad();
      model(rand({4, 4}, {.device = "sim:0"})).sum().backward();
      sgd.step();
    });
}

BOOST_AUTO_TEST_SUITE_END()
