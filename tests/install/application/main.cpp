// An application that has only an installed copy of Tenon.
#include <cstdlib>
#include <iostream>

#include <tenon/tenon.h>

struct Net : tenon::nn::Module<Net> {
  tenon::nn::Linear fc{3, 1, {.bias = false}};
  tenon::Tensor forward(const tenon::Tensor& x) { return fc(x); }
};

int main(int argc, char** argv) {
  if (argc > 1) {
    tenon::Tensor x = tenon::ones({2, 2}, {.device = argv[1]});
    std::cout << (x + x).device().str() << "\n";
    return EXIT_SUCCESS;
  }
  Net net;
  tenon::nn::init::ones_(net.fc.weight);
  std::cout << "sum " << net(tenon::tensor({1, 2, 3})).item<int>() << "\n";
}
