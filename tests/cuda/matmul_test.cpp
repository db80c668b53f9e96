// Matrix products of the cuda plugin against those of the cpu plugin, over everything that decides
// how cuBLASLt is called.
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/shape.h>

#include "cuda/emulated.h"
#include "ops/check.h"

using namespace tenon;
using namespace tenon::test;

BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

const Device cuda = "cuda:0";

double tolerance_of(DType t) { return t == f64 ? 1e-12 : t == f32 ? 2e-5 : t == f16 ? 4e-3 : 3e-2; }

using Views = std::function<Tensor(const Tensor&)>;

// f(a, b) with a and b made by views of samples, on the device and in f64 on the CPU from the same
// rounded values.
void compare(const std::string& what, DType dtype,
             const std::function<Tensor(const std::vector<Tensor>&)>& f,
             const std::vector<Tensor>& samples) {
  std::vector<Tensor> there, here;
  for (auto& s : samples) {
    there.push_back(s.to(dtype).to(cuda));
    here.push_back(s.to(dtype).to(f64));
  }
  Tensor found = f(there), expected = f(here);
  BOOST_TEST_REQUIRE(found.device().str() == "cuda:0");
  BOOST_TEST_REQUIRE((found.dtype() == dtype));
  BOOST_REQUIRE_EQUAL(found.shape().str(), expected.shape().str());
  const double tolerance = tolerance_of(dtype);
  require_close(found.to("cpu").to(f64).to_vector<double>(), expected.to_vector<double>(),
                tolerance, tolerance, what + " in " + std::string(name_of(dtype)));
}

void compare_all(const std::string& what,
                 const std::function<Tensor(const std::vector<Tensor>&)>& f,
                 const std::vector<Tensor>& samples) {
  for (DType dtype : {f32, f64, f16, bf16}) compare(what, dtype, f, samples);
}

Tensor multiply(const std::vector<Tensor>& v) { return matmul(v[0], v[1]); }

}  // namespace

BOOST_AUTO_TEST_CASE(every_pair_of_layouts) {
  // A (5, 7) or (7, 3) matrix: as it is, transposed, within a wider one either way, every row or
  // column apart.
  struct Way {
    const char* name;
    std::function<Tensor(int64_t, int64_t, double)> sample_of;
    Views view;
  };
  const std::vector<Way> ways = {
      {"rows",
       [](int64_t r, int64_t c, double p) {
         return sample({r, c}, p);
       },
       [](auto& t) { return t; }},
      {"columns",
       [](int64_t r, int64_t c, double p) {
         return sample({c, r}, p);
       },
       [](auto& t) { return t.t(); }},
      {"part of rows",
       [](int64_t r, int64_t c, double p) {
         return sample({r + 2, c + 4}, p);
       },
       [](auto& t) { return t.narrow(0, 1, t.size(0) - 2).narrow(1, 3, t.size(1) - 4); }},
      {"part of columns",
       [](int64_t r, int64_t c, double p) {
         return sample({c + 1, r + 5}, p);
       },
       [](auto& t) { return t.narrow(0, 1, t.size(0) - 1).narrow(1, 2, t.size(1) - 5).t(); }},
      {"every second",
       [](int64_t r, int64_t c, double p) {
         return sample({r, 2 * c}, p);
       },
       [](auto& t) { return t.slice(1, 0, t.size(1), 2); }}};
  for (auto& a : ways)
    for (auto& b : ways)
      compare_all(std::string(a.name) + " by " + b.name,
                  [&](auto& v) { return matmul(a.view(v[0]), b.view(v[1])); },
                  {a.sample_of(5, 7, 0.2), b.sample_of(7, 3, 0.9)});
}

