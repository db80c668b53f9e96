// Further streams of one device: what overlaps, what waits, and what becomes of failures and
// memory.
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "runtime/never_made.h"
#include "sim/faults.h"
#include "sim/held_up_stream.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(stream_guard_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr int64_t kCount = 1000;

// Values that the first stream of a device makes only when sim:1, which is held up, goes on.
Tensor late_on(Device device) {
  const Tensor late = full({kCount}, 2, {.device = "sim:1"}) * 1.5;
  return late.to(device);
}

// Values that are never made.
Tensor failed_on(const std::string& device) {
  if (device.starts_with("cpu")) return never_made({kCount});
  Tensor failed = empty({kCount}, {.device = device});
  failed.fill_(sim::kFailsAtOnce);
  return failed;
}

void for_devices(void (*check)(const char* device)) {
  for (const char* device : {"cpu:0", "sim:0"}) BOOST_TEST_CONTEXT(device) check(device);
}

}  // namespace

BOOST_AUTO_TEST_CASE(work_of_a_scope_overlaps_with_that_of_the_device) {
  for_devices([](const char* device) {
    const Tensor x = full({kCount}, 3, {.device = device});
    x.wait();
    Stream second(device);
    BOOST_TEST(second.device().str() == device);
    HeldUpStream held("sim:1");
    const Tensor late = late_on(device), behind = x * 2.0;
    Tensor beside;
    {
      const StreamGuard guard(second);
      beside = (x + 1.0) * 2.0;
      BOOST_TEST(beside.sum().item() == 8.0 * kCount);  // read while the device is held up
    }
    BOOST_TEST(!late.is_ready());
    BOOST_TEST(!behind.is_ready());
    BOOST_TEST(second.query());
    const Tensor both = beside + late;  // on the first stream
    Tensor after;
    {
      const StreamGuard guard(second);
      after = both * 2.0;
      BOOST_TEST(!second.query());
    }
    held.let_go();
    BOOST_TEST(after.sum().item() == 22.0 * kCount);
    second.synchronize();
    BOOST_TEST(second.query());
  });
}

BOOST_AUTO_TEST_CASE(changes_in_place_wait_for_who_reads_elsewhere) {
  for_devices([](const char* device) {
    Stream second(device), third(device);
    Tensor x = full({kCount}, 1, {.device = device}), in_second;
    {
      const StreamGuard guard(second);
      in_second = full({kCount}, 5, {.device = device});
    }
    synchronize();
    HeldUpStream held("sim:1");
    const Tensor late = late_on(device);  // 3
    const Tensor from_x = x + late, from_second = in_second + late;
    {
      const StreamGuard guard(second);
      x.fill_(10);  // the first stream has to read it before
      in_second.add_(1);
    }
    const Tensor sum = x + in_second;
    {
      const StreamGuard guard(third);
      x.add_(in_second);
    }
    x.mul_(2);
    held.let_go();
    BOOST_TEST(from_x.sum().item() == 4.0 * kCount);
    BOOST_TEST(from_second.sum().item() == 8.0 * kCount);
    BOOST_TEST(sum.sum().item() == 16.0 * kCount);
    BOOST_TEST(x.sum().item() == 32.0 * kCount);
  });
}

BOOST_AUTO_TEST_CASE(copies_of_a_scope_are_its_own) {
  const Tensor x = full({kCount}, 3, {.device = "sim:0"}), y = full({kCount}, 4);
  synchronize();
  Stream on_sim("sim:0"), on_cpu("cpu:0");
  HeldUpStream held("sim:1");
  const Tensor late = late_on("sim:0"), late_here = late_on("cpu:0");
  {
    const StreamGuard sim(on_sim), cpu(on_cpu);
    BOOST_TEST(x.to("cpu:0").sum().item() == 3.0 * kCount);
    BOOST_TEST((y * 2.0).to("sim:0").sum().item() == 8.0 * kCount);
    Tensor target = zeros({kCount});
    target.copy_(x);
    BOOST_TEST(target.sum().item() == 3.0 * kCount);
  }
  BOOST_TEST(!late.is_ready());
  BOOST_TEST(!late_here.is_ready());
  held.let_go();
}

