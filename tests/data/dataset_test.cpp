// Data sets in memory, pixels as floats, and generated images.
#include <cmath>
#include <limits>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/pointwise.h>
#include <tenon/core/tensor.h>
#include <tenon/data/synthetic.h>
#include <tenon/data/tensor_dataset.h>

#include "../files.h"

BOOST_AUTO_TEST_SUITE(dataset_test)

using namespace tenon;
using namespace tenon::data;

BOOST_AUTO_TEST_CASE(rows_are_gathered_in_the_order_asked_for) {
  const TensorDataset set(arange(0, 12).reshape({4, 3}), arange(0, 4).to(i64));
  const Batch batch = set.get_batch(std::vector<int64_t>{3, 0, 3});
  BOOST_TEST(batch.size() == 3);
  BOOST_TEST((batch.data.to_vector<int>() == std::vector<int>{9, 10, 11, 0, 1, 2, 9, 10, 11}));
  BOOST_TEST((batch.target.to_vector<int>() == std::vector<int>{3, 0, 3}));
  BOOST_TEST((batch.target.dtype() == i64));
  BOOST_TEST((set.get_batch({}).data.shape() == Shape{0, 3}));
  BOOST_TEST((set.get(2).data.to_vector<int>() == std::vector<int>{6, 7, 8}));
}

BOOST_AUTO_TEST_CASE(any_layout_and_type) {
  const TensorDataset set(arange(0, 6).reshape({2, 3}).t(), (arange(0, 3) + 0.5).to(f64));
  BOOST_TEST((set.get(1).data.to_vector<int>() == std::vector<int>{1, 4}));
  BOOST_TEST(set.get(2).target.item<double>() == 2.5);
  const TensorDataset halves(tensor({1.5f, 2.5f}).to(f16), zeros({2, 0}));
  BOOST_TEST(halves.get(1).data.item<float>() == 2.5f);
  BOOST_TEST((halves.get_batch(std::vector<int64_t>{0, 1}).target.shape() == Shape{2, 0}));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  BOOST_TEST(
      has(error_of<ShapeError>([] {
            TensorDataset(zeros({3, 2}), zeros({4}));
          }),
          "data of shape (3, 2) and target of shape (4,) do not have the same number of rows"));
  BOOST_TEST(
      has(error_of<ShapeError>([] { TensorDataset(scalar(1), scalar(1)); }), "data of shape ()"));
  const TensorDataset set(zeros({3, 2}), zeros({3}));
  for (int64_t index : {int64_t{-1}, int64_t{3}, std::numeric_limits<int64_t>::max()})
    BOOST_TEST(has(error_of<IndexError>([&] { set.get(index); }),
                   "there is no example " + std::to_string(index) + "; it has 3"));
  BOOST_TEST(has(error_of<DTypeError>([&] { TensorDataset(set).convert({}); }),
                 "converted from u8, and the data is f32"));
}

BOOST_AUTO_TEST_CASE(slices_share_the_values) {
  const TensorDataset set(arange(0, 10).reshape({5, 2}), arange(0, 5));
  const TensorDataset part = set.slice(1, -1);
  BOOST_TEST(part.size() == 3);
  BOOST_TEST((part.get(0).data.to_vector<int>() == std::vector<int>{2, 3}));
  BOOST_TEST(part.slice(1, 2).get(0).target.item<int>() == 2);
  BOOST_TEST(set.slice(2, 2).size() == 0);
  BOOST_TEST(
      has(error_of<IndexError>([&] { set.slice(2, 6); }), "cannot take examples [2, 6) of 5"));
  BOOST_TEST(has(error_of<IndexError>([&] { set.slice(3, 2); }), "[3, 2) of 5"));
}

BOOST_AUTO_TEST_CASE(pixels_become_floats_exactly) {
  const Tensor pixels = arange(0, 256).to(u8).reshape({1, 1, 16, 16});
  const std::vector<float> plain = to_float(pixels).to_vector<float>();
  const std::vector<float> shifted =
      to_float(pixels, {.mean = {0.1307}, .std = {0.3081}}).to_vector<float>();
  for (int x = 0; x < 256; ++x) {
    BOOST_TEST(plain[x] == static_cast<float>(x / 255.));
    BOOST_TEST(shifted[x] == static_cast<float>((x / 255. - 0.1307) / 0.3081));
  }
  const Tensor two =
      to_float(arange(0, 4).to(u8).reshape({2, 2, 1}), {.mean = {0, 1}, .std = {1. / 255}});
  BOOST_TEST((two.to_vector<float>() == std::vector<float>{0, -254, 2, -252}));
  BOOST_TEST((to_float(zeros({0, 3, 4, 4}).to(u8)).shape() == Shape{0, 3, 4, 4}));
  BOOST_TEST(has(error_of<ValueError>([&] {
                   to_float(pixels, {.mean = {1, 2}});
                 }),
                 "mean has 2 values, the images have 1 channels"));
  BOOST_TEST(has(error_of<ValueError>([&] { to_float(pixels, {.std = {0}}); }),
                 "std has to be finite and positive, but is 0"));
  BOOST_TEST(has(error_of<ValueError>([&] { to_float(pixels, {.std = {std::nan("")}}); }),
                 "std has to be finite and positive"));
  BOOST_TEST(has(error_of<DTypeError>([&] {
                   to_float(zeros({1, 1}));
                 }),
                 "images are f32; it takes u8"));
}

