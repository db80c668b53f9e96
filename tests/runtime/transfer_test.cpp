// Copies between the host and a device with streams of its own: who waits, in which order, and what
// becomes of failures.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <tenon/core/dispatch/replica.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/tensor.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "process/child.h"
#include "sim/faults.h"
#include "sim/held_up_stream.h"
#include "support/expect.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(transfer_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;

namespace {

uint64_t blocking_copies() {
  return sim_backend().extension<sim::Counters>("sim.counters", 1)->blocking_copies;
}

std::vector<uint8_t> pattern(int64_t n) {
  std::vector<uint8_t> values(static_cast<size_t>(n));
  const size_t period = 251;
  for (size_t i = 0; i < std::min(period, values.size()); ++i) values[i] = static_cast<uint8_t>(i);
  for (size_t have = period; have < values.size(); have *= 2)
    std::memcpy(&values[have], values.data(), std::min(have, values.size() - have));
  return values;
}

}  // namespace

BOOST_AUTO_TEST_CASE(nobody_waits_for_a_busy_device) {
  Tensor a = ones({1000}, {.device = "sim:0"}), batch = full({1000}, 4);
  batch.wait();
  const uint64_t blocked = blocking_copies();
  HeldUpStream held("sim:0");
  Tensor there = a + 1.0;
  Tensor here = there.to("cpu"), elsewhere = (there * 2.0).to("cpu:1");
  Tensor sum = (here + elsewhere.to("cpu")).sum();
  std::this_thread::sleep_for(
      std::chrono::milliseconds(20));  // by now the hosts' streams wait for the device
  Tensor next = batch.to("sim:0") * there;
  Tensor back = next.to("cpu");
  for (int i = 0; i < 100; ++i) next = next + a;
  BOOST_TEST(!here.is_ready());
  BOOST_TEST(!sum.is_ready());
  held.let_go();
  BOOST_TEST(sum.item() == 6000.0);
  BOOST_TEST(back.sum().item() == 8000.0);
  BOOST_TEST(next.sum().item() == 108000.0);
  BOOST_TEST(blocking_copies() == blocked);
}

// Copies that come to a cpu device do not wait for what it does, nor does it wait for them.
BOOST_AUTO_TEST_CASE(large_copies_come_beside_other_work) {
  constexpr int64_t n = 40000;
  const Tensor stuck = ones({10}, {.device = "sim:0"}), far = full({n}, 3, {.device = "sim:0"}),
               here = full({n}, 2);
  far.wait();
  HeldUpStream held("sim:0");
  const Tensor stuck_too = far * 1.0,
               busy = (stuck * 2.0).to("cpu:1");  // small, so cpu:1 itself waits for it
  const Tensor behind = full({n}, 5, {.device = "cpu:1"}) + 1.0;
  Tensor came = here.to("cpu:1");
  came.wait();
  BOOST_TEST(!behind.is_ready());
  const Tensor sum = came + behind;  // it is queued behind
  came.fill_(7);
  const Tensor late = stuck_too.to("cpu:2"), doubled = late * 2.0;
  BOOST_TEST(!late.is_ready());
  const Tensor next = stuck_too.to("cpu:3"), unrelated = full({n}, 4, {.device = "cpu:3"}) * 2.0;
  unrelated.wait();
  BOOST_TEST(!next.is_ready());
  Tensor changed = stuck_too.to("cpu:3");
  changed.narrow(0, 0, 10).fill_(1);
  stuck_too.to("cpu:3");  // nobody keeps it
  held.let_go();
  BOOST_TEST(busy.sum().item() == 20.0);
  BOOST_TEST(sum.sum().item() == 8.0 * n);
  BOOST_TEST(came.sum().item() == 7.0 * n);
  BOOST_TEST(doubled.sum().item() == 6.0 * n);
  BOOST_TEST((next + changed).sum().item() == 6.0 * n - 20);
}

