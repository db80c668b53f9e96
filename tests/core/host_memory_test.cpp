// Memory of the user as tensors, and values that the host writes.
#include <array>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/host_tensor.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/runtime/dispatch_stats.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(host_memory_test)

using namespace tenon;
using test::require_error;

namespace {
using Floats = std::vector<float>;
}

BOOST_AUTO_TEST_CASE(values_are_used_where_they_are) {
  Floats memory{1, 2, 3, 4, 5, 6};
  int deleted = 0;
  Tensor view;
  {
    Tensor x = from_blob(memory.data(), {2, 3}, f32, [&](void* at) {
      BOOST_CHECK(at == memory.data());
      ++deleted;
    });
    BOOST_CHECK(x.data<float>() == memory.data());
    x *= 2;
    view = x[1];
    x.wait();
  }
  BOOST_TEST(deleted == 0);  // the view is left
  BOOST_TEST(memory == (Floats{2, 4, 6, 8, 10, 12}));
  memory[3] = 7;
  BOOST_TEST(view.to_vector<float>() == (Floats{7, 10, 12}));
  view = Tensor();
  BOOST_TEST(deleted == 1);
}

BOOST_AUTO_TEST_CASE(strides_say_where_elements_lie) {
  Floats memory{1, 2, 3, 4, 5, 6};
  Tensor columns = from_blob(memory.data(), {2, 2}, {1, 3}, f32);
  BOOST_TEST((columns + 0).to_vector<float>() == (Floats{1, 4, 2, 5}));
  columns.fill_(0).wait();
  BOOST_TEST(memory == (Floats{0, 0, 3, 0, 0, 6}));
  Tensor repeated = from_blob(memory.data() + 2, {2, 2}, {0, 3}, f32);
  BOOST_TEST(repeated.to_vector<float>() == (Floats{3, 6, 3, 6}));
  require_error<ValueError>([&] { repeated.fill_(1); }, "share");
}

// Each lies in the gaps of the others, so that none has to be copied before another is changed.
BOOST_AUTO_TEST_CASE(fields_of_an_array_of_structs) {
  struct Point {
    float x, y;
  };
  std::array<Point, 3> points{{{1, 10}, {2, 20}, {3, 30}}};
  Tensor x = from_blob(&points[0].x, {3}, {2}, f32), y = from_blob(&points[0].y, {3}, {2}, f32);
  count_dispatch();
  reset_dispatch_stats();
  x.add_(y).wait();
  BOOST_TEST(dispatch_stats().hidden_copies.empty());
  count_dispatch(false);
  BOOST_TEST(x.to_vector<float>() == (Floats{11, 22, 33}));
  // And these overlap: what is read is what was there before.
  Floats memory{1, 2, 3, 4};
  Tensor front = from_blob(memory.data(), {3}, f32), back = from_blob(&memory[1], {3}, f32);
  back.add_(front).wait();
  BOOST_TEST(memory == (Floats{1, 3, 5, 7}));
}

// The deleter frees the memory, so the sanitizer sees work that goes on behind it.
BOOST_AUTO_TEST_CASE(the_deleter_waits_for_queued_work) {
  constexpr int64_t n = 192;
  Tensor product;
  bool deleted = false;
  {
    auto* memory = new Floats(n * n, 1.0f);
    Tensor x = from_blob(memory->data(), {n, n}, f32, [memory, &deleted](void*) {
      deleted = true;
      delete memory;
    });
    product = x;
    for (int i = 0; i < 20; ++i) product = matmul(x, product) / static_cast<double>(n);
  }
  BOOST_TEST(deleted);
  BOOST_TEST(product.to_vector<float>().front() == 1.0f);
  BOOST_TEST(product.to_vector<float>().back() == 1.0f);
}

BOOST_AUTO_TEST_CASE(no_elements) {
  int deleted = 0;
  {
    Tensor none = from_blob(nullptr, {0, 3}, f64, [&](void* at) {
      BOOST_CHECK(at == nullptr);
      ++deleted;
    });
    BOOST_TEST(none.numel() == 0);
    BOOST_TEST((none + 1).to_vector<double>().empty());
    BOOST_TEST(deleted == 0);
  }
  BOOST_TEST(deleted == 1);
}

// A deleter that throws is told in the log; one may use tensors, and drop others that have one.
BOOST_AUTO_TEST_CASE(hostile_deleters) {
  std::array<float, 2> memory{1, 2};
  {
    Tensor x = from_blob(memory.data(), {2}, f32, [](void*) { throw std::runtime_error("no"); });
  }
  {
    Tensor x = from_blob(memory.data(), {2}, f32, [](void*) { throw 7; });
  }
  std::vector<int> order;
  auto inner = std::make_shared<Tensor>(
      from_blob(memory.data(), {2}, f32, [&](void*) { order.push_back(2); }));
  double seen = 0;
  {
    Tensor x = from_blob(memory.data(), {2}, f32, [&](void*) {
      seen = (*inner + 1).to_vector<float>()[1];
      order.push_back(1);
      inner.reset();
    });
    x.fill_(4);
  }
  BOOST_TEST(seen == 5);
  BOOST_TEST(order == (std::vector<int>{1, 2}));
}

