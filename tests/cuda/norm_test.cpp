// Softmax, cross entropy, layer and batch normalisation of the cuda plugin against the cpu plugin.
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/normalization.h>

#include "cuda/agree.h"

using namespace tenon;
using namespace tenon::test;

BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

const std::vector<DType> kFloats = {f32, f64};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor random_labels(int64_t n, int64_t classes) {
  std::vector<int64_t> labels(static_cast<size_t>(n));
  for (auto& l : labels) l = pick(0, classes - 1);
  return ints(labels, {n});
}

void compare_softmax(const Tensor& x, int64_t dim) {
  auto what = describe("softmax", x.dtype(), x.shape(), "dim " + std::to_string(dim));
  require_agreement(
      what, [&](auto& v) { return softmax(v[0], dim); }, {x}, loose(x.dtype()));
  require_agreement(
      "log_" + what, [&](auto& v) { return log_softmax(v[0], dim); }, {x}, 10 * loose(x.dtype()));
}

}  // namespace

// ---- softmax

BOOST_AUTO_TEST_CASE(softmax_of_rows) {
  // Parts of a warp, a warp, blocks of growing size, and rows that registers do not hold.
  for (int64_t n :
       {1, 2, 5, 10, 32, 100, 128, 129, 500, 512, 513, 1000, 1024, 2047, 4096, 9000, 17000, 20001})
    for (DType dtype : kFloats)
      compare_softmax(random_values({n > 2000 ? 2 : 7, n}, dtype, false), 1);
  for (const Shape& shape : {Shape{0, 5}, Shape{5, 0}, Shape{3000, 10}, Shape{1, 1}})
    compare_softmax(random_values(shape, f32, false), 1);
  compare_softmax(scalar(2.0), 0);
}

BOOST_AUTO_TEST_CASE(softmax_of_other_dimensions) {
  for (const Shape& shape : {Shape{4, 5, 6}, Shape{1, 3, 1}, Shape{2, 300, 3}, Shape{3, 2, 70},
                             Shape{2, 40, 33}, Shape{1000, 2}})
    for (DType dtype : kFloats)
      for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
        compare_softmax(random_values(shape, dtype, false), d);
}

BOOST_AUTO_TEST_CASE(softmax_of_awkward_values) {
  for (int64_t n : {5, 200, 3000, 20000})
    for (DType dtype : kFloats) {
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

BOOST_AUTO_TEST_CASE(views_need_not_be_aligned) {
  for (int64_t n : {8, 600, 1024, 20000}) {
    Tensor x = random_values({3, n}, f32, false), w = random_values({n}, f32, false);
    require_same(softmax(misaligned(x.to(kGpu)), 1), softmax(x, 1), "softmax", loose(f32));
    require_same(layer_norm(misaligned(x.to(kGpu)), {n}, w.to(kGpu)), layer_norm(x, {n}, w),
                 "layer_norm", loose(f32));
    require_same(layer_norm(x.to(kGpu), {n}, misaligned(w.to(kGpu))), layer_norm(x, {n}, w),
                 "layer_norm", loose(f32));
    Tensor labels = random_labels(3, n);
    require_same(cross_entropy(misaligned(x.to(kGpu)), labels.to(kGpu)), cross_entropy(x, labels),
                 "cross_entropy", loose(f32));
  }
}

// ---- cross entropy

BOOST_AUTO_TEST_CASE(cross_entropy_with_all_options) {
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{1, 1},   {5, 2},    {7, 10}, {64, 12},
                                                          {3, 600}, {2, 3000}, {300, 5}};
  for (DType dtype : kFloats)
    for (auto [n, c] : sizes)
      for (Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none})
        for (double smoothing : {0.0, 0.1})
          for (bool weighted : {false, true})
            for (int64_t ignore : {int64_t{-100}, int64_t{1}}) {
              if (passed_over()) continue;
              Tensor x = random_values({n, c}, dtype, false), labels = random_labels(n, c);
              Tensor weight = (positive({c}) + 0.1).to(dtype);
              auto what = describe("cross_entropy", dtype, x.shape(), name_of(reduction)) +
                          (weighted ? ", weights" : "") + ", smoothing " +
                          std::to_string(smoothing) + ", ignore " + std::to_string(ignore);
              auto loss = [&](const std::vector<Tensor>& v) {
                Tensor w = weighted ? weight.to(v[0].device()) : Tensor();
                return cross_entropy(v[0], v[1], {w, reduction, ignore, smoothing});
              };
              require_agreement(what, loss, {x, labels}, loose(dtype));
            }
}

BOOST_AUTO_TEST_CASE(cross_entropy_of_many_rows_and_of_none) {
  Tensor x = random_values({20000, 3}, f32, false), labels = random_labels(20000, 3);
  for (Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none})
    require_agreement(
        "many rows", [&](auto& v) { return cross_entropy(v[0], v[1], {.reduction = reduction}); },
        {x, labels}, 2e-5);
  for (Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none})
    require_agreement(
        "no rows", [&](auto& v) { return cross_entropy(v[0], v[1], {.reduction = reduction}); },
        {zeros({0, 3}), random_labels(0, 3)}, 0);
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