// A copy is one failed read more, and says why.
BOOST_AUTO_TEST_CASE(large_copies_bring_failures) {
  const Tensor labels = full({20000}, 3, {.dtype = i64}), table = ones({2, 3});
  const Tensor bad = index_select(table, 0, labels).to("cpu:1"), more = bad + 1.0;
  require_error<IndexError>([&] { more.wait(); }, "index_select");
  require_error<IndexError>([&] { bad.wait(); }, "index_select");
  synchronize();
}

// A program that is far ahead of its device does not hold all that it copies at once.
BOOST_AUTO_TEST_CASE(copies_far_ahead_take_turns) {
  constexpr int64_t n = 1 << 18;  // 1 MiB
  const Tensor stuck = ones({10}, {.device = "sim:0"}), here = full({n}, 2);
  here.wait();
  const uint64_t before = memory_stats("cpu:3").reserved;
  Tensor total = zeros({n}, {.device = "cpu:3"});
  HeldUpStream held("sim:0");
  total += (stuck * 2.0).to("cpu:3").sum();
  for (int i = 0; i < 300; ++i) total += here.to("cpu:3");
  BOOST_TEST(memory_stats("cpu:3").reserved - before < (uint64_t{80} << 20));
  held.let_go();
  BOOST_TEST(total.sum().item() == 620.0 * n);
  empty_cache("cpu:3");
}

// What a device computes after a sum of gradients is known to be sound only when the others of that
// sum have told how theirs ended. One of them is busy with something else by now.
BOOST_AUTO_TEST_CASE(nobody_waits_for_a_device_that_only_shared_a_sum) {
  nn::Linear layer(4, 2);
  layer.to("sim:0");
  nn::DataParallel model(layer, {Device("sim:0"), Device("sim:1")});
  model(ones({4, 4}, {.device = "sim:0"})).sum().backward();
  Tensor x = ones({5}, {.device = "sim:1"}) * 2.0;
  while (!x.is_ready()) {
  }
  HeldUpStream held("sim:0");
  Tensor copied = x.to("sim:2");
  held.let_go();
  BOOST_TEST(copied.sum().item() == 10.0);
}

