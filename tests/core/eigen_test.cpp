#include <tenon/core/ops/loss.h>
#include <tenon/eigen.h>
#include <tenon/plugins/sdk/eigen.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(eigen_test)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(a_tensor_is_read_in_place) {
  const Tensor x = doubles({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto matrix = as_matrix<double>(x);
  BOOST_TEST(matrix.data() == x.data<double>());
  BOOST_TEST(matrix(1, 2) == 6.0);
  BOOST_TEST((matrix * matrix.transpose())(0, 1) == 32.0);
  BOOST_TEST(as_array<double>(x).square().sum() == 91.0);
  const Tensor view = x.t(), column = x.select(1, 1), part = x.slice(1, 0, 3, 2),
               wide = x.narrow(0, 1, 1).expand({4, 3});
  BOOST_TEST(as_matrix<double>(view).data() == x.data<double>());
  BOOST_TEST(as_matrix<double>(view)(2, 0) == 3.0);
  BOOST_TEST(as_vector<double>(column).sum() == 7.0);
  BOOST_TEST(as_matrix<double>(part)(1, 1) == 6.0);
  BOOST_TEST(as_matrix<double>(wide).sum() == 60.0);
  const Tensor halves = x.to(f16), brains = x.to(bf16), truths = gt(x, 2);
  BOOST_TEST(static_cast<float>(as_matrix<Eigen::half>(halves)(0, 2)) == 3.0f);
  BOOST_TEST(static_cast<float>(as_matrix<Eigen::bfloat16>(brains)(1, 1)) == 5.0f);
  BOOST_TEST(as_array<bool>(truths).count() == 4);
  const Tensor nothing = zeros({0, 3});
  BOOST_TEST(as_matrix<float>(nothing).rows() == 0);
}

// wait() and the functions that change a tensor return references, also of temporaries.
BOOST_AUTO_TEST_CASE(a_map_keeps_its_tensor) {
  const Tensor x = doubles({1, 2, 3, 4}, {2, 2});
  const auto matrix = as_matrix<double>((x * 2).wait());
  const auto array = as_array<double>((x * 3).add_(1));
  const auto vector = as_vector<double>((x[0] * 4).wait());
  std::vector<Tensor> others;
  for (int i = 0; i < 16; ++i) {
    others.push_back(full({2, 2}, -1, f64));
    others.push_back(full({2}, -1, f64));
  }
  synchronize();
  BOOST_TEST(matrix(1, 1) == 8.0);
  BOOST_TEST(array(1, 1) == 13.0);
  BOOST_TEST(vector(1) == 8.0);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_read_in_place_is_said) {
  const Tensor x = zeros({2, 3}), cube = zeros({2, 3, 4}), none;
  require_error<DTypeError>(
      [&] { as_matrix<double>(x); },
      "as_matrix: the tensor holds f32, but was read as f64; convert it with .to(tenon::f64)");
  require_error<DTypeError>([&] { as_matrix<bool>(x); }, "convert it with .to(tenon::boolean)");
  require_error<ShapeError>(
      [&] { as_matrix<float>(cube); },
      "as_matrix: needs a tensor of 2 dimensions, found shape (2, 3, 4); select, flatten or "
      "reshape it first");
  require_error<ShapeError>([&] { as_vector<float>(x); },
                            "as_vector: needs a tensor of 1 dimension, found shape (2, 3)");
  const Tensor row = x[0];
  require_error<ShapeError>([&] { as_array<float>(row); },
                            "as_array: needs a tensor of 2 dimensions");
  require_error<ValueError>([&] { as_matrix<float>(none); }, "as_matrix: the tensor is undefined");
  const Tensor bad = cross_entropy(zeros({1, 2}), ints({7}, {1}), {.reduction = Reduction::none});
  require_error<IndexError>([&] { as_vector<float>(bad); }, "label 7");
}

template <class T>
concept mappable = requires(T&& x) { as_matrix<float>(std::forward<T>(x)); };
static_assert(mappable<Tensor&> && mappable<const Tensor&> && !mappable<Tensor>);

BOOST_AUTO_TEST_CASE(matrices_and_expressions_become_tensors) {
  Eigen::MatrixXd columns(2, 3);
  columns << 1, 2, 3, 4, 5, 6;
  const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows =
      columns.cast<float>();
  require_values(to_tensor(columns), {2, 3}, {1, 2, 3, 4, 5, 6});
  BOOST_TEST((to_tensor(columns).strides() == Strides{1, 2}));
  require_values(to_tensor(rows), {2, 3}, {1, 2, 3, 4, 5, 6});
  BOOST_TEST(to_tensor(rows).is_contiguous());
  BOOST_CHECK(to_tensor(columns).dtype() == f64 && to_tensor(rows).dtype() == f32);
  require_values(to_tensor(columns.row(1)), {3}, {4, 5, 6});
  require_values(to_tensor(columns.col(0) * 2), {2}, {2, 8});
  require_values(to_tensor(columns.transpose() * columns), {3, 3},
                 {17, 22, 27, 22, 29, 36, 27, 36, 45});
  require_values(to_tensor((rows.array() > 3).cast<uint8_t>()), {2, 3}, {0, 0, 0, 1, 1, 1});
  require_values(to_tensor(columns, {.dtype = i64, .device = "cpu:1"}), {2, 3}, {1, 2, 3, 4, 5, 6});
  require_values(to_tensor(Eigen::MatrixXf(0, 2)), {0, 2}, {});
  BOOST_CHECK(to_tensor(columns, {.device = "cpu:1"}).dtype() == f64);
  Tensor leaf = to_tensor(columns, {.dtype = f64, .requires_grad = true});
  sum(square(leaf)).backward();
  require_values(leaf.grad(), {2, 3}, {2, 4, 6, 8, 10, 12});
  Tensor there = to_tensor(columns);
  columns.setZero();
  require_values(there, {2, 3}, {1, 2, 3, 4, 5, 6});
  BOOST_TEST((as_matrix<double>(there) -
              to_tensor(columns).to_vector<double>()[0] * Eigen::MatrixXd::Ones(2, 3))
                 .sum() == 21.0);
}

BOOST_AUTO_TEST_CASE(plugins_see_descriptors_as_matrices) {
  float values[] = {1, 2, 3, 4, 5, 6};
  tn_tensor_desc d{};
  d.dtype = TN_F32;
  d.rank = 2;
  d.shape[0] = 3, d.shape[1] = 2;
  d.strides[0] = 1, d.strides[1] = 3;
  const void* inputs = values;
  BOOST_TEST(sdk::as_matrix<float>(d, inputs)(2, 1) == 6.0f);
  sdk::as_matrix<float>(d, static_cast<void*>(values)).row(0).setZero();
  BOOST_TEST(values[3] == 0.0f);
  BOOST_TEST(sdk::as_array<float>(d, inputs).sum() == 16.0f);
  require_error<sdk::Error>([&] { sdk::as_matrix<double>(d, inputs); },
                            "as_matrix: the tensor holds f32, but was to be read as f64");
  d.rank = 3;
  require_error<sdk::Error>([&] { sdk::as_array<float>(d, inputs); },
                            "as_array: needs a tensor of 1 or 2 dimensions, found 3");
  d.rank = 1;
  BOOST_TEST(sdk::as_matrix<float>(d, inputs).cols() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
