// Sizes, colours and mixtures of images. The numbers are those of PyTorch: interpolate, and what
// torchvision computes of colours.
#include <cmath>
#include <set>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/loss.h>
#include <tenon/core/tensor.h>
#include <tenon/data/color.h>
#include <tenon/data/loader.h>
#include <tenon/data/mix.h>
#include <tenon/data/resize.h>
#include <tenon/data/tensor_dataset.h>

#include "../files.h"

BOOST_AUTO_TEST_SUITE(color_test)

using namespace tenon;
using namespace tenon::data;
using tenon::test::require_error;
using Floats = std::vector<float>;

namespace {

Tensor picture(int64_t height, int64_t width, DType dtype = f32) {
  std::vector<uint8_t> pixels(static_cast<size_t>(height * width));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37 % 251);
  return tensor(pixels, {1, height, width}).to(dtype);
}

void require_near(const Tensor& found, const Floats& expected, float most) {
  const Floats values = found.to_vector<float>();
  BOOST_REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    BOOST_TEST(std::abs(values[i] - expected[i]) <= most,
               "element " << i << " is " << values[i] << ", expected " << expected[i]);
}

Tensor colors(DType dtype) {
  const Tensor x = tensor(std::vector<uint8_t>{200, 10, 90, 255, 0, 33, 30, 220, 90, 128, 0, 34, 60,
                                               40, 91, 0, 255, 35},
                          {3, 2, 3});
  return dtype == u8 ? x : to_float(x.unsqueeze(0)).squeeze(0);
}
// Colours after an adjustment, in u8 and f32.
void require_colors(void (*adjust)(Image&, double), double by, const Floats& bytes,
                    const Floats& floats) {
  const Compose step({[&](Image& image, Random&) { adjust(image, by); }});
  require_near(step(colors(u8)), bytes, 1);
  require_near(step(colors(f32)), floats, 1e-5f);
}

}  // namespace

BOOST_AUTO_TEST_CASE(sizes_with_and_without_antialias) {
  const Tensor x = picture(5, 7);
  require_near(Compose({Resize({2, 3})})(x), {39.7143f, 119, 198.286f, 55.7143f, 135, 185.763f},
               1e-3f);
  require_near(
      Compose({Resize({3, 9})})(x),
      {3.42857f, 28.0952f, 56.873f,  85.6508f, 114.429f, 143.206f, 171.984f, 200.762f, 225.429f,
       16,       40.6667f, 69.4444f, 98.2222f, 127,      155.778f, 184.556f, 213.333f, 238,
       28.5714f, 53.2381f, 82.0159f, 110.794f, 139.571f, 168.349f, 197.127f, 178.095f, 107.143f},
      1e-3f);
  require_near(Compose({Resize({2, 3}, {.antialias = false})})(x),
               {30.6667f, 117, 203.333f, 50.6667f, 137, 202.417f}, 1e-3f);
  require_near(Compose({Resize({7, 2}, {.antialias = false})})(x),
               {46.25f, 175.75f, 50.8214f, 180.321f, 56.5357f, 186.036f, 62.25f, 191.75f, 67.9643f,
                197.464f, 73.6786f, 203.179f, 78.25f, 207.75f},
               1e-3f);
  const Resize nearest({3, 5}, {.mode = ResizeMode::nearest});
  for (DType dtype : {u8, f32})
    require_near(Compose({nearest})(picture(5, 7, dtype)),
                 {0, 37, 74, 148, 185, 8, 45, 82, 156, 193, 24, 61, 98, 172, 209}, 0);
  require_near(Compose({Resize({9, 3}, {.mode = ResizeMode::nearest})})(x),
               {0,   74, 148, 0,   74, 148, 8,   82, 156, 8,   82, 156, 16, 90,
                164, 16, 90,  164, 24, 98,  172, 24, 98,  172, 32, 106, 180},
               0);
  const Floats small = {126.616f, 119.9f,   126.107f, 126.311f, 128.514f, 121.555f,
                        121.476f, 122.636f, 129.556f, 130.394f, 125.06f,  119.772f};
  require_near(Compose({Resize({4, 3})})(picture(40, 30)), small, 1e-2f);
  require_near(Compose({Resize({4, 3})})(picture(40, 30, u8)), small, 0.5f);
}

BOOST_AUTO_TEST_CASE(the_shorter_edge) {
  auto shape = [](const Resize& resize, int64_t height, int64_t width) {
    return Compose({resize})(picture(height, width, u8)).shape();
  };
  BOOST_TEST((shape(Resize(10), 20, 33) == Shape{1, 10, 16}));
  BOOST_TEST((shape(Resize(10), 33, 20) == Shape{1, 16, 10}));
  BOOST_TEST((shape(Resize(20, {.max_size = 30}), 20, 40) == Shape{1, 15, 30}));
  BOOST_TEST((shape(Resize(7), 7, 7) == Shape{1, 7, 7}));
  require_error<ValueError>(
      [] {
        Resize({3, 4}, {.max_size = 30});
      },
      "max_size is for the longer edge");
  require_error<ShapeError>([&] { shape(Resize(1 << 24), 1, 300); }, "would get absurdly long");
  require_error<ShapeError>(
      [&] {
        shape(Resize({2, 2}), 0, 3);
      },
      "Resize: an image of shape (1, 0, 3)");
}

