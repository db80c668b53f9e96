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
