#include <array>

#include <tenon/core/ops/convolution.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/shape.h>
#include <tenon/plugins/host/registry.h>

#include "ops/check.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(linalg)

using namespace tenon;
using namespace tenon::test;

namespace {

// Whether an overlay makes plans for the CPU.
bool overlaid() { return !plugins::registry().overlays("cpu").empty(); }

// The definition: sum over k of a[…, i, k] b[…, k, j], by broadcasting.
Tensor by_definition(const Tensor& a, const Tensor& b) {
  return sum(a.unsqueeze(-1) * b.unsqueeze(-3), {-2});
}

// The same matrix with its rows contiguous, its columns, or neither, and with gaps.
std::vector<Tensor> laid_out(const Tensor& x) {
  const int64_t rows = x.size(0), columns = x.size(1);
  Tensor gaps = zeros({rows, 2, columns, 3}, {.dtype = x.dtype()});
  Tensor inner = gaps.select(1, 1).select(2, 1);
  inner.copy_(x);
  return {x, x.t().contiguous().t(), inner};
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_rank_and_broadcast) {
  struct Case {
    Shape a, b;
  };
  for (auto& [a, b] : std::initializer_list<Case>{{{2, 3}, {3, 4}},
                                                  {{5, 2, 3}, {3, 4}},
                                                  {{5, 2, 3}, {5, 3, 4}},
                                                  {{2, 3}, {5, 3, 4}},
                                                  {{2, 1, 2, 3}, {5, 3, 1}},
                                                  {{1, 3}, {3, 1}},
                                                  {{2, 5, 1, 3}, {2, 1, 3, 4}}}) {
    Tensor x = sample(a), y = sample(b, 1.3);
    require_equal(matmul(x, y), by_definition(x, y), 1e-12);
    require_equal(matmul(x.to(f32), y.to(f32)).to(f64), by_definition(x, y), 1e-5);
    check_gradients([](auto& v) { return matmul(v[0], v[1]); }, {x, y}, a.str() + b.str());
  }
}

BOOST_AUTO_TEST_CASE(vectors) {
  Tensor u = sample({3}), v = sample({3}, 2), m = sample({3, 4}, 1), batch = sample({2, 4, 3}, 0.1);
  require_equal(matmul(u, v), sum(u * v), 1e-12);
  require_equal(matmul(u, m), by_definition(u.unsqueeze(0), m).select(0, 0), 1e-12);
  require_equal(matmul(m.t(), v), by_definition(m.t(), v.unsqueeze(1)).select(1, 0), 1e-12);
  require_equal(matmul(batch, v), by_definition(batch, v.unsqueeze(1)).select(2, 0), 1e-12);
  require_equal(matmul(u, batch.transpose(1, 2)),
                by_definition(u.unsqueeze(0), batch.transpose(1, 2)).select(1, 0), 1e-12);
  check_gradients([](auto& w) { return matmul(w[0], w[1]) * matmul(w[2], w[1]); }, {u, v, batch},
                  "vectors");
}

BOOST_AUTO_TEST_CASE(transposed_and_strided_operands) {
  Tensor a = sample({6, 4}), b = sample({6, 8}, 2);
  require_equal(matmul(a.t(), b), by_definition(a.t().contiguous(), b), 1e-12);
  require_equal(matmul(b.t(), a), by_definition(b.t().contiguous(), a), 1e-12);
  require_equal(matmul(b.slice(1, 0, 8, 2), a.t()), by_definition(b.slice(1, 0, 8, 2), a.t()),
                1e-12);
  require_equal(matmul(a.narrow(0, 1, 3), b.t().narrow(0, 2, 4)),
                by_definition(a.narrow(0, 1, 3), b.t().narrow(0, 2, 4)), 1e-12);
  Tensor e = sample({1, 4}).expand({5, 4});
  require_equal(matmul(e, a.t()), by_definition(e, a.t()), 1e-12);
  require_equal(matmul(a, e.t()), by_definition(a, e.t()), 1e-12);
}

BOOST_AUTO_TEST_CASE(empty_operands) {
  require_values(matmul(zeros({2, 0}), zeros({0, 3})), {2, 3}, {0, 0, 0, 0, 0, 0});
  require_values(matmul(zeros({0, 2}), zeros({2, 3})), {0, 3}, {});
  require_values(matmul(zeros({0, 2, 2}), zeros({2, 3})), {0, 2, 3}, {});
  require_values(linear(zeros({4, 0}), zeros({2, 0}), ones({2})), {4, 2}, {1, 1, 1, 1, 1, 1, 1, 1});
  require_values(linear(zeros({0, 3}), zeros({2, 3})), {0, 2}, {});
}

BOOST_AUTO_TEST_CASE(linear_for_any_rank) {
  Tensor w = sample({4, 3}), b = sample({4}, 1);
  for (Shape shape : {Shape{3}, Shape{2, 3}, Shape{2, 1, 3}, Shape{2, 2, 2, 3}}) {
    Tensor x = sample(shape, 0.9);
    require_equal(linear(x, w, b), matmul(x, w.t()) + b, 1e-12);
    check_gradients([](auto& v) { return linear(v[0], v[1], v[2]); }, {x, w, b},
                    "linear " + shape.str());
    check_gradients([](auto& v) { return linear(v[0], v[1]); }, {x, w},
                    "linear without bias " + shape.str());
  }
}

BOOST_AUTO_TEST_CASE(products_of_any_size_and_layout) {
  for (auto [m, n, k] : std::initializer_list<std::array<int64_t, 3>>{{1, 1, 1},
                                                                      {1, 37, 9},
                                                                      {41, 1, 30},
                                                                      {1, 1, 700},
                                                                      {5, 4, 300},
                                                                      {3, 40, 200},
                                                                      {60, 2, 33},
                                                                      {13, 50, 7},
                                                                      {49, 25, 13},
                                                                      {30, 100, 1},
                                                                      {2, 65, 1},
                                                                      {47, 61, 2},
                                                                      {33, 40, 3},
                                                                      {70, 131, 4},
                                                                      {64, 53, 70},
                                                                      {9, 9, 620}}) {
    const Tensor x = sample({m, k}), y = sample({k, n}, 1.1), bias = sample({n}, 2.2);
    const Tensor expected = by_definition(x, y);
    for (const Tensor& a : laid_out(x))
      for (const Tensor& b : laid_out(y)) {
        require_equal(matmul(a, b), expected, 1e-11);
        require_equal(linear(a, b.t(), bias), expected + bias, 1e-11);
        require_equal(matmul(a.to(f32), b.to(f32)).to(f64), expected, 1e-3);
      }
    const Tensor row = x.narrow(0, 0, 1).expand({m, k}), column = y.narrow(1, 0, 1).expand({k, n});
    require_equal(matmul(row, column), by_definition(row, column), 1e-11);
    const Tensor one = sample({1, 1}).expand({m, k});
    require_equal(matmul(one, y), by_definition(one, y), 1e-11);
  }
  require_equal(matmul(zeros({3, 0}), zeros({0, 4})), zeros({3, 4}));
  require_equal(linear(zeros({2, 0}), zeros({3, 0}), ones({3})), ones({2, 3}));
}

// An entry of a batch is the work of one thread, a product of its own that of all.
BOOST_AUTO_TEST_CASE(a_product_has_the_same_bits_on_any_number_of_threads) {
  // The kernels of cpu are meant; with the overlay, the test runs with TENON_DISABLE=onednn.
  if (default_device().type() != "cpu" || overlaid()) return;
  for (DType dtype : {f32, f64}) {
    if (kSanitized && dtype == f64) continue;
    for (auto [m, n, k] : std::initializer_list<std::array<int64_t, 3>>{{101, 131, 97},
                                                                        {250, 300, 270},
                                                                        {257, 511, 300},
                                                                        {1030, 50, 70},
                                                                        {700, 901, 3},
                                                                        {40, 2100, 33},
                                                                        {7, 3000, 310},
                                                                        {2990, 9, 310},
                                                                        {1, 3001, 513},
                                                                        {2999, 1, 515}}) {
      const Tensor x = sample({m, k}).to(dtype), y = sample({k, n}, 1.1).to(dtype);
      for (const Tensor& a : {x, x.t().contiguous().t()})
        for (const Tensor& b : {y, y.t().contiguous().t()}) {
          const Tensor batch = matmul(a.expand({9, m, k}), b.expand({9, k, n}));
          require_equal(matmul(a, b), batch.select(0, 8));
        }
    }
  }
}

BOOST_AUTO_TEST_CASE(linear_and_relu_in_one_call) {
  Tensor x = sample({5, 3}), w = sample({4, 3}, 1), b = sample({4}, 2);
  require_equal(linear_relu(x, w, b), relu(linear(x, w, b)));
  require_equal(linear_relu(x, w), relu(linear(x, w)));
  require_equal(linear_relu(x.reshape({5, 1, 3}), w, b), relu(linear(x.reshape({5, 1, 3}), w, b)));
  check_gradients([](auto& v) { return linear_relu(v[0], v[1], v[2]); }, {x, w, b}, "linear_relu");
  require_error<DTypeError>([&] { linear_relu(x, w.to(f32)); },
                            "linear_relu: x is f64, weight f32");
}

BOOST_AUTO_TEST_CASE(precision_is_two_words) {
  BOOST_TEST(float32_matmul_precision() == "highest");
  require_error<ValueError>([] { set_float32_matmul_precision("medium"); },
                            "\"highest\" or \"high\", found \"medium\"");
  Tensor a = sample({3, 4}).to(f32), b = sample({4, 2}, 1).to(f32);
  Tensor exact = matmul(a, b);
  set_float32_matmul_precision("high");
  BOOST_TEST(float32_matmul_precision() == "high");
  // Where there is no TF32, as on the CPU: the same numbers, forward and backward.
  const double tolerance = default_device().type() == "cuda" ? 2e-3 : 0;
  require_equal(matmul(a, b), exact, tolerance);
  a.requires_grad_();
  sum(matmul(a, b)).backward();
  set_float32_matmul_precision("highest");
  require_equal(a.grad(), matmul(ones({3, 2}), b.t()), tolerance);
}

// The core lets every floating type through; who does not compute in it says so.
// Sums of halves are kept in f32, by whatever plugin.
BOOST_AUTO_TEST_CASE(half_precision_is_rounded_once) {
  for (DType t : {f16, bf16}) {
    // In steps of the half type, the sum would stop growing at 2048 or 256.
    Tensor a = ones({2, 3000}).to(t), w = ones({4, 3000}).to(t);
    const auto expected = full({2, 4}, 3000).to(t).to_vector<float>();
    for (auto& y : {matmul(a, w.t()), linear(a, w)}) {
      BOOST_TEST((y.dtype() == t));
      BOOST_TEST((y.to(f32).to_vector<float>() == expected));
    }
  }
}

// With 63 elements a row, oneDNN 2.6 ends the process on CPUs with AMX.
BOOST_AUTO_TEST_CASE(half_precision_of_any_depth) {
  for (int64_t k = 1; k <= 66; ++k)
    for (const Shape& shape : {Shape{65, k}, Shape{2, 1, k}}) {
      const Tensor y = linear(ones(shape, {.dtype = bf16}), ones({11, k}, {.dtype = bf16}));
      BOOST_TEST(y.to(f32).sub(static_cast<double>(k)).abs().max().item() == 0, k);
    }
}

// As in PyTorch, in the dtype of the operands, in which sums wrap around.
BOOST_AUTO_TEST_CASE(products_of_whole_numbers) {
  const Tensor a = ints({1, 2, 3, 4, 5, 6}, {2, 3}), b = ints({1, 0, 2, -1, 3, 1}, {3, 2});
  for (DType type : {i64, i32}) {
    const Tensor y = matmul(a.to(type), b.to(type));
    BOOST_TEST((y.dtype() == type));
    require_values(y, {2, 2}, {14, 1, 32, 1});
    require_values(mv(a.to(type), ints({1, 2, 3}, {3}).to(type)), {2}, {14, 32});
    const Tensor more = addmm(ints({1, 2}, {2}).to(type), a.to(type), b.to(type), 3, 2);
    BOOST_TEST((more.dtype() == type));
    require_values(more, {2, 2}, {31, 8, 67, 8});
  }
  const Tensor bytes = matmul(full({1, 2}, 200, {.dtype = u8}), full({2, 1}, 3, {.dtype = u8}));
  BOOST_TEST((bytes.dtype() == u8));
  require_values(bytes, {1, 1}, {1200 % 256});
  BOOST_TEST((matmul(a, b.to(f32)).dtype() == f32));
  // More products than are made at once.
  const Tensor wide = full({1025, 5000}, 2, {.dtype = i32}),
               tall = full({5000, 1025}, 3, {.dtype = i32});
  const Tensor parts = matmul(wide, tall.narrow(1, 0, 3));
  BOOST_TEST(parts.min().item<int64_t>() == 30000);
  BOOST_TEST(parts.max().item<int64_t>() == 30000);
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Tensor a = zeros({2, 3}), b = zeros({4, 5});
  require_error<ShapeError>([&] { matmul(a, b); },
                            "matmul: cannot multiply (2, 3) by (4, 5): the last dimension of the "
                            "first (3) must equal the second-to-last of the "
                            "second (4)");
  require_error<ShapeError>([&] { matmul(a, zeros({2})); },
                            "must equal the only one of the second (2)");
  require_error<ShapeError>([&] { matmul(scalar(1), a); }, "without dimensions");
  require_error<ShapeError>([&] { matmul(zeros({2, 2, 3}), zeros({3, 3, 2})); }, "matmul");
  require_error<ShapeError>([&] { mm(zeros({2, 2, 3}), zeros({3, 3})); }, "mm: cannot multiply");
  require_error<ShapeError>([&] { bmm(zeros({2, 2, 3}), zeros({1, 3, 3})); }, "matmul broadcasts");
  require_error<DTypeError>(
      [&] {
        matmul(bools({1}, {1, 1}), bools({1}, {1, 1}));
      },
      "matmul: a has dtype bool");
  require_error<ShapeError>([&] { linear(a, zeros({4, 5})); }, "a weight of shape (4, 5)");
  require_error<ShapeError>(
      [&] {
        linear(zeros({1, 2, 3}), zeros({4, 5}));
      },
      "an input of shape (1, 2, 3)");
  require_error<ShapeError>(
      [&] {
        linear(a, zeros({4, 3}), zeros({3}));
      },
      "bias has shape (3,), but must be (4,)");
  require_error<DTypeError>(
      [&] {
        linear(a, zeros({4, 3}, {.dtype = f64}));
      },
      "x is f32, weight f64, but all must have one dtype; convert x with .to(tenon::f64)");
  require_error<DTypeError>([&] { matmul(bools({1}, {1}), bools({1}, {1})); },
                            "must be a floating type; convert it with .to(tenon::f32)");
  require_error<ShapeError>([&] { bmm(a, a); }, "both must have three dimensions");
  require_error<ShapeError>(
      [&] {
        bmm(zeros({2, 3, 4}), zeros({3, 4, 5}));
      },
      "both must have the same first dimension");
  require_error<ShapeError>(
      [&] {
        bmm(zeros({2, 3, 4}), zeros({2, 5, 6}));
      },
      "bmm: cannot multiply (2, 3, 4) by (2, 5, 6): the last dimension");
  require_error<ShapeError>([&] { mm(zeros({2, 3, 4}), a); }, "both must be matrices");
}

BOOST_AUTO_TEST_CASE(single_variables_and_numbers) {
  const Tensor row = doubles({1, 2, 3}, {1, 3});
  require_values(cov(row), {}, {1});
  require_values(corrcoef(row), {}, {1});
  const Tensor a = doubles({3}, {}), b = doubles({-2}, {});
  require_values(cosine_similarity(a, b, 0), {}, {-1});
}

BOOST_AUTO_TEST_SUITE_END()