BOOST_AUTO_TEST_CASE(the_last_handle_may_be_dropped_by_any_thread) {
  Floats memory(64, 1.0f);
  std::thread::id on;
  Tensor x = from_blob(memory.data(), {64}, f32, [&](void*) { on = std::this_thread::get_id(); });
  std::thread::id other;
  std::thread dropper([&other, x = std::move(x)]() mutable {
    other = std::this_thread::get_id();
    x += 1;
    x = Tensor();
  });
  dropper.join();
  BOOST_CHECK(on == other);
  BOOST_TEST(memory == Floats(64, 2.0f));
}

BOOST_AUTO_TEST_CASE(memory_that_no_tensor_can_use) {
  Floats memory(4);
  auto never = [](void*) { BOOST_ERROR("the deleter of memory that was refused was called"); };
  require_error<ValueError>([&] { from_blob(nullptr, {2}, f32, never); },
                            "from_blob: a null pointer, but shape (2,) has elements");
  auto* odd = reinterpret_cast<char*>(memory.data()) + 1;
  require_error<ValueError>([&] { from_blob(odd, {2}, f32, never); },
                            "is not a multiple of 4, the size of an element of f32", "from_host");
  require_error<ValueError>([&] { from_blob(memory.data(), {2}, {-1}, f32, never); },
                            "strides (-1,) are negative", "flip()");
  require_error<ValueError>(
      [&] {
        from_blob(memory.data(), {2, 2}, {1}, f32, never);
      },
      "shape (2, 2) has 2 dimensions, but there are 1 strides");
  require_error<ShapeError>([&] { from_blob(memory.data(), {-1}, f32, never); }, "from_blob");
  require_error<ShapeError>(
      [&] {
        from_blob(memory.data(), {3, 3}, {int64_t{1} << 61, 1}, f32);
      },
      "reaches further than can be addressed");
}

BOOST_AUTO_TEST_CASE(the_host_writes_values) {
  const Device cpu;
  Tensor x = zeros({2, 2}, {.device = cpu});
  const uint64_t before = x.version();
  x += 1;
  x.write_<float>([](std::span<float> values) {
    BOOST_TEST(values.size() == 4u);
    BOOST_TEST(values[3] == 1.0f);
    values[3] = 5;
  });
  BOOST_CHECK(x.version() > before + 1);
  BOOST_TEST((x * 2).to_vector<float>() == (Floats{2, 2, 2, 10}));
  x[0].write_<float>([](auto values) { values[1] = 9; });
  BOOST_TEST(x.to_vector<float>() == (Floats{1, 9, 1, 5}));
  Tensor truths = empty({2}, {.dtype = boolean, .device = cpu});
  truths.write_<bool>([](std::span<bool> values) { values[0] = true, values[1] = false; });
  BOOST_TEST(truths.to_vector<bool>() == (std::vector<bool>{true, false}));
  zeros({0}, {.device = cpu}).write_<float>([](auto values) { BOOST_TEST(values.empty()); });
}

// Work that reads the old values is finished before the new ones are written.
BOOST_AUTO_TEST_CASE(the_host_writes_behind_queued_work) {
  constexpr int64_t n = 160;
  const Device cpu;
  Tensor x = ones({n, n}, {.device = cpu}), sum = x;
  for (int i = 0; i < 10; ++i) sum = matmul(sum, x) / static_cast<double>(n);
  x.write_<float>([](std::span<float> values) {
    for (auto& v : values) v = -1;
  });
  BOOST_TEST(sum.to_vector<float>().back() == 1.0f);
}

BOOST_AUTO_TEST_CASE(tensors_that_the_host_cannot_write) {
  const Device cpu;
  auto never = [](auto) { BOOST_ERROR("nothing can be written"); };
  Tensor x = zeros({2, 2}, {.device = cpu});
  require_error<DTypeError>([&] { x.write_<double>(never); }, "write_: the tensor holds f32");
  require_error<ValueError>([&] { x.t().write_<float>(never); }, "write_", "is not contiguous");
  require_error<ValueError>([&] { Tensor().write_<float>(never); }, "write_", "undefined");
  Tensor leaf = zeros({2}, {.device = cpu, .requires_grad = true});
  require_error<AutogradError>([&] { leaf.write_<float>(never); }, "write_", "NoGrad");
  require_error<std::runtime_error>(
      [&] { x.write_<float>([](auto) { throw std::runtime_error("mine"); }); }, "mine");
  const test::SimFolder sim;
  require_error<DeviceError>([&] { zeros({2}, {.device = "sim:0"}).write_<float>(never); },
                             "the tensor is on sim:0", ".to(\"cpu\")");
}

BOOST_AUTO_TEST_SUITE_END()
