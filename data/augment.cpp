#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include <tenon/core/base/number_text.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/data/augment.h>
#include <tenon/data/crop.h>

namespace tenon::data {
namespace {

constexpr int64_t kMaxSide = int64_t{1} << 24;  // so that sums of sizes do not overflow

Pair checked_padding(const char* step, Pair padding) {
  if (padding.height < 0 || padding.width < 0 || padding.height > kMaxSide ||
      padding.width > kMaxSide)
    throw ValueError(fmt::format("{}: padding has to be from 0 to {}, but is {} × {}", step,
                                 +kMaxSide, padding.height, padding.width));
  return padding;
}

// Returns the place beyond the edge of `size` pixels that `at` stands for.
int64_t mirrored(int64_t at, int64_t size, PadMode mode) {
  if (mode == PadMode::edge) return std::clamp<int64_t>(at, 0, size - 1);
  const int64_t twice = mode == PadMode::reflect ? 0 : 1;  // whether the edge is there twice
  if (at < 0) return -at - twice;
  if (at >= size) return 2 * size - 2 + twice - at;
  return at;
}

void require_mirror(const char* step, const Image& image, int64_t above, int64_t below,
                    int64_t size, PadMode mode, const char* side) {
  if (mode == PadMode::constant || (above <= 0 && below <= 0)) return;
  const int64_t most = mode == PadMode::reflect ? size - 1 : size;
  if (size == 0 || (mode != PadMode::edge && std::max(above, below) > most))
    throw ShapeError(fmt::format(
        "{}: an image of shape {} cannot be continued by {} pixels of its own beyond its {}", step,
        image.shape(), std::max(above, below), side));
}

template <class T>
void cut(const T* from, T* to, const Shape& old, const Window& window, double fill, PadMode mode) {
  const int64_t height = old[1], width = old[2];
  // The columns that are inside of the old image.
  const int64_t begin = std::clamp<int64_t>(-window.left, 0, window.width),
                end = std::clamp<int64_t>(width - window.left, begin, window.width);
  for (int64_t c = 0; c < old[0]; ++c, from += height * width)
    for (int64_t y = 0; y < window.height; ++y, to += window.width) {
      int64_t row = y + window.top;
      if (row < 0 || row >= height) {
        if (mode == PadMode::constant) {
          std::fill_n(to, window.width, static_cast<T>(fill));
          continue;
        }
        row = mirrored(row, height, mode);
      }
      const T* line = from + row * width;
      if (end > begin)
        std::memcpy(to + begin, line + begin + window.left,
                    static_cast<size_t>(end - begin) * sizeof(T));
      auto beyond = [&](int64_t x) {
        return mode == PadMode::constant ? static_cast<T>(fill)
                                         : line[mirrored(x + window.left, width, mode)];
      };
      for (int64_t x = 0; x < begin; ++x) to[x] = beyond(x);
      for (int64_t x = end; x < window.width; ++x) to[x] = beyond(x);
    }
}

template <class T>
void mirror(Image& image) {
  T* row = image.pixels<T>().data();
  const int64_t width = image.width(), rows = width ? image.numel() / width : 0;
  for (int64_t y = 0; y < rows; ++y, row += width) std::reverse(row, row + width);
}

template <class T>
void erase(Image& image, const Window& window, double value) {
  T* pixels = image.pixels<T>().data();
  for (int64_t c = 0; c < image.channels(); ++c)
    for (int64_t y = 0; y < window.height; ++y)
      std::fill_n(pixels + (c * image.height() + window.top + y) * image.width() + window.left,
                  window.width, static_cast<T>(value));
}

}  // namespace

Pair checked_size(const char* step, Pair size) {
  if (size.height < 1 || size.width < 1 || size.height > kMaxSide || size.width > kMaxSide)
    throw ValueError(fmt::format("{}: the size has to be from 1 to {}, but is {} × {}", step,
                                 +kMaxSide, size.height, size.width));
  return size;
}

double checked_probability(const char* step, double p) {
  if (!(p >= 0 && p <= 1))
    throw ValueError(fmt::format("{}: p has to be from 0 to 1, but is {}", step, number_text(p)));
  return p;
}

void require_pixel(const char* step, const Image& image, double value) {
  if (image.dtype() == DType::u8 && !(value >= 0 && value <= 255 && value == std::floor(value)))
    throw ValueError(
        fmt::format("{}: a pixel of a u8 image is a whole number from 0 to 255, not {}", step,
                    number_text(value)));
}

void crop(const char* step, Image& image, const Window& window, double fill, PadMode mode) {
  if (mode == PadMode::constant) require_pixel(step, image, fill);
  require_mirror(step, image, -window.top, window.top + window.height - image.height(),
                 image.height(), mode, "upper or lower edge");
  require_mirror(step, image, -window.left, window.left + window.width - image.width(),
                 image.width(), mode, "left or right edge");
  const Shape old = image.shape();
  const void* from = image.remake(image.dtype(), old[0], window.height, window.width);
  if (image.numel() == 0) return;
  if (image.dtype() == DType::u8)
    cut(static_cast<const uint8_t*>(from), image.pixels<uint8_t>().data(), old, window, fill, mode);
  else
    cut(static_cast<const float*>(from), image.pixels<float>().data(), old, window, fill, mode);
}

Pad::Pad(Pair padding, const PadOptions& options)
    : padding_(checked_padding("Pad", padding)), options_(options) {}
void Pad::operator()(Image& image, Random&) const {
  crop("Pad", image,
       {-padding_.height, -padding_.width, image.height() + 2 * padding_.height,
        image.width() + 2 * padding_.width},
       options_.fill, options_.mode);
}

RandomCrop::RandomCrop(Pair size, const RandomCropOptions& options)
    : size_(checked_size("RandomCrop", size)), options_(options) {
  checked_padding("RandomCrop", options.padding);
}
void RandomCrop::operator()(Image& image, Random& random) const {
  // An image that is too small is padded by what it lacks, at both edges, as torchvision does.
  auto padded = [&](int64_t side, int64_t size, int64_t padding) {
    const int64_t lacks = size - (side + 2 * padding);
    return options_.pad_if_needed && lacks > 0 ? padding + lacks : padding;
  };
  const Pair by(padded(image.height(), size_.height, options_.padding.height),
                padded(image.width(), size_.width, options_.padding.width));
  const int64_t down = image.height() + 2 * by.height - size_.height,
                right = image.width() + 2 * by.width - size_.width;
  if (down < 0 || right < 0)
    throw ShapeError(fmt::format(
        "RandomCrop: cannot take {} × {} pixels of an image of shape {} with a padding of {} × {}; "
        "set pad_if_needed, or put Resize in front of it",
        size_.height, size_.width, image.shape(), by.height, by.width));
  const auto top = static_cast<int64_t>(random.below(static_cast<uint64_t>(down) + 1)),
             left = static_cast<int64_t>(random.below(static_cast<uint64_t>(right) + 1));
  crop("RandomCrop", image, {top - by.height, left - by.width, size_.height, size_.width},
       options_.fill, options_.mode);
}

CenterCrop::CenterCrop(Pair size) : size_(checked_size("CenterCrop", size)) {}
void CenterCrop::operator()(Image& image, Random&) const {
  // Half of the difference, rounded to even as Python's round() does; a smaller image has the
  // smaller half of its padding above and to the left.
  auto offset = [](int64_t side, int64_t size) {
    if (side < size) return -((size - side) / 2);
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(side - size) / 2));
  };
  crop("CenterCrop", image,
       {offset(image.height(), size_.height), offset(image.width(), size_.width), size_.height,
        size_.width});
}

