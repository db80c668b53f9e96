// What the cuda plugin's operators promise beyond the table of conformance/cases: sums that stay
// accurate, results that are the same bits every time, awkward rows, values far from zero, and
// errors that name the index.
#include <tenon/core/graph/compile.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/reduction.h>

#include "cuda/compare.h"

using namespace tenon;
using namespace tenon::test;

BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// For sums of many numbers.
double loose(DType t) { return t == DType::f32 ? 2e-5 : 1e-11; }

// Runs f on both devices with the same inputs. Results agree, and so do the gradients of all
// floating inputs.
void require_agreement(const std::string& what, const Function& f,
                       const std::vector<Tensor>& inputs, double allowed) {
  std::vector<Tensor> here, there, leaves_here, leaves_there;
  for (auto& x : inputs) {
    here.push_back(x.detach());
    there.push_back(x.detach().to(kGpu));
    if (!is_floating_point(x.dtype())) continue;
    leaves_here.push_back(here.back().requires_grad_());
    leaves_there.push_back(there.back().requires_grad_());
  }
  Tensor y = f(here), z = f(there);
  require_same(z.detach(), y.detach(), what, allowed);
  if (!y.requires_grad()) return;
  Tensor g = sample(y.shape(), 0.9).to(y.dtype()), g_there = g.to(kGpu);
  auto expected = grad(std::span(&y, 1), leaves_here, std::span(&g, 1), {.allow_unused = true});
  auto found = grad(std::span(&z, 1), leaves_there, std::span(&g_there, 1), {.allow_unused = true});
  for (size_t i = 0; i < expected.size(); ++i) {
    BOOST_REQUIRE_MESSAGE(found[i].defined() == expected[i].defined(),
                          what << ": gradient " << i << " is there on one device only");
    if (expected[i].defined())
      require_same(found[i], expected[i], what + ", gradient " + std::to_string(i), allowed);
  }
}

}  // namespace

// ---- reductions

// A sum of numbers that f32 could not add up one by one, and a variance far from zero.
BOOST_AUTO_TEST_CASE(accuracy) {
  Tensor x = full({300000}, 0.1, {.dtype = f32});
  BOOST_TEST(sum(x.to(kGpu)).item() == 30000.00044703484, boost::test_tools::tolerance(1e-7));
  Tensor far = random_values({50000}, f64, false) + 1e6;
  require_same(var(far.to(kGpu)), var(far), "var far from 0", 1e-11);
  require_same(var(far.to(f32).to(kGpu)), var(far.to(f32)), "var of f32 far from 0", 1e-6);
}

BOOST_AUTO_TEST_CASE(same_bits_every_time) {
  Tensor x = random_values({70, 1000}, f32, false).to(kGpu);
  for (const Shape& dims : {Shape{}, Shape{0}, Shape{1}}) {
    auto first = sum(x, dims).to_vector<float>();
    for (int i = 0; i < 3; ++i) BOOST_TEST((sum(x, dims).to_vector<float>() == first));
  }
}

// ---- normalization and losses

BOOST_AUTO_TEST_CASE(softmax_of_awkward_values) {
  for (int64_t n : {5, 200, 3000, 20000})
    for (DType dtype : {f32, f64}) {
      Tensor ordinary = random_values({1, n}, dtype, false),
             x = cat({ordinary, ordinary, ordinary, ordinary, ordinary}, 0);
      x.narrow(0, 0, 1).narrow(1, n - 1, 1).fill_(kInfinity);
      x.narrow(0, 1, 1).fill_(-kInfinity);
      x.narrow(0, 2, 1).narrow(1, 0, 3).fill_(-kInfinity);
      x.narrow(0, 3, 1).narrow(1, 2, 1).fill_(std::nan(""));
      x.narrow(0, 4, 1).narrow(1, 1, 1).fill_(1e30);
      for (const Tensor& input : {x, x.t().contiguous()}) {
        const int64_t dim = input.size(1) == n ? 1 : 0;
        auto what = describe("softmax", dtype, input.shape(), "awkward");
        require_same(softmax(input.to(kGpu), dim), softmax(input, dim), what, loose(dtype));
        require_same(log_softmax(input.to(kGpu), dim), log_softmax(input, dim), what,
                     10 * loose(dtype));
      }
    }
}

BOOST_AUTO_TEST_CASE(labels_out_of_range) {
  for (int64_t bad : {int64_t{-1}, int64_t{4}, INT64_MAX, INT64_MIN}) {
    Tensor x = random_values({3, 4}, f32, false).to(kGpu), labels = ints({0, bad, 3}, {3}).to(kGpu);
    require_error<IndexError>([&] { cross_entropy(x, labels).wait(); },
                              "label " + std::to_string(bad) + " in row 1");
  }
  // The device goes on.
  Tensor x = random_values({3, 4}, f32, false), labels = ints({0, 2, 3}, {3});
  require_same(cross_entropy(x.to(kGpu), labels.to(kGpu)), cross_entropy(x, labels),
               "after a fault", 1e-6);
}

