// What the plugin's own convolutions promise beyond the table of conformance/cases.
#include <cmath>
#include <cstdlib>

#include <tenon/core/ops/convolution.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>

#include "cuda/emulated.h"
#include "ops/check.h"

using namespace tenon;
using namespace tenon::test;

BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

// PyTorch's own convolution multiplies the zeros of the padding, too: a NaN in a weight is in all
// elements of its channel, and one in a gradient in all of the weight. To the input it goes where a
// window has it alone.
BOOST_AUTO_TEST_CASE(nan_meets_the_zeros_of_the_padding) {
  if (std::getenv("TENON_TEST_GPU")) return;  // cuDNN chooses
  auto nans = [](const Tensor& x) { return sum(ne(x, x)).item<int64_t>(); };
  for (const char* device : {"cpu", "cuda:0"})
    for (const DType dtype : {f32, f64}) BOOST_TEST_CONTEXT(device) {
        const TensorOptions there{.dtype = dtype, .device = device};
        Tensor x = ones({1, 1, 4, 4, 4}, there), w = ones({2, 1, 3, 3, 3}, there);
        w.slice(0, 0, 1).slice(2, 0, 1).slice(3, 0, 1).slice(4, 0, 1).fill_(NAN);
        x.requires_grad_();
        const Tensor y = conv3d(x, w, {}, {.padding = "same"});
        BOOST_TEST(nans(y) == 64);
        BOOST_TEST(nans(y.select(1, 0)) == 64);
        sum(y).backward();
        BOOST_TEST(nans(x.grad()) == 27);

        const Tensor finite = ones({1, 1, 3, 3, 3}, there).requires_grad_();
        Tensor gradient = ones({1, 1, 4, 4, 4}, there);
        gradient.slice(2, 0, 1).slice(3, 0, 1).slice(4, 0, 1).fill_(NAN);
        conv3d(x.detach(), finite, {}, {.padding = "same"}).backward(gradient);
        BOOST_TEST(nans(finite.grad()) == 27);
      }
}