// A step whose loss nobody reads yet is queued to its end while the device does nothing.
BOOST_AUTO_TEST_CASE(a_training_step_waits_for_nothing) {
  auto losses_of = [](bool hold) {
    manual_seed(3);
    nn::Sequential model(nn::Linear(20, 30), nn::ReLU(), nn::Linear(30, 5));
    model.to("sim:0");
    optim::Adam optimizer(model.parameters(), {.lr = 0.01});
    Tensor inputs = randn({16, 20}), labels = randint(0, 5, {16}, {.dtype = i64});
    std::optional<HeldUpStream> held;
    std::vector<Tensor> losses;
    for (int i = 0; i < 5; ++i) {
      if (hold && i == 2) held.emplace("sim:0");
      Tensor x = inputs.to("sim:0"), y = labels.to("sim:0");
      optimizer.zero_grad();
      Tensor loss = cross_entropy(model(x), y);
      loss.backward();
      optimizer.step();
      losses.push_back(loss.to("cpu"));
    }
    if (held) BOOST_TEST(!losses.back().is_ready());
    held.reset();
    std::vector<double> values;
    for (auto& loss : losses) values.push_back(loss.item());
    return values;
  };
  BOOST_TEST(losses_of(true) == losses_of(false), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(one_thread_queues_while_others_wait) {
  Tensor a = ones({10}, {.device = "sim:0"});
  std::optional<HeldUpStream> held("sim:0");
  std::vector<Tensor> queued;
  for (int i = 0; i < 4; ++i) queued.push_back(a + static_cast<double>(i));
  fill(sim::kFailsLate, "sim:0");
  for (int i = 0; i < 4; ++i) queued.push_back(a * static_cast<double>(i));
  std::atomic<int> failures{0};
  {
    std::vector<std::jthread> waiting;
    for (auto& t : queued)
      waiting.emplace_back([&] {
        if (has(error_of([&] { t.wait(); }), "an accident")) ++failures;
      });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (int i = 0; i < 100; ++i) a = a + 1.0;
    held->let_go();
  }
  // A wait for work that was queued after the failure reports it, and so does this thread's. A wait
  // for work that was queued before may report it.
  BOOST_TEST((failures >= 4 && failures <= 8), failures.load());
  require_error<Error>([&] { a.wait(); }, "an accident");
  BOOST_TEST(a.sum().item() == 1010.0);
  BOOST_TEST(queued[3].sum().item() == 40.0);
}

BOOST_AUTO_TEST_CASE(what_is_copied_may_change_at_once) {
  Tensor there = full({5000}, 3, {.device = "sim:0"}), here = full({5000}, 4);
  {
    HeldUpStream held("sim:0");
    Tensor moved = here.to("sim:0");
    here.fill_(8);
    here.wait();
    here = Tensor();
    std::vector<Tensor> others;
    for (int i = 0; i < 10; ++i) others.push_back(full({5000}, 9));
    for (auto& o : others) o.wait();
    Tensor copied = there.to("cpu");
    there.fill_(7);
    for (int i = 0; i < 10; ++i) there.to("cpu");  // nobody keeps these
    held.let_go();
    BOOST_TEST(copied.sum().item() == 15000.0);
    BOOST_TEST(moved.sum().item() == 20000.0);
    BOOST_TEST(there.sum().item() == 35000.0);
  }
}

BOOST_AUTO_TEST_CASE(copies_under_way_do_not_share_pinned_memory) {
  constexpr int many = 100;  // more than there are free blocks, which take turns
  std::vector<Tensor> here, there;
  for (int i = 0; i < many; ++i)
    here.push_back(full({5000}, i)), there.push_back(full({5000}, i, {.device = "sim:0"}));
  std::vector<Tensor> moved, copied;
  {
    HeldUpStream held("sim:0");
    for (auto& t : here) moved.push_back(t.to("sim:0"));
    held.let_go();
  }
  synchronize();
  {
    // The device has done its half, the host's stream is held up by another device.
    Tensor a = ones({5}, {.device = "sim:1"});
    HeldUpStream held("sim:1");
    Tensor b = a.to("cpu");
    for (auto& t : there) {
      copied.push_back(t.to("cpu"));
      synchronize("sim:0");
    }
    held.let_go();
  }
  for (int i = 0; i < many; ++i) {
    BOOST_TEST(moved[i].sum().item() == 5000.0 * i);
    BOOST_TEST(copied[i].sum().item() == 5000.0 * i);
  }
}

// A replica is written over while what was queued before still reads it.
BOOST_AUTO_TEST_CASE(copies_into_memory_in_use_come_after_its_readers) {
  for (auto [primary, other] : {std::pair("sim:0", "cpu"), std::pair("cpu", "sim:0")}) {
    Tensor w = full({3000}, 3, {.device = primary}), unit = ones({3000}, {.device = other});
    allow_replicas(w);
    w.wait();
    HeldUpStream held("sim:0");
    Tensor first = w * unit;
    w.fill_(5);
    Tensor second = w * unit;
    held.let_go();
    BOOST_TEST(first.sum().item() == 9000.0);
    BOOST_TEST(second.sum().item() == 15000.0);
  }
}

BOOST_AUTO_TEST_CASE(sizes_at_the_edge_arrive_whole) {
  constexpr int64_t most_staged = int64_t{64} << 20;
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{63}, most_staged, most_staged + 1}) {
    // Seconds each.
    if (kThreadSanitized && n >= most_staged) continue;
    if (kSanitized && n > most_staged) continue;
    const uint64_t blocked = blocking_copies();
    const auto values = pattern(n);
    const Tensor source = from_host(values.data(), u8, {n}, {.dtype = u8});
    const Tensor there = source.to("sim:0"), here = there.to("cpu");
    BOOST_TEST(here.numel() == n);
    BOOST_TEST((here.to_vector<uint8_t>() == values));
    BOOST_TEST(blocking_copies() == blocked + (n > most_staged ? 2u : 0u));
    BOOST_TEST((there.to_vector<uint8_t>() == values));
    BOOST_TEST(
        (from_host(values.data(), u8, {n}, {.dtype = u8, .device = "sim:0"}).to_vector<uint8_t>() ==
         values));
  }
  empty_cache("sim:0");
}