RandomHorizontalFlip::RandomHorizontalFlip(double p)
    : p_(checked_probability("RandomHorizontalFlip", p)) {}
void RandomHorizontalFlip::operator()(Image& image, Random& random) const {
  if (!random.chance(p_)) return;
  image.dtype() == DType::u8 ? mirror<uint8_t>(image) : mirror<float>(image);
}

RandomVerticalFlip::RandomVerticalFlip(double p)
    : p_(checked_probability("RandomVerticalFlip", p)) {}
void RandomVerticalFlip::operator()(Image& image, Random& random) const {
  if (!random.chance(p_)) return;
  const auto row = static_cast<size_t>(image.width()) * size_of(image.dtype());
  auto* channel = static_cast<std::byte*>(image.data());
  const auto height = static_cast<size_t>(image.height());
  for (int64_t c = 0; row && c < image.channels(); ++c, channel += height * row)
    for (size_t y = 0; y < height / 2; ++y)
      std::swap_ranges(channel + y * row, channel + (y + 1) * row,
                       channel + (height - 1 - y) * row);
}

Normalize::Normalize(const ToFloat& how)
    : how_(how),
      table_(std::make_shared<PixelTable>(
          how, static_cast<int64_t>(std::max(how.mean.size(), how.std.size())), "Normalize")) {}