BOOST_AUTO_TEST_CASE(vectors_and_sizes_of_one) {
  for (auto [m, k, n] : std::initializer_list<std::array<int64_t, 3>>{{1, 1, 1},
                                                                      {1, 9, 1},
                                                                      {6, 1, 4},
                                                                      {1, 8, 5},
                                                                      {5, 8, 1},
                                                                      {1, 1, 7},
                                                                      {7, 1, 1},
                                                                      {64, 33, 17}}) {
    const std::string what = std::to_string(m) + " " + std::to_string(k) + " " + std::to_string(n);
    compare_all(what, multiply, {sample({m, k}, 0.1), sample({k, n}, 1)});
    compare_all(what + " transposed", [](auto& v) { return matmul(v[0].t(), v[1].t()); },
                {sample({k, m}, 0.1), sample({n, k}, 1)});
    // A column and a row of larger matrices: strides that are no leading dimension of a size
    // above 1.
    compare_all(what + " cut out",
                [m = m, n = n](auto& v) { return matmul(v[0].select(2, 1), v[1].select(1, 0)); },
                {sample({m, k, 3}, 0.1), sample({k, 2, n}, 1)});
  }
  compare_all("vectors", multiply, {sample({9}, 0.3), sample({9, 4})});
}

BOOST_AUTO_TEST_CASE(batches) {
  compare_all("two batch dimensions", multiply, {sample({2, 3, 4, 5}), sample({2, 3, 5, 6}, 1)});
  compare_all("one left for all", multiply, {sample({4, 5}), sample({6, 5, 3}, 1)});
  compare_all("one right for all", multiply, {sample({6, 4, 5}), sample({5, 3}, 1)});
  compare_all("right expanded",
              [](auto& v) {
                return matmul(v[0], v[1].expand({6, 5, 3}));
              },
              {sample({6, 4, 5}), sample({1, 5, 3}, 1)});
  compare_all("left expanded",
              [](auto& v) {
                return matmul(v[0].expand({6, 4, 5}), v[1]);
              },
              {sample({1, 4, 5}), sample({6, 5, 3}, 1)});
  compare_all("both broadcast", multiply, {sample({3, 1, 4, 5}), sample({2, 5, 6}, 1)});
  compare_all("outer dimension expanded",
              [](auto& v) {
                return matmul(v[0].expand({2, 3, 4, 5}), v[1]);
              },
              {sample({1, 3, 4, 5}), sample({2, 3, 5, 6}, 1)});
  compare_all("inner dimension expanded",
              [](auto& v) {
                return matmul(v[0].expand({2, 3, 4, 5}), v[1]);
              },
              {sample({2, 1, 4, 5}), sample({2, 3, 5, 6}, 1)});
  compare_all("transposed inside",
              [](auto& v) { return matmul(v[0].transpose(1, 2), v[1].transpose(1, 2)); },
              {sample({3, 5, 4}), sample({3, 6, 5}, 1)});
  compare_all(
      "heads of attention",
      [](auto& v) { return matmul(v[0].transpose(1, 2), v[1].transpose(1, 2).transpose(2, 3)); },
      {sample({2, 4, 3, 5}), sample({2, 4, 3, 5}, 1)});
  compare_all("batch last",
              [](auto& v) {
                return matmul(permute(v[0], {2, 0, 1}), v[1]);
              },
              {sample({4, 5, 3}), sample({3, 5, 2}, 1)});
  compare_all("rows of one", multiply, {sample({7, 1, 5}), sample({7, 5, 2}, 1)});
}

BOOST_AUTO_TEST_CASE(views_that_start_anywhere) {
  for (int64_t start : {0, 1, 2, 3, 5, 8})
    compare_all("start " + std::to_string(start),
                [=](auto& v) {
                  Tensor a = v[0].narrow(0, start, 24).reshape({4, 6}),
                         b = v[1].narrow(0, start, 30).reshape({6, 5});
                  return linear(a, b.t(), v[2].narrow(0, start, 5));
                },
                {sample({40}), sample({40}, 1), sample({20}, 2)});
}