BOOST_AUTO_TEST_CASE(pieces_that_are_resized) {
  const Compose crop({RandomResizedCrop(4)});
  std::set<Floats> seen;
  for (uint64_t i = 0; i < 20; ++i) {
    const Tensor y = crop(picture(20, 30), Random(i));
    BOOST_TEST((y.shape() == Shape{1, 4, 4}));
    seen.insert(y.to_vector<float>());
  }
  BOOST_TEST(seen.size() == 20u);
  // The whole image, where the piece can be nothing else, and the middle, where none fits.
  const RandomResizedCropOptions whole{.min_scale = 1, .min_ratio = 1, .max_ratio = 1};
  require_near(Compose({RandomResizedCrop(4, whole)})(picture(4, 4)),
               picture(4, 4).to_vector<float>(), 0);
  require_near(Compose({RandomResizedCrop(2, whole)})(picture(2, 6)), {74, 111, 45, 82}, 0);
  // The middle of a narrow image is 5 / 2 pixels high, rounded to the even number.
  const RandomResizedCropOptions wide{.min_scale = 1, .min_ratio = 2, .max_ratio = 2};
  require_near(Compose({RandomResizedCrop({2, 5}, wide)})(picture(100, 5)),
               picture(100, 5).narrow(1, 49, 2).to_vector<float>(), 0);
  require_error<ValueError>([] { RandomResizedCrop(4, {.min_scale = 0}); },
                            "the scale has to be a range");
}

BOOST_AUTO_TEST_CASE(colours_as_torchvision_adjusts_them) {
  require_colors(adjust_brightness, 1.3,
                 {255, 13, 116, 255, 0, 42, 39, 255, 116, 166, 0, 44, 78, 52, 118, 0, 255, 45},
                 {1, 0.0509804f, 0.458824f, 1, 0, 0.168235f, 0.152941f, 1, 0.458824f, 0.652549f, 0,
                  0.173333f, 0.305882f, 0.203922f, 0.463922f, 0, 1, 0.178431f});
  require_colors(adjust_contrast, 0.4,
                 {132, 56, 88, 154, 52, 65, 64, 140, 88, 103, 52, 65, 76, 68, 88, 52, 154, 66},
                 {0.51971f, 0.221671f, 0.347161f, 0.605985f, 0.205985f, 0.257749f, 0.253044f,
                  0.551083f, 0.347161f, 0.406769f, 0.205985f, 0.259318f, 0.300102f, 0.26873f,
                  0.34873f, 0.205985f, 0.605985f, 0.260887f});
  require_colors(adjust_saturation, 1.7,
                 {255, 0, 90, 255, 0, 33, 0, 255, 90, 111, 0, 34, 43, 0, 91, 0, 255, 36},
                 {1, 0, 0.352653f, 1, 0, 0.127184f, 0, 1, 0.352653f, 0.437848f, 0, 0.13385f,
                  0.16878f, 0, 0.35932f, 0, 1, 0.140517f});
  require_colors(adjust_hue, 0.2,
                 {196, 10, 91, 76, 255, 34, 200, 148, 90, 255, 0, 33, 30, 220, 91, 0, 204, 35},
                 {0.768627f, 0.0392157f, 0.356863f, 0.298039f, 1, 0.134902f, 0.784314f, 0.580392f,
                  0.352941f, 1, 0, 0.129412f, 0.117647f, 0.862745f, 0.356078f, 0, 0.8f, 0.137255f});
  require_colors(adjust_hue, -0.4,
                 {30, 220, 90, 26, 102, 34, 128, 10, 91, 0, 255, 35, 200, 64, 90, 255, 0, 33},
                 {0.117647f, 0.862745f, 0.35451f, 0.101961f, 0.4f, 0.136471f, 0.501961f, 0.0392157f,
                  0.356863f, 0, 1, 0.137255f, 0.784314f, 0.250981f, 0.352941f, 1, 0, 0.129412f});
  require_near(Compose({Grayscale()})(colors(u8)), {84, 136, 90, 151, 29, 33}, 0);
  BOOST_TEST((Compose({RandomGrayscale(1)})(colors(f32)).shape() == Shape{3, 2, 3}));
  BOOST_TEST((Compose({Grayscale(3)})(picture(2, 2)).shape() == Shape{3, 2, 2}));
  // Grey images have neither hue nor saturation.
  require_near(Compose({ColorJitter({.saturation = 0.9, .hue = 0.5})})(picture(2, 2)),
               {0, 37, 74, 111}, 0);
  require_error<ShapeError>(
      [] {
        Compose({ColorJitter({.hue = 0.1})})(zeros({2, 3, 3}));
      },
      "ColorJitter: an image has one channel or three", "(2, 3, 3)");
  require_error<ValueError>([] { ColorJitter({.hue = 0.6}); },
                            "hue has to be from 0 to 0.5, but is 0.6");
  require_error<ValueError>([] { ColorJitter({.contrast = -1}); },
                            "contrast has to be finite and at least 0");
}