Normalize::Normalize(std::vector<double> mean, std::vector<double> std)
    : Normalize(ToFloat{std::move(mean), std::move(std)}) {}
void Normalize::operator()(Image& image, Random&) const {
  const int64_t channels = image.channels(), pixels = image.height() * image.width();
  if (table_->tables() != 1 && table_->tables() != channels)
    throw ValueError(fmt::format(
        "Normalize: there are means or stds for {} channels, and the image has shape {}",
        table_->tables(), image.shape()));
  if (image.dtype() == DType::u8) {
    const void* from = image.remake(DType::f32, channels, image.height(), image.width());
    if (image.numel() == 0) return;
    for (int64_t c = 0; c < channels; ++c)
      table_->convert_channel(c, static_cast<const uint8_t*>(from) + c * pixels,
                              image.pixels<float>().data() + c * pixels, pixels);
    return;
  }
  float* x = image.pixels<float>().data();
  for (int64_t c = 0; c < channels; ++c) {
    const auto mean = static_cast<float>(how_.mean[how_.mean.size() == 1 ? 0 : c]),
               std = static_cast<float>(how_.std[how_.std.size() == 1 ? 0 : c]);
    for (int64_t i = 0; i < pixels; ++i, ++x) *x = (*x - mean) / std;
  }
}

RandomErasing::RandomErasing(const RandomErasingOptions& options) : options_(options) {
  checked_probability("RandomErasing", options.p);
  if (!(options.min_scale >= 0 && options.min_scale <= options.max_scale && options.max_scale <= 1))
    throw ValueError(
        fmt::format("RandomErasing: the scale has to be a range in [0, 1], but is {} to {}",
                    number_text(options.min_scale), number_text(options.max_scale)));
  checked_ratio("RandomErasing", options.min_ratio, options.max_ratio);
}
void RandomErasing::operator()(Image& image, Random& random) const {
  require_pixel("RandomErasing", image, options_.value);
  if (!random.chance(options_.p)) return;
  const Window window = random_window(image, random, options_.min_scale, options_.max_scale,
                                      options_.min_ratio, options_.max_ratio, /*whole=*/false);
  if (window.height == 0) return;
  image.dtype() == DType::u8 ? erase<uint8_t>(image, window, options_.value)
                             : erase<float>(image, window, options_.value);
}

void checked_ratio(const char* step, double least, double most) {
  if (!(least > 0 && least <= most && std::isfinite(most)))
    throw ValueError(
        fmt::format("{}: the ratio has to be a range of positive numbers, but is {} to {}", step,
                    number_text(least), number_text(most)));
}

// As torchvision does: the area and the logarithm of the ratio are uniform, and what does not fit
// is tried again, ten times.
Window random_window(const Image& image, Random& random, double min_scale, double max_scale,
                     double min_ratio, double max_ratio, bool whole) {
  const double area = static_cast<double>(image.height()) * static_cast<double>(image.width());
  for (int i = 0; i < 10; ++i) {
    const double part = area * random.uniform64(min_scale, max_scale),
                 ratio = std::exp(random.uniform64(std::log(min_ratio), std::log(max_ratio)));
    const auto height = static_cast<int64_t>(std::nearbyint(std::sqrt(part * ratio))),
               width = static_cast<int64_t>(std::nearbyint(std::sqrt(part / ratio)));
    // An erased piece is smaller than the image; a crop may be the whole.
    const int64_t beyond = whole ? 1 : 0;
    if (height < 1 || width < 1 || height >= image.height() + beyond ||
        width >= image.width() + beyond)
      continue;
    const auto down = static_cast<uint64_t>(image.height() - height + 1),
               right = static_cast<uint64_t>(image.width() - width + 1);
    const auto top = static_cast<int64_t>(random.below(down));
    return {top, static_cast<int64_t>(random.below(right)), height, width};
  }
  return {};
}

}  // namespace tenon::data
