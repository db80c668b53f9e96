// Steps that change images, alone and in a loader.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/pointwise.h>
#include <tenon/core/tensor.h>
#include <tenon/data/augment.h>
#include <tenon/data/loader.h>
#include <tenon/data/tensor_dataset.h>

#include "../files.h"

BOOST_AUTO_TEST_SUITE(augment_test)

using namespace tenon;
using namespace tenon::data;
using tenon::test::require_error;

namespace {

// (1, height, width) with the numbers from 1 on.
Tensor counted(int64_t height, int64_t width, DType dtype = u8) {
  return arange(1, static_cast<double>(height * width + 1)).to(dtype).reshape({1, height, width});
}
std::vector<int> values(const Tensor& x) { return x.to_vector<int>(); }
using Values = std::vector<int>;

// Images with unequal pixels; example i has label i.
TensorDataset pictures(int64_t count) {
  std::vector<uint8_t> pixels(static_cast<size_t>(count * 3 * 6 * 5));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7 % 251);
  return TensorDataset(tensor(pixels, {count, 3, 6, 5}),
                       arange(0, static_cast<double>(count)).to(i64));
}

std::map<int, Values> by_label(DataLoader& loader) {
  std::map<int, Values> found;
  for (auto& [x, y] : loader)
    for (int64_t i = 0; i < y.size(0); ++i)
      found[static_cast<int>(y[i].item<int64_t>())] = values(x[i] * 1000);
  return found;
}

}  // namespace

// The numbers are those of torch.nn.functional.pad.
BOOST_AUTO_TEST_CASE(padding) {
  for (DType dtype : {u8, f32}) {
    const Tensor x = counted(2, 3, dtype);
    BOOST_TEST((values(Compose({Pad({1, 2}, {.fill = 9})})(x)) ==
                Values{9, 9, 9, 9, 9, 9, 9, 9, 9, 1, 2, 3, 9, 9,
                       9, 9, 4, 5, 6, 9, 9, 9, 9, 9, 9, 9, 9, 9}));
    BOOST_TEST((values(Compose({Pad({1, 2}, {.mode = PadMode::reflect})})(x)) ==
                Values{6, 5, 4, 5, 6, 5, 4, 3, 2, 1, 2, 3, 2, 1,
                       6, 5, 4, 5, 6, 5, 4, 3, 2, 1, 2, 3, 2, 1}));
    BOOST_TEST((values(Compose({Pad({0, 3}, {.mode = PadMode::symmetric})})(x)) ==
                Values{3, 2, 1, 1, 2, 3, 3, 2, 1, 6, 5, 4, 4, 5, 6, 6, 5, 4}));
    BOOST_TEST((values(Compose({Pad({0, 4}, {.mode = PadMode::edge})})(x)) ==
                Values{1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 5, 6, 6, 6, 6, 6}));
  }
  require_error<ShapeError>([] { Compose({Pad(3, {.mode = PadMode::reflect})})(counted(2, 3)); },
                            "Pad: an image of shape (1, 2, 3) cannot be continued by 3 pixels");
  require_error<ValueError>([] { Compose({Pad(1, {.fill = 0.5})})(counted(2, 3)); },
                            "Pad: a pixel of a u8 image is a whole number from 0 to 255, not 0.5");
  require_error<ValueError>([] { Pad(-1); }, "Pad: padding has to be from 0", "-1 × -1");
}

BOOST_AUTO_TEST_CASE(the_middle) {
  BOOST_TEST((values(Compose({CenterCrop({1, 2})})(counted(3, 4))) == Values{6, 7}));
  // round(0.5) is 0 and round(1.5) is 2 in Python.
  BOOST_TEST((values(Compose({CenterCrop({1, 1})})(counted(2, 4))) == Values{3}));
  BOOST_TEST((values(Compose({CenterCrop({1, 5})})(counted(1, 2))) == Values{0, 1, 2, 0, 0}));
  require_error<ValueError>([] { CenterCrop(0); }, "CenterCrop: the size has to be from 1");
}