BOOST_AUTO_TEST_CASE(linear_with_and_without_bias) {
  const std::vector<Tensor> samples = {sample({6, 5}), sample({4, 5}, 1), sample({4}, 2)};
  compare_all(
      "linear", [](auto& v) { return linear(v[0], v[1], v[2]); }, samples);
  compare_all(
      "linear without bias", [](auto& v) { return linear(v[0], v[1]); }, samples);
  compare_all(
      "linear with relu", [](auto& v) { return linear_relu(v[0], v[1], v[2]); }, samples);
  compare_all(
      "linear with relu without bias", [](auto& v) { return linear_relu(v[0], v[1]); }, samples);
  compare_all("bias with a stride",
              [](auto& v) { return linear(v[0], v[1], v[2].slice(0, 0, 8, 2)); },
              {sample({6, 5}), sample({4, 5}, 1), sample({8}, 2)});
  compare_all("three dimensions", [](auto& v) { return linear(v[0], v[1], v[2]); },
              {sample({2, 3, 5}), sample({4, 5}, 1), sample({4}, 2)});
}

BOOST_AUTO_TEST_CASE(nothing_to_sum) {
  compare_all("inner size 0", multiply, {zeros({3, 0}), zeros({0, 4})});
  compare_all("batch of inner size 0", multiply, {zeros({2, 3, 0}), zeros({2, 0, 4})});
  compare_all("bias alone", [](auto& v) { return linear(v[0], v[1], v[2]); },
              {zeros({3, 0}), zeros({4, 0}), sample({4})});
  compare_all("relu of bias alone", [](auto& v) { return linear_relu(v[0], v[1], v[2]); },
              {zeros({3, 0}), zeros({4, 0}), sample({4})});
  compare_all("no rows", multiply, {zeros({0, 3}), zeros({3, 4})});
  compare_all("no columns", multiply, {zeros({2, 3}), zeros({3, 0})});
  compare_all("no batch", multiply, {zeros({0, 2, 3}), zeros({0, 3, 4})});
}

BOOST_AUTO_TEST_CASE(not_numbers_pass) {
  const double nan = std::nan(""), inf = HUGE_VAL;
  compare_all("NaN and infinity", multiply,
              {doubles({nan, 1, inf, 2, 3, 4}, {3, 2}), doubles({1, -1, 2, 0.5}, {2, 2})});
}

BOOST_AUTO_TEST_CASE(gradients) {
  auto gradients_on = [](const Device& device) {
    Tensor x = sample({6, 5}).to(f32).to(device), w = sample({4, 5}, 1).to(f32).to(device),
           b = sample({4}, 2).to(f32).to(device);
    for (auto* t : {&x, &w, &b}) t->requires_grad_();
    sum(square(linear_relu(x, w, b)) + matmul(x, w.t())).backward();
    return std::vector<Tensor>{x.grad(), w.grad(), b.grad()};
  };
  auto found = gradients_on(cuda), expected = gradients_on("cpu");
  for (size_t i = 0; i < found.size(); ++i)
    require_equal(found[i].to("cpu").to(f64), expected[i].to(f64), 1e-4);
}

BOOST_AUTO_TEST_CASE(precision_of_f32) {
  // 1 + 2^-12 is 1 in TF32.
  Tensor a = full({4, 8}, 1 + 1.0 / 4096, {.device = cuda}), b = ones({8, 4}, {.device = cuda});
  const double exact = 8 * (1 + 1.0 / 4096);
  auto first = [](const Tensor& t) { return t.to("cpu").to_vector<float>()[0]; };
  BOOST_TEST(first(matmul(a, b)) == exact);
  set_float32_matmul_precision("high");
  BOOST_TEST(float32_matmul_precision() == "high");
  if (!std::getenv("TENON_TEST_GPU")) BOOST_TEST(first(matmul(a, b)) == 8);
  BOOST_TEST(first(matmul(a.to(f64), b.to(f64)).to(f32)) == exact);
  set_float32_matmul_precision("highest");
  BOOST_TEST(first(matmul(a, b)) == exact);
}