// A loop that only queues copies must not lock all memory of the machine.
BOOST_AUTO_TEST_CASE(what_is_under_way_is_bounded) {
  const Tensor source = zeros({16 << 20}, {.device = "sim:0"});  // 64 MiB
  source.wait();
  const uint64_t blocked = blocking_copies();
  std::vector<Tensor> copies;
  {
    HeldUpStream held("sim:0");
    for (int i = 0; i < 4; ++i) copies.push_back(source.to("cpu"));
    BOOST_TEST(blocking_copies() == blocked);
    std::jthread opener([&](std::stop_token stop) {
      while (blocking_copies() == blocked && !stop.stop_requested()) std::this_thread::yield();
      held.let_go();
    });
    copies.push_back(source.to("cpu"));
    BOOST_TEST(blocking_copies() == blocked + 1);
  }
  for (auto& c : copies) BOOST_TEST(c.narrow(0, (16 << 20) - 1, 1).item() == 0.0);
  copies = {source.to("cpu")};  // and then there is room again
  BOOST_TEST(blocking_copies() == blocked + 1);
  copies[0].wait();
  empty_cache("sim:0");
}

BOOST_AUTO_TEST_CASE(views_are_copied_as_they_look) {
  const Tensor here = arange(0, 24).reshape({4, 6}), there = here.to("sim:0");
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.to_vector<float>() == b.to_vector<float>();
  };
  BOOST_TEST(same(there.t().to("cpu"), here.t()));
  BOOST_TEST(same(here.t().to("sim:0"), here.t()));
  BOOST_TEST(same(slice(there, 0, 1, 3).to("cpu"), slice(here, 0, 1, 3)));
  BOOST_TEST(same(slice(here, 1, 2, 5, 2).to("sim:0"), slice(here, 1, 2, 5, 2)));
  BOOST_TEST(
      same(slice(there, 0, 2, 3).expand({3, 6}).to("cpu"), slice(here, 0, 2, 3).expand({3, 6})));
  BOOST_TEST(slice(there, 1, 5, 6).sum().item() == 56.0);
  // Into views.
  Tensor target = zeros({6, 4});
  target.t().copy_(there);
  BOOST_TEST(same(target, here.t()));
  Tensor far = zeros({6, 4}, {.device = "sim:0"});
  slice(far, 0, 2, 3).copy_(slice(here, 1, 1, 2).reshape({1, 4}));
  BOOST_TEST(same(slice(far.to("cpu"), 0, 2, 3), slice(here, 1, 1, 2)));
  BOOST_TEST(far.sum().item() == 40.0);
}

BOOST_AUTO_TEST_CASE(threads_copy_at_the_same_time) {
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&wrong, t] {
        const std::string device = "sim:" + std::to_string(t % 2),
                          host = "cpu:" + std::to_string(t / 2);
        for (int i = 0; i < 100; ++i) {
          const int64_t n = 1 + (i * 37 + t) % 3000;
          Tensor there = full({n}, i, {.device = Device(host)}).to(Device(device));
          Tensor a = (there + 1.0).to(Device(host)), b = (there * 2.0).to("cpu");
          there.fill_(-1);
          if ((a.to("cpu") + b).sum().item() != static_cast<double>(n) * (3 * i + 1)) ++wrong;
          if (there.to_vector<float>().back() != -1.0f) ++wrong;
        }
      });
  }
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()