BOOST_AUTO_TEST_CASE(mirrored) {
  for (DType dtype : {u8, f32}) {
    const Tensor x = counted(3, 2, dtype);
    BOOST_TEST((values(Compose({RandomHorizontalFlip(1)})(x)) == Values{2, 1, 4, 3, 6, 5}));
    BOOST_TEST((values(Compose({RandomVerticalFlip(1)})(x)) == Values{5, 6, 3, 4, 1, 2}));
    BOOST_TEST((values(Compose({RandomHorizontalFlip(0)})(x)) == values(x)));
  }
  int flipped = 0;
  const Tensor many = counted(1, 2).unsqueeze(0).expand({2000, 1, 1, 2});
  const Values all = values(Compose({RandomHorizontalFlip(0.3)})(many));
  for (size_t i = 0; i < all.size(); i += 2) flipped += all[i] == 2;
  BOOST_TEST(std::abs(flipped - 600) < 100);  // five standard deviations
  require_error<ValueError>([] { RandomHorizontalFlip(1.5); },
                            "p has to be from 0 to 1, but is 1.5");
  require_error<ValueError>([] { RandomVerticalFlip(NAN); }, "p has to be from 0 to 1, but is nan");
}

BOOST_AUTO_TEST_CASE(crops_reach_every_place) {
  const Compose crop({RandomCrop(2, {.padding = 1})});
  std::set<Values> seen;
  for (int i = 0; i < 400; ++i) seen.insert(values(crop(counted(2, 2), Random(1).at(i))));
  const std::set<Values> all = {{0, 0, 0, 1}, {0, 0, 1, 2}, {0, 0, 2, 0},
                                {0, 1, 0, 3}, {1, 2, 3, 4}, {2, 0, 4, 0},
                                {0, 3, 0, 0}, {3, 4, 0, 0}, {4, 0, 0, 0}};
  BOOST_TEST((seen == all));
  BOOST_TEST((values(Compose({RandomCrop({2, 3})})(counted(2, 3))) == values(counted(2, 3))));
  require_error<ShapeError>(
      [] {
        Compose({RandomCrop(4, {.padding = {0, 1}})})(counted(3, 3));
      },
      "RandomCrop: cannot take 4 × 4 pixels of an image of shape (1, 3, 3)", "set pad_if_needed");
  const Tensor padded = Compose({RandomCrop(4, {.pad_if_needed = true})})(counted(3, 3));
  BOOST_TEST((padded.shape() == Shape{1, 4, 4}));
}

BOOST_AUTO_TEST_CASE(normalized_as_to_float_does) {
  const ToFloat how{.mean = {0.1, 0.2, 0.3}, .std = {0.5, 0.25, 2}};
  const Tensor x = pictures(2).data();
  const std::vector<float> expected = to_float(x, how).to_vector<float>();
  BOOST_TEST((Compose({Normalize(how)})(x).to_vector<float>() == expected));
  const std::vector<float> twice =
      Compose({Normalize(ToFloat{}), Normalize(how.mean, how.std)})(x).to_vector<float>();
  for (size_t i = 0; i < twice.size(); ++i) BOOST_TEST(std::abs(twice[i] - expected[i]) < 1e-5f);
  require_error<ValueError>(
      [] {
        Compose({Normalize({0, 0}, {1})})(counted(2, 2));
      },
      "there are means or stds for 2 channels", "the image has shape (1, 2, 2)");
  require_error<ValueError>([] { Normalize({0, 0}, {1, 1, 1}); }, "mean has 2 values");
  require_error<ValueError>([] { Normalize({0}, {0}); },
                            "Normalize: std has to be finite and positive");
}

BOOST_AUTO_TEST_CASE(erased_rectangles) {
  const Compose erase({RandomErasing({.p = 1, .value = 7})});
  const Tensor x = zeros({2, 20, 30}).to(u8);
  for (uint64_t i = 0; i < 50; ++i) {
    const Values y = values(erase(x, Random(i)));
    const auto area = std::count(y.begin(), y.end(), 7) / 2;
    BOOST_TEST(area > 0.01 * 600);
    BOOST_TEST(area < 0.36 * 600);
    BOOST_TEST((Values(y.begin(), y.begin() + 600) == Values(y.begin() + 600, y.end())));
  }
  BOOST_TEST((values(Compose({RandomErasing({.p = 0})})(counted(4, 4))) == values(counted(4, 4))));
  require_error<ValueError>([] { RandomErasing({.min_scale = 0.5, .max_scale = 0.2}); },
                            "the scale has to be a range in [0, 1], but is 0.5 to 0.2");
  require_error<ValueError>([] { RandomErasing({.min_ratio = 0}); }, "the ratio has to be a range");
}

