// What runs on a thread of a program that opened libtenon late: operators, modules and autograd, so
// that each of the library's thread-locals is used. 0 where the numbers are right.
#include <exception>

#include <tenon/tenon.h>

using namespace tenon;

extern "C" __attribute__((visibility("default"))) int run_operators() try {
  nn::Linear layer(3, 2);
  for (int i = 0; i < 3; ++i) sum(layer(ones({4, 3}))).backward();
  const float product = sum(matmul(ones({64, 32}), full({32, 16}, 2))).item<float>();
  const float gradient = sum(layer.bias.grad()).item<float>();
  return product == 64 * 32 * 16 * 2 && gradient == 24 ? 0 : 1;
} catch (const std::exception&) {
  return 2;
}
