// Eigen's matrices and an installed copy of Tenon.
#include <cmath>
#include <iostream>

#include <Eigen/Dense>

#include <tenon/eigen.h>
#include <tenon/plugins/sdk/eigen.h>

int main() {
  Eigen::Matrix2f a;
  a << 2, 1, 1, 3;
  const tenon::Tensor x = tenon::to_tensor(a);
  const Eigen::Vector2f solution = tenon::as_matrix<float>(x).eval().lu().solve(a.col(0));
  const tenon::Tensor y = tenon::to_tensor(solution);
  tn_tensor_desc column{};
  column.dtype = TN_F32;
  column.rank = 1;
  column.shape[0] = 2;
  column.strides[0] = 1;
  const void* values = y.data<float>();
  const auto seen = tenon::sdk::as_matrix<float>(column, values);
  std::cout << "solved " << std::lround(seen(0, 0)) << " " << std::lround(seen(1, 0)) << "\n";
}
