// The loader: order, threads, errors, and going on where it stood.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <numeric>
#include <set>
#include <thread>

#include <boost/test/unit_test.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include <tenon/core/tensor.h>
#include <tenon/data/loader.h>
#include <tenon/data/tensor_dataset.h>

#include "../files.h"
#include "process/child.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(loader_test)

using namespace tenon;
using namespace tenon::data;

namespace {

// Example i is i.
TensorDataset numbers(int64_t count) {
  const Tensor x = arange(0, static_cast<double>(count)).to(i64);
  return TensorDataset(x, x);
}

using Order = std::vector<std::vector<int>>;
Order epoch_of(DataLoader& loader) {
  Order order;
  for (auto& [data, target] : loader) order.push_back(data.to_vector<int>());
  return order;
}
std::vector<int> flat(const Order& order) {
  std::vector<int> all;
  for (const auto& batch : order) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

// Counts who is in it at once, and fails where it is told to.
struct Probe : Dataset {
  struct Seen {
    std::atomic<int> made{0}, inside{0}, most_inside{0};
  };
  std::shared_ptr<Seen> seen = std::make_shared<Seen>();
  int64_t count = 100, fails_at = -1;
  int milliseconds = 0;

  int64_t size() const override { return count; }
  Batch get_batch(std::span<const int64_t> indices) const override {
    const int inside = ++seen->inside;
    for (int most = seen->most_inside;
         most < inside && !seen->most_inside.compare_exchange_weak(most, inside);) {
    }
    if (milliseconds) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    ++seen->made;
    --seen->inside;
    if (std::find(indices.begin(), indices.end(), fails_at) != indices.end())
      throw IndexError("this one is broken");
    return numbers(count).get_batch(indices);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(in_order_without_shuffling) {
  DataLoader loader(numbers(7), {.batch_size = 3, .shuffle = false});
  BOOST_TEST(loader.size() == 3);
  BOOST_TEST((epoch_of(loader) == Order{{0, 1, 2}, {3, 4, 5}, {6}}));
  BOOST_TEST((epoch_of(loader) == Order{{0, 1, 2}, {3, 4, 5}, {6}}));
  DataLoader dropping(numbers(7), {.batch_size = 3, .shuffle = false, .drop_last = true});
  BOOST_TEST(dropping.size() == 2);
  BOOST_TEST((epoch_of(dropping) == Order{{0, 1, 2}, {3, 4, 5}}));
}

BOOST_AUTO_TEST_CASE(every_example_once_in_a_new_order_each_epoch) {
  DataLoader loader(numbers(1000), {.batch_size = 64});
  const std::vector<int> first = flat(epoch_of(loader)), second = flat(epoch_of(loader));
  BOOST_TEST((first != second));
  for (std::vector<int> order : {first, second}) {
    BOOST_TEST(!std::is_sorted(order.begin(), order.end()));
    std::sort(order.begin(), order.end());
    std::vector<int> all(1000);
    std::iota(all.begin(), all.end(), 0);
    BOOST_TEST((order == all));
  }
  // Every place is taken by many examples: no part of the permutation stands still.
  DataLoader small(numbers(4), {.batch_size = 4, .workers = 0});
  std::set<std::vector<int>> orders;
  for (int epoch = 0; epoch < 500; ++epoch) orders.insert(flat(epoch_of(small)));
  BOOST_TEST(orders.size() == 24u);
}

BOOST_AUTO_TEST_CASE(the_order_does_not_depend_on_workers_or_prefetch) {
  DataLoader reference(numbers(500), {.batch_size = 7, .seed = 5, .workers = 0});
  const Order first = epoch_of(reference), second = epoch_of(reference);
  for (int workers : {1, 2, 4, 9})
    for (int prefetch : {0, 1, 3, 100}) {
      DataLoader loader(numbers(500),
                        {.batch_size = 7, .seed = 5, .workers = workers, .prefetch = prefetch});
      BOOST_TEST((epoch_of(loader) == first));
      BOOST_TEST((epoch_of(loader) == second));
    }
  DataLoader other(numbers(500), {.batch_size = 7, .seed = 6});
  BOOST_TEST((epoch_of(other) != first));
}

BOOST_AUTO_TEST_CASE(awkward_sizes) {
  DataLoader none(numbers(0), {});
  BOOST_TEST(none.size() == 0);
  BOOST_TEST(epoch_of(none).empty());
  DataLoader large(numbers(3), {.batch_size = 1'000'000, .workers = 8});
  BOOST_TEST(flat(epoch_of(large)).size() == 3u);
  DataLoader nothing_left(numbers(3), {.batch_size = 4, .drop_last = true});
  BOOST_TEST(epoch_of(nothing_left).empty());
  auto refusal = [](const LoaderOptions& options) {
    return error_of<ValueError>([&] { DataLoader(numbers(3), options); });
  };
  BOOST_TEST(
      has(refusal({.batch_size = 0}), "DataLoader: batch_size has to be at least 1, but is 0"));
  BOOST_TEST(has(refusal({.workers = -1}), "workers has to be at least 0, but is -1"));
  BOOST_TEST(has(refusal({.prefetch = -2}), "prefetch has to be at least 0, but is -2"));
  BOOST_TEST(has(error_of<ValueError>([] { DataLoader(std::shared_ptr<const Dataset>()); }),
                 "the data set is null"));
}

BOOST_AUTO_TEST_CASE(batches_belong_to_the_reader) {
  DataLoader loader(numbers(6), {.batch_size = 2, .shuffle = false});
  std::vector<Batch> kept;
  for (auto& batch : loader) kept.push_back(std::move(batch));
  BOOST_TEST((kept[0].data.to_vector<int>() == std::vector<int>{0, 1}));
  BOOST_TEST((kept[2].data.to_vector<int>() == std::vector<int>{4, 5}));
}

BOOST_AUTO_TEST_CASE(workers_work_at_once_but_not_too_far_ahead) {
  Probe probe;
  probe.milliseconds = 5;
  DataLoader loader(probe, {.batch_size = 1, .workers = 3, .prefetch = 4});
  auto batch = loader.begin();
  while (probe.seen->made < 5) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  BOOST_TEST(probe.seen->made == 5);  // the one in hand and four ahead
  for (int i = 0; i < 20; ++i) ++batch;
  BOOST_TEST(probe.seen->most_inside > 1);
  BOOST_TEST(probe.seen->most_inside <= 3);
  BOOST_TEST(probe.seen->made <= 25);
}

BOOST_AUTO_TEST_CASE(without_workers_nothing_is_made_ahead) {
  Probe probe;
  DataLoader loader(probe, {.batch_size = 10, .workers = 0});
  int taken = 0;
  for (auto& batch : loader) {
    BOOST_TEST(batch.size() == 10);
    BOOST_TEST(probe.seen->made == ++taken);
  }
}

BOOST_AUTO_TEST_CASE(leaving_a_loop_early_joins_the_workers) {
  Probe probe;
  probe.milliseconds = 1;
  DataLoader loader(probe, {.batch_size = 1, .workers = 4, .prefetch = 8});
  for (int i = 0; i < 20; ++i) {
    for (auto& batch : loader)
      if (batch.size() == 1) break;
    BOOST_TEST(probe.seen->inside == 0);
  }
  const int made = probe.seen->made;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  BOOST_TEST(probe.seen->made == made);
}

BOOST_AUTO_TEST_CASE(a_workers_error_arrives_in_the_loop) {
  for (int workers : {0, 3}) {
    Probe probe;
    probe.fails_at = 17;
    DataLoader loader(probe, {.batch_size = 5, .shuffle = false, .workers = workers});
    int taken = 0;
    try {
      for (auto& batch : loader) taken += static_cast<int>(batch.size());
      BOOST_ERROR("no exception");
    } catch (const DataError& error) {
      BOOST_TEST(error.what() ==
                 std::string("DataLoader: batch 3 of epoch 0 (examples 15, 16, 17, "
                             "18, 19 of Probe) cannot be made: this one is broken"));
      BOOST_CHECK_THROW(std::rethrow_if_nested(error), IndexError);
    }
    BOOST_TEST(taken == 15);  // what came in front was delivered
    BOOST_TEST(probe.seen->inside == 0);
  }
}

BOOST_AUTO_TEST_CASE(an_error_names_all_examples_that_may_have_caused_it) {
  Probe probe;
  probe.fails_at = 3, probe.count = 1000;
  DataLoader loader(probe, {.batch_size = 1000, .shuffle = false, .workers = 1});
  const std::string text = error_of<DataError>([&] { loader.begin(); });
  BOOST_TEST(has(text, "(examples 0, 1, 2, 3, 4, 5, "));
  BOOST_TEST(has(text, ", 254, 255, … of Probe) cannot be made: this one is broken"));
}

BOOST_AUTO_TEST_CASE(an_error_ends_the_loop) {
  for (int workers : {0, 1, 3}) {
    Probe probe;
    probe.fails_at = 17;
    DataLoader loader(probe, {.batch_size = 5, .shuffle = false, .workers = workers});
    auto batch = loader.begin();
    for (int i = 0; i < 2; ++i) ++batch;
    const int before = probe.seen->made;
    BOOST_TEST(before >= 3);
    const std::string text = error_of<DataError>([&] { ++batch; });
    BOOST_TEST(has(text, "batch 3 of epoch 0"));
    BOOST_TEST((batch == loader.end()));
    const int made = probe.seen->made;
    for (int i = 0; i < 10; ++i) BOOST_TEST(error_of<DataError>([&] { ++batch; }) == text);
    BOOST_TEST((batch == loader.end()));
    BOOST_TEST(probe.seen->made == made);
    BOOST_TEST((loader.state() == LoaderState{0, 3}));
  }
}

// The child of the test below: the stack of a thread is more than the memory that is left.
BOOST_AUTO_TEST_CASE(no_memory_for_workers,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  DataLoader loader(numbers(100), {.batch_size = 1, .workers = 64});
  rlimit before{};
  BOOST_REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto page = static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  const rlimit little{pages * page + (1 << 20), before.rlim_max};
  BOOST_REQUIRE(setrlimit(RLIMIT_AS, &little) == 0);
  const std::string text = error_of<DataError>([&] { loader.begin(); });
  BOOST_REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  BOOST_TEST(has(text, "DataLoader: worker "), text);
  BOOST_TEST(has(text, " of 64 cannot be started: "), text);
  BOOST_TEST(epoch_of(loader).size() == 100);
}
BOOST_AUTO_TEST_CASE(workers_that_cannot_be_started) {
  if (tenon::test::kSanitized) return;
  const Outcome child = run_alone("loader_test/no_memory_for_workers");
  BOOST_TEST(child.status == 0, child.output);
}

BOOST_AUTO_TEST_CASE(a_state_resumes_the_very_same_batches) {
  DataLoader uninterrupted(numbers(100), {.batch_size = 8, .seed = 3});
  const Order first = epoch_of(uninterrupted), second = epoch_of(uninterrupted),
              third = epoch_of(uninterrupted);

  DataLoader before(numbers(100), {.batch_size = 8, .seed = 3});
  epoch_of(before);
  BOOST_TEST((before.state() == LoaderState{1, 0}));
  LoaderState saved;
  int steps = 0;
  for ([[maybe_unused]] auto& batch : before)
    if (++steps == 5) {
      saved = before.state();
      break;
    }
  BOOST_TEST((saved == LoaderState{1, 5}));

  DataLoader after(numbers(100), {.batch_size = 8, .seed = 3, .workers = 3});
  after.set_state(saved);
  BOOST_TEST((epoch_of(after) == Order(second.begin() + 5, second.end())));
  BOOST_TEST((epoch_of(after) == third));

  after.set_state({0, after.size()});  // the end of an epoch is the beginning of the next
  BOOST_TEST((epoch_of(after) == second));
  BOOST_TEST((epoch_of(before) == third));  // a loop that was left is not taken up again
  BOOST_TEST(has(error_of<ValueError>([&] {
                   after.set_state({0, 14});
                 }),
                 "there is no position 14 in an epoch of 13 batches"));
}

BOOST_AUTO_TEST_CASE(copies_and_nested_loops_go_on_independently) {
  DataLoader loader(numbers(20), {.batch_size = 10, .shuffle = false});
  int batches = 0;
  for ([[maybe_unused]] auto& outer : loader) {
    DataLoader copy = loader;
    for ([[maybe_unused]] auto& inner : copy) ++batches;
    for ([[maybe_unused]] auto& inner : loader) ++batches;
  }
  BOOST_TEST(batches == 8);
}

// A data set may be anybody's, and what it says of its size wrong.
BOOST_AUTO_TEST_CASE(sizes_that_no_data_set_has) {
  struct Claims : Dataset {
    int64_t count;
    explicit Claims(int64_t count) : count(count) {}
    int64_t size() const override { return count; }
    Batch get_batch(std::span<const int64_t> indices) const override {
      return {zeros({static_cast<int64_t>(indices.size())}),
              zeros({static_cast<int64_t>(indices.size())})};
    }
  };
  constexpr int64_t huge = int64_t{1} << 60;
  BOOST_TEST(has(error_of<ValueError>([] { DataLoader(Claims(-1)).size(); }),
                 "the data set says that its size is -1"));
  BOOST_TEST(has(error_of<ValueError>([] { DataLoader(Claims(-1)).begin(); }),
                 "the data set says that its size is -1"));
  BOOST_TEST(has(error_of<OutOfMemoryError>([] { DataLoader(Claims(huge)).begin(); }),
                 "DataLoader: the numbers of 1152921504606846976 examples: cannot allocate"));
  BOOST_TEST(has(error_of<OutOfMemoryError>([] {
                   DataLoader(Claims(huge), {.batch_size = huge - 1, .shuffle = false}).begin();
                 }),
                 "DataLoader: the numbers of 1152921504606846975 examples"));
  DataLoader in_order(Claims(huge), {.batch_size = 4, .shuffle = false, .workers = 0});
  BOOST_TEST(in_order.size() == huge / 4);
  BOOST_TEST((*in_order.begin()).size() == 4);
  DataLoader whole(Claims(7), {.batch_size = std::numeric_limits<int64_t>::max(), .workers = 0});
  BOOST_TEST((*whole.begin()).size() == 7);
}

BOOST_AUTO_TEST_CASE(a_loop_that_cannot_begin_changes_nothing) {
  Probe probe;
  probe.count = 20;
  DataLoader loader(probe, {.batch_size = 4});
  loader.set_state({.epoch = 2, .position = 3});
  Order whole;
  {
    DataLoader same = loader;
    whole = epoch_of(same);
  }
  std::vector<int> first = whole.at(0);
  Probe fails = probe;
  fails.fails_at = first.at(0);
  auto state = std::make_shared<Probe>(fails);
  DataLoader broken(state, {.batch_size = 4});
  broken.set_state({.epoch = 2, .position = 3});
  BOOST_CHECK_THROW(broken.begin(), DataError);
  state->fails_at = -1;
  BOOST_TEST(broken.state().position == 3);
  BOOST_TEST((epoch_of(broken) == whole));
}

BOOST_AUTO_TEST_CASE(a_data_set_that_has_become_smaller) {
  auto probe = std::make_shared<Probe>();
  DataLoader loader(probe, {.batch_size = 10});
  loader.set_state({.epoch = 0, .position = 5});
  probe->count = 20;
  test::require_error<ValueError>([&] { loader.begin(); },
                                  "there is no position 5 in an epoch of 2 batches");
}

BOOST_AUTO_TEST_SUITE_END()
