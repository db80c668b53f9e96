// The cuda plugin's copies, fills and optimizer steps beside the cpu's.
#include <tenon/core/ops/optimizer.h>

#include "cuda/compare.h"

using namespace tenon;
using namespace tenon::test;
BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

const std::vector<DType> kAll = {f32, f64, f16, bf16, i64, i32, u8, boolean};
const std::vector<Shape> kShapes = {{},
                                    {1},
                                    {9},
                                    {0, 3},
                                    {3, 700},
                                    {2, 33, 65},
                                    {64, 96},
                                    {70, 131},
                                    {2, 3, 40, 48},
                                    {2, 17, 3, 19},
                                    {2, 2, 2, 2, 2, 2, 2, 3}};

}  // namespace

BOOST_AUTO_TEST_CASE(every_type_to_every_type) {
  for (DType from : kAll)
    for (DType to : kAll) {
      Tensor values = random_values({6, 50}, f64);
      if (is_floating_point(from) && is_floating_point(to)) values = values * 40;
      Both x = both(values.to(from));
      std::string what = describe("copy", from, {6, 50}, "to " + std::string(name_of(to)));
      require_same(x.gpu.to(to), x.cpu.to(to), what, 0);
      require_same(x.gpu.t().to(to), x.cpu.t().to(to), what + ", transposed", 0);
    }
}

BOOST_AUTO_TEST_CASE(numbers_that_do_not_fit) {
  Tensor x = doubles({1e300, -1e300, 9.3e18, -9.3e18, 2147483648.0, -2147483649.0, 300.7, -1.5,
                      4294967297.0, 65520, 1e-8, 6.1e-5, 0.99},
                     {13});
  for (DType from : {f64, f32})
    for (DType to : kAll) {
      Both values = both(x.to(from));
      require_same(values.gpu.to(to), values.cpu.to(to),
                   describe("copy", from, x.shape(), "to " + std::string(name_of(to))), 0);
    }
}

BOOST_AUTO_TEST_CASE(every_way_of_lying_in_memory) {
  for (DType dtype : {f32, f64, f16, u8})
    for (auto& shape : kShapes)
      for (auto& from : layouts())
        for (auto& to : layouts(false)) {
          if (passed_over()) continue;
          Both x = random_both(shape, dtype, from),
               y = random_both(to.whole(shape), dtype, layouts()[0]);
          std::string what =
              describe("copy", dtype, shape, std::string(from.name) + " to " + to.name);
          to.view(y.gpu, shape).copy_(x.gpu);
          to.view(y.cpu, shape).copy_(x.cpu);
          require_same(y.gpu, y.cpu, what, 0);  // all of it: nothing beside the view was touched
        }
}

// Without access to its peer, a device gets a copy through the host.
BOOST_AUTO_TEST_CASE(devices_without_access_to_each_other) {
  if (std::getenv("TENON_TEST_GPU")) return;
  setenv("TENON_EMULATED_PEERS", "711", 1);  // cudaErrorTooManyPeers
  const Tensor x = random_values({300}, f32, false).to("cuda:1");
  require_same(x.to(kGpu), x.to("cpu"), "a copy from cuda:1", 0);
  unsetenv("TENON_EMULATED_PEERS");
}

BOOST_AUTO_TEST_CASE(casts_between_any_strides) {
  for (auto& shape : kShapes)
    for (auto& from : layouts())
      for (auto& to : layouts(false)) {
        if (passed_over()) continue;
        Both x = random_both(shape, f32, from),
             y = random_both(to.whole(shape), bf16, layouts()[0]);
        to.view(y.gpu, shape).copy_(x.gpu);
        to.view(y.cpu, shape).copy_(x.cpu);
        require_same(y.gpu, y.cpu,
                     describe("copy", f32, shape, std::string(from.name) + " to " + to.name), 0);
      }
}

BOOST_AUTO_TEST_CASE(permutations) {
  for (DType dtype : {f32, f64, bf16, u8}) {
    Both x = random_both({3, 20, 5, 33}, dtype, layouts()[0]);
    for (auto& order : std::vector<Shape>{
             {0, 2, 3, 1}, {0, 3, 1, 2}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 0, 2, 3}, {1, 3, 0, 2}})
      require_same(permute(x.gpu, order).contiguous(), permute(x.cpu, order).contiguous(),
                   describe("permute", dtype, order), 0);
  }
}