// ---- layer norm

BOOST_AUTO_TEST_CASE(layer_norm_of_rows) {
  for (DType dtype : kFloats)
    for (int64_t n : {1, 3, 32, 100, 129, 512, 768, 1000, 4096, 20000, 17001}) {
      Tensor x = random_values({n > 2000 ? 3 : 9, n}, dtype, false),
             w = random_values({n}, dtype, false), b = random_values({n}, dtype, false);
      auto what = describe("layer_norm", dtype, x.shape());
      require_agreement(
          what, [&](auto& v) { return layer_norm(v[0], {n}, v[1], v[2]); }, {x, w, b},
          10 * loose(dtype));
      require_agreement(
          what + " without weight", [&](auto& v) { return layer_norm(v[0], {n}); }, {x},
          10 * loose(dtype));
    }
}

BOOST_AUTO_TEST_CASE(layer_norm_of_several_dimensions) {
  Tensor x = random_values({5, 2, 3, 4}, f64, false), w = random_values({3, 4}, f64, false);
  require_agreement(
      "layer_norm",
      [&](auto& v) {
        return layer_norm(v[0], {3, 4}, v[1], Tensor(), 0.1);
      },
      {x, w}, 1e-11);
  require_agreement(
      "one row",
      [&](auto& v) {
        return layer_norm(v[0], {5, 2, 3, 4});
      },
      {x}, 1e-11);
  require_agreement(
      "many rows", [&](auto& v) { return layer_norm(v[0], {6}, v[1], v[2]); },
      {random_values({5000, 6}, f32, false), random_values({6}, f32, false),
       random_values({6}, f32, false)},
      1e-3);
  for (const Shape& shape : {Shape{0, 4}, Shape{3, 4}})
    require_agreement(
        "few rows", [&](auto& v) { return layer_norm(v[0], {4}, v[1]); },
        {random_values(shape, f32, false), random_values({4}, f32, false)}, 1e-5);
}

BOOST_AUTO_TEST_CASE(layer_norm_far_from_zero) {
  Tensor x = random_values({4, 500}, f32, false) + 1e4;
  require_same(layer_norm(x.to(kGpu), {500}), layer_norm(x, {500}), "layer_norm", 1e-3);
}

// ---- batch norm

namespace {

void compare_batch_norm(const Shape& shape, DType dtype, bool training, bool affine, bool running) {
  const Shape channels{shape[1]};
  Tensor x = random_values(shape, dtype, false) * 2.0 + 3.0,
         w = random_values(channels, dtype, false), b = random_values(channels, dtype, false);
  Tensor mean = random_values(channels, dtype, false),
         var = abs(random_values(channels, dtype, false)) + 0.5;
  Both m = both(mean.clone()), v = both(var.clone());
  auto what = describe("batch_norm", dtype, shape, training ? "training" : "inference") +
              (affine ? ", weight and bias" : "") + (running ? ", running statistics" : "");
  auto f = [&](const std::vector<Tensor>& in) {
    const bool here = in[0].device() == kCpu;
    return batch_norm(in[0], running ? (here ? m.cpu : m.gpu) : Tensor(),
                      running ? (here ? v.cpu : v.gpu) : Tensor(), affine ? in[1] : Tensor(),
                      affine ? in[2] : Tensor(), training, 0.3, 1e-4);
  };
  require_agreement(what, f, {x, w, b}, 5 * loose(dtype));
  require_same(m.gpu, m.cpu, what + ": running mean", loose(dtype));
  require_same(v.gpu, v.cpu, what + ": running variance", loose(dtype));
}

}  // namespace

BOOST_AUTO_TEST_CASE(batch_norm_with_all_options) {
  const std::vector<Shape> shapes = {
      {2, 1},
      {7, 5},
      {64, 32},
      {4, 3, 5},
      {2, 6, 8, 8},
      {3, 2, 7, 7},
      {1, 4, 2, 2, 3},
      {2, 2, 70, 80},
      // More than one part of a plane, and more rows than are under way at a time.
      {1, 2, 99, 100},
      {9000, 3},
      {2, 5000}};
  for (DType dtype : kFloats)
    for (auto& shape : shapes)
      for (bool affine : {false, true}) {
        compare_batch_norm(shape, dtype, true, affine, true);
        compare_batch_norm(shape, dtype, true, affine, false);
        compare_batch_norm(shape, dtype, false, affine, true);
      }
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

BOOST_AUTO_TEST_CASE(batch_norm_of_nothing) {
  Both m = both(zeros({3})), v = both(ones({3}));
  auto f = [&](auto& in) {
    const bool here = in[0].device() == kCpu;
    return batch_norm(in[0], here ? m.cpu : m.gpu, here ? v.cpu : v.gpu, in[1], Tensor(), false);
  };
  require_agreement("batch_norm", f, {zeros({0, 3, 4}), ones({3})}, 0);
}