// Guards say where work on their device goes, and nothing else.
BOOST_AUTO_TEST_CASE(scopes_nest_and_leave_other_devices_alone) {
  Stream a("cpu:0"), b("cpu:0"), other("cpu:1");
  const auto lane = [](auto&& work) {
    work().wait();  // so that there is a plan
    profiler::Profiler profiler;
    work().wait();
    profiler.stop();
    std::string lanes;
    for (auto& e : profiler.events())
      if (e.kind == profiler::Kind::op) lanes += (lanes.empty() ? "" : ", ") + e.lane;
    return lanes;
  };
  const Tensor x = ones({300, 300}), y = ones({300, 300}, {.device = "cpu:1"});
  synchronize();  // so that none of these is in what is recorded
  const auto on_x = [&] { return matmul(x, x); };
  const auto on_y = [&] { return matmul(y, y); };
  const std::string of_a = [&] {
    const StreamGuard guard(a);
    return lane(on_x);
  }();
  BOOST_TEST(of_a.starts_with("cpu:0 stream "));
  {
    const StreamGuard outer(a);
    BOOST_TEST(lane(on_y) == "cpu:1");
    {
      const StreamGuard elsewhere(other);
      const DeviceGuard device("cpu:1");
      BOOST_TEST(default_device().str() == "cpu:1");
      BOOST_TEST(lane(on_x) == of_a);
      BOOST_TEST(lane(on_y).starts_with("cpu:1 stream "));
      const StreamGuard inner(b);
      BOOST_TEST(default_device().str() == "cpu:1");
      BOOST_TEST(lane(on_x) != of_a);
    }
    BOOST_TEST(lane(on_x) == of_a);
    BOOST_TEST(default_device().str() == "cpu:0");
    std::string in_thread;
    std::thread([&] { in_thread = lane(on_x); }).join();
    BOOST_TEST(in_thread == "cpu:0");
  }
  BOOST_TEST(lane(on_x) == "cpu:0");
}

BOOST_AUTO_TEST_CASE(the_backward_pass_runs_where_the_forward_call_ran) {
  Stream second("cpu:0");
  Tensor x = full({300, 300}, 0.5), w = full({300, 300}, 0.25);
  x.requires_grad_();
  w.requires_grad_();
  const auto pass = [&](bool scoped) {
    std::optional<StreamGuard> guard;
    if (scoped) guard.emplace(second);
    const Tensor y = matmul(x, w);
    guard.reset();
    return matmul(y, w).sum();
  };
  pass(false).backward();
  const auto plain = std::pair(x.grad().to_vector<float>(), w.grad().to_vector<float>());
  for (bool from_scope : {false, true}) {
    x.set_grad(Tensor());
    w.set_grad(Tensor());
    const Tensor loss = pass(true);
    loss.wait();
    profiler::Profiler profiler;
    {
      std::optional<StreamGuard> guard;
      if (from_scope) guard.emplace(second);
      loss.backward();
    }
    synchronize();
    profiler.stop();
    size_t first = 0, further = 0;
    for (auto& e : profiler.events())
      if (e.kind == profiler::Kind::op && e.name == "matmul")
        ++(e.lane == "cpu:0" ? first : further);
    BOOST_TEST(first >= 2u);  // two gradients of each product
    BOOST_TEST(further == first);
    BOOST_TEST(x.grad().to_vector<float>() == plain.first);
    BOOST_TEST(w.grad().to_vector<float>() == plain.second);
  }
}

namespace {
// A function of another device than that of its argument.
struct Elsewhere : autograd::Function<Elsewhere> {
  static Tensor forward(autograd::Context&, const Tensor& x) { return x.to("cpu:1") * 2.0; }
  static Tensor backward(autograd::Context&, std::span<const Tensor> grads) {
    return (grads[0] * 2.0).to("cpu:0");
  }
};
}  // namespace

BOOST_AUTO_TEST_CASE(the_backward_pass_of_a_function_runs_where_its_results_are) {
  const Stream here("cpu:0"), there("cpu:1");
  for (const Stream& stream : {here, there}) {
    Tensor x = ones({kCount});
    x.requires_grad_();
    Tensor y;
    {
      const StreamGuard guard(stream);
      y = Elsewhere::apply(x);
    }
    y.sum().backward();
    BOOST_TEST(y.sum().item() == 2.0 * kCount);
    BOOST_TEST(x.grad().sum().item() == 2.0 * kCount);
  }
}

