#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <tenon/core/base/number_text.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/data/color.h>
#include <tenon/data/crop.h>

namespace tenon::data {
namespace {

void require_colors(const char* step, const Image& image) {
  if (image.channels() != 1 && image.channels() != 3)
    throw ShapeError(fmt::format(
        "{}: an image has one channel or three (red, green, blue), and this one has shape {}", step,
        image.shape()));
}

void require_factor(const char* step, double factor) {
  if (!(factor >= 0 && std::isfinite(factor)))
    throw ValueError(fmt::format("{}: the factor has to be finite and at least 0, but is {}", step,
                                 number_text(factor)));
}

// Returns `ratio` of x and the rest of y, in the range of pixels. u8 is cut off, as torchvision
// does.
uint8_t blend(uint8_t x, float y, float ratio) {
  return static_cast<uint8_t>(
      std::clamp(ratio * static_cast<float>(x) + (1 - ratio) * y, 0.f, 255.f));
}
float blend(float x, float y, float ratio) {
  return std::clamp(ratio * x + (1 - ratio) * y, 0.f, 1.f);
}

uint8_t gray(uint8_t r, uint8_t g, uint8_t b) {
  return static_cast<uint8_t>(0.2989f * static_cast<float>(r) + 0.587f * static_cast<float>(g) +
                              0.114f * static_cast<float>(b));
}
float gray(float r, float g, float b) { return 0.2989f * r + 0.587f * g + 0.114f * b; }

// Calls function(red, green, blue) with the pixels of an image of three channels.
template <class T, class F>
void for_each_pixel(Image& image, F&& function) {
  const int64_t count = image.height() * image.width();
  T *r = image.pixels<T>().data(), *g = r + count, *b = g + count;
  for (int64_t i = 0; i < count; ++i) function(r[i], g[i], b[i]);
}

template <class T>
void brightness(Image& image, float factor) {
  for (T& x : image.pixels<T>()) x = blend(x, 0, factor);
}

template <class T>
void contrast(Image& image, float factor) {
  double sum = 0;
  if (image.channels() == 1)
    for (T x : image.pixels<T>()) sum += static_cast<double>(x);
  else
    for_each_pixel<T>(image, [&](T r, T g, T b) { sum += static_cast<double>(gray(r, g, b)); });
  const auto mean = static_cast<float>(sum / static_cast<double>(image.height() * image.width()));
  for (T& x : image.pixels<T>()) x = blend(x, mean, factor);
}

template <class T>
void saturation(Image& image, float factor) {
  for_each_pixel<T>(image, [&](T& r, T& g, T& b) {
    const auto grey = static_cast<float>(gray(r, g, b));
    r = blend(r, grey, factor), g = blend(g, grey, factor), b = blend(b, grey, factor);
  });
}

// Rotates the hue of a pixel in [0, 1] by way of hue, saturation and value.
void rotate_hue(float& r, float& g, float& b, float rotation) {
  const float most = std::max({r, g, b}), least = std::min({r, g, b}), range = most - least;
  if (range == 0) return;
  const float rc = (most - r) / range, gc = (most - g) / range, bc = (most - b) / range;
  float h = most == r ? bc - gc : most == g ? 2 + rc - bc : 4 + gc - rc;
  h = std::fmod(h / 6 + 1, 1.f) + rotation;
  h -= std::floor(h);
  const float s = range / most, sector = std::floor(h * 6), f = h * 6 - sector;
  auto part = [&](float share) { return std::clamp(most * (1 - share), 0.f, 1.f); };
  const float p = part(s), q = part(s * f), t = part(s * (1 - f));
  switch (static_cast<int>(sector) % 6) {
    case 0:
      r = most, g = t, b = p;
      break;
    case 1:
      r = q, g = most, b = p;
      break;
    case 2:
      r = p, g = most, b = t;
      break;
    case 3:
      r = p, g = q, b = most;
      break;
    case 4:
      r = t, g = p, b = most;
      break;
    default:
      r = most, g = p, b = q;
  }
}

void hue(uint8_t& r, uint8_t& g, uint8_t& b, float rotation) {
  float x = static_cast<float>(r) / 255, y = static_cast<float>(g) / 255,
        z = static_cast<float>(b) / 255;
  rotate_hue(x, y, z, rotation);
  // What torchvision multiplies with, so that the 256 values are equally wide.
  auto byte = [](float value) { return static_cast<uint8_t>(value * (256 - 1e-3f)); };
  r = byte(x), g = byte(y), b = byte(z);
}
void hue(float& r, float& g, float& b, float rotation) {
  r = std::clamp(r, 0.f, 1.f), g = std::clamp(g, 0.f, 1.f), b = std::clamp(b, 0.f, 1.f);
  rotate_hue(r, g, b, rotation);
}

template <class T>
void make_gray(Image& image) {
  for_each_pixel<T>(image, [](T& r, T& g, T& b) { r = g = b = gray(r, g, b); });
}

}  // namespace

void adjust_brightness(Image& image, double factor) {
  require_factor("adjust_brightness", factor);
  require_colors("adjust_brightness", image);
  const auto by = static_cast<float>(factor);
  image.dtype() == DType::u8 ? brightness<uint8_t>(image, by) : brightness<float>(image, by);
}

void adjust_contrast(Image& image, double factor) {
  require_factor("adjust_contrast", factor);
  require_colors("adjust_contrast", image);
  const auto by = static_cast<float>(factor);
  if (image.numel() == 0) return;
  image.dtype() == DType::u8 ? contrast<uint8_t>(image, by) : contrast<float>(image, by);
}

void adjust_saturation(Image& image, double factor) {
  require_factor("adjust_saturation", factor);
  require_colors("adjust_saturation", image);
  const auto by = static_cast<float>(factor);
  if (image.channels() == 1) return;
  image.dtype() == DType::u8 ? saturation<uint8_t>(image, by) : saturation<float>(image, by);
}

void adjust_hue(Image& image, double rotation) {
  if (!(rotation >= -0.5 && rotation <= 0.5))
    throw ValueError(fmt::format("adjust_hue: the rotation has to be from -0.5 to 0.5, but is {}",
                                 number_text(rotation)));
  require_colors("adjust_hue", image);
  if (image.channels() == 1 || rotation == 0) return;
  auto turn = [by = static_cast<float>(rotation)](auto& r, auto& g, auto& b) { hue(r, g, b, by); };
  image.dtype() == DType::u8 ? for_each_pixel<uint8_t>(image, turn)
                             : for_each_pixel<float>(image, turn);
}

ColorJitter::ColorJitter(const ColorJitterOptions& options) : options_(options) {
  for (auto [name, value] :
       {std::pair("brightness", options.brightness), std::pair("contrast", options.contrast),
        std::pair("saturation", options.saturation)})
    if (!(value >= 0 && std::isfinite(value)))
      throw ValueError(fmt::format("ColorJitter: {} has to be finite and at least 0, but is {}",
                                   name, number_text(value)));
  if (!(options.hue >= 0 && options.hue <= 0.5))
    throw ValueError(fmt::format("ColorJitter: hue has to be from 0 to 0.5, but is {}",
                                 number_text(options.hue)));
}

void ColorJitter::operator()(Image& image, Random& random) const {
  require_colors("ColorJitter", image);
  int order[] = {0, 1, 2, 3};
  for (uint64_t i = 4; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  auto factor = [&](double by) { return random.uniform64(std::max(0., 1 - by), 1 + by); };
  for (int which : order) {
    if (which == 0 && options_.brightness > 0)
      adjust_brightness(image, factor(options_.brightness));
    if (which == 1 && options_.contrast > 0) adjust_contrast(image, factor(options_.contrast));
    if (which == 2 && options_.saturation > 0)
      adjust_saturation(image, factor(options_.saturation));
    if (which == 3 && options_.hue > 0)
      adjust_hue(image, random.uniform64(-options_.hue, options_.hue));
  }
}

RandomGrayscale::RandomGrayscale(double p) : p_(checked_probability("RandomGrayscale", p)) {}
void RandomGrayscale::operator()(Image& image, Random& random) const {
  require_colors("RandomGrayscale", image);
  if (!random.chance(p_) || image.channels() == 1) return;
  image.dtype() == DType::u8 ? make_gray<uint8_t>(image) : make_gray<float>(image);
}

Grayscale::Grayscale(int64_t num_output_channels) : channels_(num_output_channels) {
  if (channels_ != 1 && channels_ != 3)
    throw ValueError(
        fmt::format("Grayscale: num_output_channels is 1 or 3, not {}", num_output_channels));
}
void Grayscale::operator()(Image& image, Random&) const {
  require_colors("Grayscale", image);
  if (image.channels() == 3)
    image.dtype() == DType::u8 ? make_gray<uint8_t>(image) : make_gray<float>(image);
  if (image.channels() == channels_) return;
  const int64_t height = image.height(), width = image.width();
  const auto bytes = static_cast<size_t>(height * width) * size_of(image.dtype());
  auto* from = static_cast<const std::byte*>(image.remake(image.dtype(), channels_, height, width));
  for (int64_t c = 0; c < channels_; ++c)
    std::copy_n(from, bytes,
                static_cast<std::byte*>(image.data()) + static_cast<size_t>(c) * bytes);
}

}  // namespace tenon::data