BOOST_AUTO_TEST_CASE(single_examples_are_put_together) {
  const std::vector<Example> examples = {{tensor({1, 2}), scalar(0)}, {tensor({3, 4}), scalar(1)}};
  const Batch batch = collate(examples);
  BOOST_TEST((batch.data.shape() == Shape{2, 2}));
  BOOST_TEST((batch.data.to_vector<int>() == std::vector<int>{1, 2, 3, 4}));
  BOOST_TEST((batch.target.to_vector<int>() == std::vector<int>{0, 1}));
  BOOST_TEST(has(error_of<ShapeError>([] {
                   collate(std::vector<Example>{{zeros({2}), scalar(0)}, {zeros({3}), scalar(0)}});
                 }),
                 "the data of example 1 has shape (3,), that of example 0 (2,)"));
  BOOST_TEST(
      has(error_of<DTypeError>([] {
            collate(std::vector<Example>{{zeros({2}), scalar(0)}, {zeros({2}), scalar(0).to(f64)}});
          }),
          "the target of example 1 has type f64, that of example 0 f32"));
  BOOST_TEST(has(error_of<ValueError>([] { collate({}); }), "no examples given"));
}

BOOST_AUTO_TEST_CASE(generated_images_are_balanced_and_decided_by_the_seed) {
  const TensorDataset set = synthetic(1003);
  BOOST_TEST((set.data().shape() == Shape{1003, 1, 28, 28}));
  std::vector<int> count(10);
  for (int label : set.target().to_vector<int>()) ++count[label];
  for (int n : count) BOOST_TEST((n == 100 || n == 101));
  BOOST_TEST((set.data().to_vector<uint8_t>() == synthetic(1003).data().to_vector<uint8_t>()));
  BOOST_TEST((set.data().to_vector<uint8_t>() !=
              synthetic(1003, {.seed = 1}).data().to_vector<uint8_t>()));
  BOOST_TEST(
      (set.target().to_vector<int>() != synthetic(1003, {.seed = 1}).target().to_vector<int>()));
  BOOST_TEST(synthetic(0).size() == 0);
  BOOST_TEST(synthetic_class(9) == "crescent");
  BOOST_TEST(has(error_of<IndexError>([] { synthetic_class(10); }), "there is no class 10"));
  BOOST_TEST(has(error_of<ValueError>([] { synthetic(-1); }), "count has to be at least 0"));
  BOOST_TEST(has(error_of<ValueError>([] { synthetic(1, {.noise = -1}); }),
                 "noise has to be finite and at least 0"));
}

// The nearest of the classes' mean images: what a model reaches without learning shapes.
BOOST_AUTO_TEST_CASE(generated_images_tell_their_class_but_not_by_their_mean) {
  const TensorDataset train = synthetic(4000), test = synthetic(500, {.seed = 1});
  std::vector<std::vector<double>> mean(10, std::vector<double>(784));
  const auto pixels = train.data().to_vector<float>(), asked = test.data().to_vector<float>();
  const auto label = train.target().to_vector<int>(), expected = test.target().to_vector<int>();
  for (size_t i = 0; i < label.size(); ++i)
    for (size_t p = 0; p < 784; ++p) mean[label[i]][p] += pixels[i * 784 + p] / 400;
  int right = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    double best = std::numeric_limits<double>::max();
    int guess = 0;
    for (int c = 0; c < 10; ++c) {
      double d = 0;
      for (size_t p = 0; p < 784; ++p)
        d += (mean[c][p] - asked[i * 784 + p]) * (mean[c][p] - asked[i * 784 + p]);
      if (d < best) best = d, guess = c;
    }
    right += guess == expected[i];
  }
  BOOST_TEST(right > 75);   // chance is 50 of 500
  BOOST_TEST(right < 350);  // it takes more than that
}

BOOST_AUTO_TEST_SUITE_END()