BOOST_AUTO_TEST_CASE(fills) {
  for (DType dtype : kAll)
    for (auto& shape : kShapes)
      for (auto& lie : layouts(false))
        for (double value : {0.0, 1.0, 3.7}) {
          if (passed_over()) continue;
          Both y = random_both(lie.whole(shape), dtype, layouts()[0]);
          lie.view(y.gpu, shape).fill_(value);
          lie.view(y.cpu, shape).fill_(value);
          require_same(y.gpu, y.cpu, describe("fill", dtype, shape, lie.name), 0);
        }
}

// ---- optimizers

namespace {

struct Lists {
  std::vector<Tensor> cpu, gpu;
  void add(const Both& x) {
    cpu.push_back(x.cpu);
    gpu.push_back(x.gpu);
  }
};
// Tensors of these sizes, some of them at odd addresses; all lists of an optimizer have the same.
Lists random_lists(const std::vector<int64_t>& sizes, DType dtype, bool positive) {
  Lists lists;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Tensor whole = random_values({sizes[i] + 1}, dtype, false);
    if (positive) whole = abs(whole);
    Both x = both(whole);
    int64_t start = i % 3 == 1 ? 1 : 0;
    lists.add({x.cpu.narrow(0, start, sizes[i]), x.gpu.narrow(0, start, sizes[i])});
  }
  return lists;
}
void require_same(const Lists& lists, const std::string& what, double allowed) {
  for (size_t i = 0; i < lists.cpu.size(); ++i)
    tenon::test::require_same(lists.gpu[i], lists.cpu[i], what + ", tensor " + std::to_string(i),
                              allowed);
}
std::vector<int64_t> sizes_of(size_t count) {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < count; ++i) sizes.push_back(i % 5 == 4 ? 0 : i == 0 ? 9001 : pick(1, 70));
  return sizes;
}

}  // namespace

// One table, the large table, and more tensors than that holds.
BOOST_AUTO_TEST_CASE(optimizer_steps_over_many_tensors) {
  for (size_t count : {size_t{1}, size_t{7}, size_t{90}, size_t{1300}})
    for (DType dtype : {f32, f64}) {
      if (device_is_slow() && count > 100 && dtype == f64) continue;
      double allowed = dtype == f32 ? 3e-6 : 1e-13;
      auto sizes = sizes_of(count);
      auto list = [&](bool positive = false) { return random_lists(sizes, dtype, positive); };
      Lists p = list(), g = list(), m = list(), v = list(true), vmax = list(true), buffers = list();
      SgdArgs plain{.lr = 0.1, .weight_decay = 0.01, .maximize = true};
      sgd_step(p.gpu, g.gpu, {}, plain);
      sgd_step(p.cpu, g.cpu, {}, plain);
      require_same(p, "sgd_step", allowed);
      for (bool nesterov : {false, true}) {
        SgdArgs args{.lr = 0.1,
                     .momentum = 0.9,
                     .dampening = nesterov ? 0 : 0.2,
                     .nesterov = nesterov,
                     .first = !nesterov};
        sgd_step(p.gpu, g.gpu, buffers.gpu, args);
        sgd_step(p.cpu, g.cpu, buffers.cpu, args);
        require_same(p, "sgd_step with momentum", allowed);
        require_same(buffers, "momentum of sgd_step", allowed);
      }
      for (bool amsgrad : {false, true}) {
        AdamArgs args{
            .lr = 0.01, .weight_decay = 0.1, .amsgrad = amsgrad, .decoupled = amsgrad, .step = 3};
        std::vector<Tensor> none;
        adam_step(p.gpu, g.gpu, m.gpu, v.gpu, amsgrad ? vmax.gpu : none, args);
        adam_step(p.cpu, g.cpu, m.cpu, v.cpu, amsgrad ? vmax.cpu : none, args);
        require_same(p, "adam_step", allowed);
        require_same(m, "first moment of adam_step", allowed);
        require_same(v, "second moment of adam_step", allowed);
        if (amsgrad) require_same(vmax, "maximum of adam_step", allowed);
      }
    }
}