// The same numbers for any workers, batch sizes and orders; others in each epoch and for each seed.
BOOST_AUTO_TEST_CASE(a_loader_augments_alike_whatever_its_workers) {
  TensorDataset set = pictures(40);
  set.convert({.std = {0.5}})
      .transform({RandomCrop({6, 5}, {.padding = 2}), RandomHorizontalFlip()});
  auto epochs = [&](const LoaderOptions& options) {
    DataLoader loader(set, options);
    std::vector<std::map<int, Values>> found;
    for (int i = 0; i < 2; ++i) found.push_back(by_label(loader));
    return found;
  };
  const auto expected = epochs({.batch_size = 7, .seed = 3, .workers = 0});
  BOOST_TEST((expected[0] != expected[1]));
  for (int workers : {0, 1, 4})
    for (int64_t batch : {1, 7, 40})
      BOOST_TEST((epochs({.batch_size = batch, .seed = 3, .workers = workers}) == expected));
  BOOST_TEST((epochs({.batch_size = 7, .shuffle = false, .seed = 3}) == expected));
  BOOST_TEST((epochs({.batch_size = 7, .seed = 4}) != expected));
  // Images of one epoch are not moved alike.
  std::set<Values> pieces;
  TensorDataset equal(ones({40, 1, 8, 8}).to(u8), zeros({40}));
  equal.transform({RandomCrop(8, {.padding = 3})});
  DataLoader loader(equal, {.batch_size = 40});
  for (auto& [x, y] : loader)
    for (int64_t i = 0; i < 40; ++i) pieces.insert(values(x[i]));
  BOOST_TEST(pieces.size() > 15u);  // of 49 places
}

BOOST_AUTO_TEST_CASE(steps_of_ones_own) {
  TensorDataset set = pictures(4);
  set.transform({[](Image& image, Random&) {
    for (uint8_t& x : image.pixels<uint8_t>()) x = static_cast<uint8_t>(255 - x);
  }});
  const Values plain = values(pictures(4).data()),
               inverted = values(set.get_batch(std::vector<int64_t>{0, 1, 2, 3}).data);
  for (size_t i = 0; i < plain.size(); ++i) BOOST_TEST(inverted[i] == 255 - plain[i]);
  BOOST_TEST((values(set.transform({}).get(2).data) == values(pictures(4).get(2).data)));

  set.transform({[](Image& image, Random&) { image.pixels<float>(); }});
  require_error<DataError>([&] { set.get(2); },
                           "example 2 of TensorDataset: Image: its pixels are u8");
  require_error<ValueError>([] { Compose({Step()}); }, "Compose: step 0 is an empty function");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_transformed) {
  TensorDataset rows(zeros({3, 4}), zeros({3}));
  require_error<ShapeError>([&] { rows.transform({RandomHorizontalFlip()}); },
                            "images that are transformed are (N, C, H, W)", "(3, 4)");
  TensorDataset numbers(zeros({3, 1, 2, 2}).to(f64), zeros({3}));
  require_error<DTypeError>([&] { numbers.transform({RandomHorizontalFlip()}); }, "u8 or f32",
                            "f64");
  require_error<ShapeError>([] { Compose({RandomHorizontalFlip()})(zeros({3})); }, "(C, H, W)",
                            "(3,)");
  // The batch cannot be put together where a step gives images several sizes.
  TensorDataset set = pictures(8);
  set.transform({[](Image& image, Random& random) {
    image.remake(u8, 1, 1, static_cast<int64_t>(1 + random.below(1000)));
  }});
  DataLoader loader(set, {.batch_size = 8, .shuffle = false});
  require_error<DataError>(
      [&] {
        for ([[maybe_unused]] auto& batch : loader) {
        }
      },
      "DataLoader: batch 0 of epoch 0 (examples 0, 1, 2, 3, … of TensorDataset)",
      "example 1 of TensorDataset: the image has shape (1, 1, ",
      "give all of them one size with Resize");
}

BOOST_AUTO_TEST_CASE(images_without_pixels) {
  BOOST_TEST((Compose({RandomHorizontalFlip(1), RandomVerticalFlip(1), Normalize(ToFloat{})})(
                  zeros({3, 0, 4}).to(u8))
                  .shape() == Shape{3, 0, 4}));
  BOOST_TEST((values(Compose({CenterCrop(1)})(zeros({1, 0, 0}).to(u8))) == Values{0}));
}

BOOST_AUTO_TEST_SUITE_END()
