// Convolutions of views that start at any address, beyond the table of conformance/cases.
// Without cuDNN, as on the device that runs on the CPU, they are the plugin's own kernels; with
// TENON_TEST_GPU=1 they are cuDNN's.
#include <tenon/core/ops/convolution.h>
#include <tenon/core/ops/shape.h>

#include "cuda/emulated.h"
#include "ops/check.h"

using namespace tenon;
using namespace tenon::test;

BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

BOOST_AUTO_TEST_CASE(views_that_start_anywhere) {
  Tensor flat = sample({1000}).to(f32).to("cuda:0"),
         w = sample({4, 3, 3, 3}, 1).to(f32).to("cuda:0");
  for (int64_t start : {0, 1, 2, 3, 4}) {
    Tensor x = flat.narrow(0, start, 2 * 3 * 5 * 5).reshape({2, 3, 5, 5});
    require_equal(conv2d(x, w).to("cpu"), conv2d(x.to("cpu"), w.to("cpu")), 1e-4);
    require_equal(conv2d(x.transpose(2, 3), w).to("cpu"),
                  conv2d(x.to("cpu").transpose(2, 3).contiguous(), w.to("cpu")), 1e-4);
  }
}