BOOST_AUTO_TEST_CASE(layer_norm_far_from_zero) {
  Tensor x = random_values({4, 500}, f32, false) + 1e4;
  require_same(layer_norm(x.to(kGpu), {500}), layer_norm(x, {500}), "layer_norm", 1e-3);
}

BOOST_AUTO_TEST_CASE(batch_norm_far_from_zero) {
  for (const Shape& shape : {Shape{4, 3, 10, 10}, Shape{400, 3}}) {
    Tensor x = random_values(shape, f64, false) + 1e6;
    auto f = [](auto& v) { return batch_norm(v[0], Tensor(), Tensor(), Tensor(), Tensor(), true); };
    require_agreement("batch_norm", f, {x}, 1e-8);
  }
}

namespace {

// Over all but the second dimension, from x's values in f64: the mean, and one over the deviation.
std::pair<std::vector<double>, std::vector<double>> statistics_of(const Tensor& x, double eps) {
  const auto channels = static_cast<size_t>(x.size(1)),
             n = static_cast<size_t>(x.numel()) / channels;
  const auto values = x.transpose(0, 1).contiguous().to(f64).to_vector<double>();
  std::vector<double> mean(channels), invstd(channels);
  for (size_t c = 0; c < channels; ++c) {
    long double sum = 0, squares = 0;
    for (size_t i = 0; i < n; ++i) sum += values[c * n + i];
    for (size_t i = 0; i < n; ++i)
      squares += (values[c * n + i] - sum / n) * (values[c * n + i] - sum / n);
    mean[c] = static_cast<double>(sum / n);
    invstd[c] = static_cast<double>(1 / std::sqrt(squares / n + static_cast<long double>(eps)));
  }
  return {mean, invstd};
}

}  // namespace

// A deviation of a ten-thousandth of the mean, in f32: sums of squares would leave nothing of it,
// and a mean kept in f32 only some.
BOOST_AUTO_TEST_CASE(batch_norm_of_f32_loses_nothing_to_a_large_mean) {
  for (const Shape& shape : {Shape{16, 3, 40, 40}, Shape{20000, 4}, Shape{1, 2, 300, 300}})
    for (double center : {1e4, -3e5, 0.25}) {
      const double deviation = std::abs(center) * 1e-4, eps = deviation * deviation * 1e-3;
      Tensor x = (randn(shape, {.dtype = f64}) * deviation + center).to(f32);
      Tensor mean = zeros({shape[1]}).to(kGpu), var = ones({shape[1]}).to(kGpu);
      // With a momentum of 1 the running statistics are the batch's.
      Tensor y = batch_norm(x.to(kGpu), mean, var, Tensor(), Tensor(), true, 1.0, eps);
      const auto [expected_mean, expected_invstd] = statistics_of(x, eps);
      const auto found_mean = mean.to(kCpu).to_vector<float>(),
                 found_var = var.to(kCpu).to_vector<float>();
      const double n = static_cast<double>(x.numel() / shape[1]);
      for (size_t c = 0; c < expected_mean.size(); ++c) {
        const double variance = (1 / (expected_invstd[c] * expected_invstd[c]) - eps) * n / (n - 1);
        BOOST_TEST(found_mean[c] == static_cast<float>(expected_mean[c]));
        BOOST_TEST(std::abs(found_var[c] / variance - 1) < 2e-6);
      }
      BOOST_TEST(std::abs(y.to(kCpu).to(f64).square().mean().item() - 1) < 2e-3);
    }
}

// ---- indexing

BOOST_AUTO_TEST_CASE(indices_out_of_range) {
  Tensor x = random_values({4, 3}, f32, false).to(kGpu);
  for (int64_t bad : {int64_t{-1}, int64_t{4}, INT64_MAX, INT64_MIN}) {
    auto name = "index " + std::to_string(bad) + " at position 1 is outside [0, 4)";
    Tensor index = ints({0, bad, 2}, {3}).to(kGpu);
    require_error<IndexError>([&] { embedding(index, x).wait(); }, "embedding: " + name);
    require_error<IndexError>([&] { index_select(x, 0, index).wait(); }, "index_select: " + name);
    require_error<IndexError>([&] { gather(x, 0, index.view({1, 3})).wait(); }, "gather: " + name);
  }
  require_same(index_select(x, 0, ints({3}, {1}).to(kGpu)),
               index_select(x.to(kCpu), 0, ints({3}, {1})), "after a fault");
}

// ---- fused programs, which are compiled: fused_test.cpp has those of a machine with NVRTC

BOOST_AUTO_TEST_CASE(without_a_compiler_members_run_one_by_one) {
  if (std::getenv("TENON_TEST_GPU")) return;
  auto compiled = compile([](const Tensor& x) { return exp(x) * 0.5 + x; });
  const Tensor x = random_values({40, 3}, f32, false);
  for (int i = 0; i < 4; ++i)
    require_same(compiled(x.to(kGpu)), exp(x) * 0.5 + x, "compiled without NVRTC", 1e-6);
  const std::string text = compiled.explain();
  for (const char* words : {"not fused: exp, mul, add, because", "is compiled when it is needed",
                            "NVRTC cannot be used; tried", "libnvrtc.so.13"})
    BOOST_TEST(text.find(words) != text.npos, words << " is not in " << text);
}