BOOST_AUTO_TEST_CASE(jitter_stays_in_its_range) {
  const Compose jitter({ColorJitter({.brightness = 0.5})});
  float least = 1, most = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const float x = jitter(full({1, 1, 1}, 0.5), Random(i)).item<float>();
    least = std::min(least, x), most = std::max(most, x);
  }
  BOOST_TEST(least >= 0.25f);
  BOOST_TEST(least < 0.27f);
  BOOST_TEST(most <= 0.75f);
  BOOST_TEST(most > 0.73f);
}

BOOST_AUTO_TEST_CASE(mixed_batches) {
  const Tensor x = arange(0, 12).reshape({3, 4}), labels = tensor(std::vector<int64_t>{2, 0, 1});
  Random random(1);
  const Batch mixed = MixUp({.num_classes = 4})({x, labels}, random);
  const float share = mixed.target.to_vector<float>()[2];
  BOOST_TEST((share > 0 && share < 1));
  require_near(mixed.target,
               {0, 1 - share, share, 0, share, 0, 1 - share, 0, 1 - share, share, 0, 0}, 1e-6f);
  const float other = 1 - share;
  require_near(mixed.data.narrow(0, 0, 2),
               {8 * other, share + 9 * other, 2 * share + 10 * other, 3 * share + 11 * other,
                4 * share, 5 * share + other, 6 * share + 2 * other, 7 * share + 3 * other},
               1e-5f);
  BOOST_TEST(std::isfinite(cross_entropy(zeros({3, 4}), mixed.target).item<float>()));
  // The shares of Beta(a, a) have the variance 1 / (8 a + 4) around a half.
  for (double alpha : {0.01, 0.2, 1., 5.}) {
    const MixUp mix({.num_classes = 2, .alpha = alpha});
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < 3000; ++i) {
      Random own = random.at(i);
      const double s = mix({zeros({2, 1}), tensor(std::vector<int64_t>{0, 1})}, own)
                           .target[0][0]
                           .item<double>() -
                       0.5;
      sum += s / 3000, squares += s * s / 3000;
    }
    BOOST_TEST(std::abs(sum) < 0.05);
    BOOST_TEST(std::abs(squares * (8 * alpha + 4) - 1) < 0.15);
  }
  require_error<DTypeError>(
      [&] {
        MixUp({.num_classes = 4})({x.to(u8), labels}, random);
      },
      "put Normalize");
  require_error<IndexError>(
      [&] {
        MixUp({.num_classes = 2})({x, labels}, random);
      },
      "label 2 of example 0 of the batch is not in [0, 2)");
  require_error<ShapeError>([&] { MixUp({})({x, labels}, random); }, "num_classes is 0");
  require_error<ValueError>([&] { MixUp({.alpha = 0}); }, "alpha has to be finite and positive");
}

BOOST_AUTO_TEST_CASE(rectangles_of_the_image_in_front) {
  Tensor x = zeros({2, 1, 8, 6});
  x[1].fill_(1);
  Random random(0);
  bool seen = false;
  for (uint64_t i = 0; i < 20; ++i) {
    Random own = random.at(i);
    const Batch mixed = CutMix({.num_classes = 2})({x, tensor(std::vector<int64_t>{0, 1})}, own);
    const float foreign = mixed.data[0].sum().item<float>() / 48;
    BOOST_TEST(mixed.data[1].sum().item<float>() == 48 - 48 * foreign);
    require_near(mixed.target, {1 - foreign, foreign, foreign, 1 - foreign}, 1e-6f);
    seen |= foreign > 0.1f;
  }
  BOOST_TEST(seen);
}

// Two epochs differ, and the same seed repeats them, whatever the number of workers.
BOOST_AUTO_TEST_CASE(a_loader_mixes_in_its_workers) {
  const TensorDataset set(arange(0, 40).reshape({20, 2}), arange(0, 20).to(i64));
  auto batches = [&](int workers) {
    DataLoader loader(set, {.batch_size = 6,
                            .seed = 5,
                            .workers = workers,
                            .transform_batch = MixUp({.num_classes = 20})});
    std::vector<Floats> all;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (auto& [data, target] : loader) {
        BOOST_TEST((target.shape() == Shape{data.size(0), 20}));
        all.push_back(data.to_vector<float>());
      }
    return all;
  };
  const auto expected = batches(0);
  BOOST_TEST(expected.size() == 8u);
  BOOST_TEST((batches(3) == expected));
  BOOST_TEST((expected[0] != expected[4]));
}

BOOST_AUTO_TEST_SUITE_END()
