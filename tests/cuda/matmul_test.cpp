// Matrix products of the cuda plugin beyond the table of conformance/cases: NaN and infinity in
// every dtype, and TF32.
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

// f(samples) on the device, and in f64 on the CPU from the same rounded values.
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

BOOST_AUTO_TEST_CASE(not_numbers_pass) {
  const double nan = std::nan(""), inf = HUGE_VAL;
  compare_all("NaN and infinity", multiply,
              {doubles({nan, 1, inf, 2, 3, 4}, {3, 2}), doubles({1, -1, 2, 0.5}, {2, 2})});
}

// The sum of the first two products needs a bit more than a half type has.
BOOST_AUTO_TEST_CASE(partial_sums_are_not_rounded) {
  for (const DType dtype : {f16, bf16}) {
    const double large = dtype == f16 ? 2048 : 256;
    const Tensor a = doubles({large, 1, -large, 0}, {1, 4}).to(dtype).to(cuda),
                 b = ones({4, 1}, {.dtype = dtype, .device = cuda});
    BOOST_TEST(matmul(a, b).to(f64).item() == 1.0);
  }
}

// Views that begin anywhere, where cuBLASLt adds the bias itself and where it does not.
BOOST_AUTO_TEST_CASE(operands_at_any_element) {
  const auto product = [](const std::vector<Tensor>& v) {
    return matmul(v[0].slice(0, 1, 33).view({4, 8}), v[1]);
  };
  const auto layer = [](const std::vector<Tensor>& v) {
    return linear(v[0].slice(0, 1, 33).view({4, 8}), v[1].t(), v[2].slice(0, 1, v[2].size(0)));
  };
  const std::vector<Tensor> samples = {sample({33}, 1), sample({8, 3}, 2), sample({4}, 3)};
  compare_all("a view", product, samples);
  compare_all("a view and a bias", layer, samples);
  setenv("TENON_EMULATED_NARROW_BIAS", "0", 1);
  compare_all("a view and a bias of its own", layer,
              {samples[0], sample({8, 5}, 2), sample({6}, 3)});
  unsetenv("TENON_EMULATED_NARROW_BIAS");
}

BOOST_AUTO_TEST_CASE(relu_keeps_not_numbers) {
  compare_all("relu of NaN",
              [](const std::vector<Tensor>& v) { return linear_relu(v[0], v[1], v[2]); },
              {doubles({std::nan(""), 1, -2, 3}, {2, 2}), doubles({1, 2, -1, 3}, {2, 2}),
               doubles({0.5, -0.5}, {2})});
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
