// Convolutions of the cuda plugin against those of the cpu plugin. Without cuDNN, as on the device
// that runs on the CPU, they are the plugin's own kernels; with TENON_TEST_GPU=1 they are cuDNN's.
#include <tenon/core/ops/convolution.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/shape.h>

#include "cuda/emulated.h"
#include "ops/check.h"

using namespace tenon;
using namespace tenon::test;

BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

struct Case {
  Shape x, weight;
  Conv2dOptions options;
};

const std::vector<Case> cases = {
    {{2, 3, 7, 6}, {4, 3, 3, 3}, {}},
    {{2, 3, 7, 6}, {4, 3, 3, 2}, {.stride = {2, 1}, .padding = {1, 2}}},
    {{1, 4, 9, 9}, {6, 2, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}, .groups = 2}},
    {{3, 4, 5, 5}, {4, 1, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 4}},
    {{2, 5, 4, 3}, {3, 5, 1, 1}, {}},
    {{1, 1, 3, 3}, {1, 1, 3, 3}, {}}};

// The result and the three gradients, in f64 on the CPU.
std::vector<Tensor> all_of(const Device& device, DType dtype, const std::vector<Tensor>& samples,
                           const Conv2dOptions& options) {
  std::vector<Tensor> in;
  for (auto& s : samples) {
    in.push_back(s.to(device));
    in.back().requires_grad_();
  }
  Tensor y = conv2d(in[0], in[1], in[2], options);
  BOOST_TEST_REQUIRE((y.dtype() == dtype));
  std::vector<Tensor> results = {y};
  Tensor seed = sample(y.shape(), 0.7).to(samples[0].dtype()).to(device);
  for (auto& g : grad(std::span(&y, 1), in, std::span(&seed, 1))) results.push_back(g);
  for (auto& t : results) t = t.detach().to("cpu").to(f64);
  return results;
}

// Of values that the dtype holds, computed in f64 on the CPU.
void compare(const Case& c, DType dtype, double tolerance) {
  std::vector<Tensor> there, here;
  for (auto& s : {sample(c.x), sample(c.weight, 1), sample({c.weight[0]}, 2)}) {
    there.push_back(s.to(dtype));
    here.push_back(s.to(dtype).to(f64));
  }
  auto found = all_of("cuda:0", dtype, there, c.options),
       expected = all_of("cpu", f64, here, c.options);
  const char* names[] = {"result", "input gradient", "weight gradient", "bias gradient"};
  for (size_t i = 0; i < found.size(); ++i)
    require_close(found[i].to_vector<double>(), expected[i].to_vector<double>(), tolerance,
                  tolerance,
                  c.x.str() + " by " + c.weight.str() + " in " + std::string(name_of(dtype)) +
                      ": " + names[i]);
}

}  // namespace

BOOST_AUTO_TEST_CASE(results_and_gradients) {
  for (auto& c : cases) {
    compare(c, f32, 1e-4);
    compare(c, f64, 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(half_precision) {
  for (auto& c : cases)
    for (DType dtype : {f16, bf16}) {
      Tensor x = sample(c.x).to(dtype), w = sample(c.weight, 1).to(dtype),
             b = sample({c.weight[0]}, 2).to(dtype);
      Tensor found = conv2d(x.to("cuda:0"), w.to("cuda:0"), b.to("cuda:0"), c.options);
      BOOST_TEST_REQUIRE((found.dtype() == dtype));
      Tensor expected = conv2d(x.to(f64), w.to(f64), b.to(f64), c.options);
      const double tolerance = dtype == f16 ? 4e-3 : 4e-2;
      require_close(found.to("cpu").to(f64).to_vector<double>(), expected.to_vector<double>(),
                    tolerance, tolerance, c.x.str());
    }
}

BOOST_AUTO_TEST_CASE(views) {
  Tensor flat = sample({1000}).to(f32).to("cuda:0"),
         w = sample({4, 3, 3, 3}, 1).to(f32).to("cuda:0");
  for (int64_t start : {0, 1, 2, 3, 4}) {
    Tensor x = flat.narrow(0, start, 2 * 3 * 5 * 5).reshape({2, 3, 5, 5});
    require_equal(conv2d(x, w).to("cpu"), conv2d(x.to("cpu"), w.to("cpu")), 1e-4);
    require_equal(conv2d(x.transpose(2, 3), w).to("cpu"),
                  conv2d(x.to("cpu").transpose(2, 3).contiguous(), w.to("cpu")), 1e-4);
  }
}

BOOST_AUTO_TEST_CASE(nothing_to_sum) {
  for (auto& device : {Device("cuda:0"), Device("cpu")}) {
    Tensor x = zeros({0, 2, 4, 4}, {.device = device}), w = ones({3, 2, 3, 3}, {.device = device}),
           b = ones({3}, {.device = device});
    for (auto* t : {&x, &w, &b}) t->requires_grad_();
    Tensor y = conv2d(x, w, b);
    BOOST_TEST(y.shape().str() == "(0, 3, 2, 2)");
    sum(y).backward();
    require_equal(w.grad().to("cpu"), zeros({3, 2, 3, 3}));
  }
  Tensor x = zeros({2, 0, 4, 4}, {.device = "cuda:0"}),
         w = zeros({3, 0, 3, 3}, {.device = "cuda:0"});
  require_equal(conv2d(x, w).to("cpu"), zeros({2, 3, 2, 2}));
  Tensor b = sample({3}).to(f32);
  require_equal(conv2d(x, w, b.to("cuda:0")).to("cpu"),
                b.reshape({1, 3, 1, 1}).expand({2, 3, 2, 2}).contiguous());
}