// A failure on one stream must not leave others running.
BOOST_AUTO_TEST_CASE(synchronize_waits_for_all_streams_though_one_has_failed) {
  for_devices([](const char* device) {
    Stream second(device);
    synchronize();
    const Tensor bad = failed_on(device);
    bad.is_ready();
    HeldUpStream held("sim:1");
    Tensor late;
    {
      const StreamGuard guard(second);
      late = late_on(device) * 2.0;
    }
    BOOST_TEST(!second.query());
    const std::jthread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      held.let_go();
    });
    BOOST_CHECK_THROW(synchronize(Device(device)), Error);
    BOOST_TEST(second.query());
    synchronize();
  });
}

// A value that was never computed throws wherever it is read, and no other value does.
BOOST_AUTO_TEST_CASE(failures_follow_values_between_streams) {
  for_devices([](const char* device) {
    Stream second(device), third(device);
    Tensor bad, good, kept = full({kCount}, 7, {.device = device});
    {
      const StreamGuard guard(second);
      bad = failed_on(device);
      good = full({kCount}, 2, {.device = device}) * 2.0;
    }
    const Tensor also_bad = bad + 1.0, fine = good + 1.0;
    {
      const StreamGuard guard(third);
      kept.add_(bad.sum());  // is skipped, so it keeps its values
    }
    BOOST_TEST(fine.sum().item() == 5.0 * kCount);
    BOOST_TEST(kept.sum().item() == 7.0 * kCount);
    BOOST_CHECK_THROW(also_bad.wait(), Error);
    BOOST_CHECK_THROW(bad.wait(), Error);
    bad.fill_(1);
    {
      const StreamGuard guard(second);
      BOOST_TEST((bad + 1.0).narrow(0, 0, 1).sum().item() == 2.0);
    }
    try {
      synchronize();
    } catch (const Error&) {  // what was never read is told once
    }
    synchronize();
  });
}

// Memory of a stream is used again in its own order, whoever else still reads it.
BOOST_AUTO_TEST_CASE(memory_is_not_used_again_while_another_stream_reads_it) {
  for_devices([](const char* device) {
    Stream second(device);
    synchronize();
    HeldUpStream held("sim:1");
    const Tensor late = late_on(device);
    std::vector<Tensor> sums;
    for (int i = 0; i < 20; ++i) {
      Tensor x;
      {
        const StreamGuard guard(second);
        x = full({kCount}, i, {.device = device});
      }
      sums.push_back(x + late);  // and nobody keeps x
      const StreamGuard guard(second);
      full({kCount}, -1, {.device = device});
    }
    held.let_go();
    for (int i = 0; i < 20; ++i)
      BOOST_TEST(sums[static_cast<size_t>(i)].sum().item() == (i + 3.0) * kCount);
  });
}

BOOST_AUTO_TEST_CASE(a_stream_may_go_before_its_work) {
  synchronize();
  const uint64_t before = memory_stats("sim:0").allocated;
  HeldUpStream held("sim:1");
  Tensor late = late_on("sim:0"), result;
  {
    Stream second("sim:0");
    const StreamGuard guard(second);
    result = late * 2.0;
  }
  Stream next("sim:0");  // gets the queue of the other one
  BOOST_TEST(!next.query());
  held.let_go();
  BOOST_TEST(result.sum().item() == 6.0 * kCount);
  late = result = Tensor();
  synchronize();
  BOOST_TEST(memory_stats("sim:0").allocated == before);
}

BOOST_AUTO_TEST_CASE(a_device_has_so_many_streams) {
  std::vector<Stream> all;
  require_error<DeviceError>(
      [&] {
        for (int i = 0; i < 100; ++i) all.emplace_back("sim:2");
      },
      "Stream: sim:2 has 64 streams in use", "let some of them go");
  BOOST_TEST(all.size() == 64u);
  all.pop_back();
  all.emplace_back("sim:2");
  const Stream copy = all.back();
  require_error<DeviceError>([] { Stream("nonexistent:0"); }, "nonexistent");
}

BOOST_AUTO_TEST_SUITE_END()
