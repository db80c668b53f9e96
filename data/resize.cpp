#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <tenon/core/base/number_text.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/data/crop.h>
#include <tenon/data/resize.h>

namespace tenon::data {
namespace {

// For each new pixel of a row or column: the old ones that it is made of, and their weights.
struct Weights {
  std::vector<int64_t> first, count;
  std::vector<float> values;  // `most` for each new pixel
  int64_t most = 2;

  Weights(int64_t from, int64_t to, bool antialias) {
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    const double wide = antialias ? std::max(scale, 1.) : 1;  // half of the triangle's width
    most = std::min(from, static_cast<int64_t>(std::ceil(wide)) * 2 + 1);
    first.resize(static_cast<size_t>(to));
    count.resize(static_cast<size_t>(to));
    values.resize(static_cast<size_t>(to * most));
    for (int64_t i = 0; i < to; ++i) {
      double center = scale * (static_cast<double>(i) + 0.5);
      // Without antialiasing the filter does not reach beyond the edge: the edge is repeated.
      if (!antialias) center = std::clamp(center, 0.5, static_cast<double>(from) - 0.5);
      const auto begin = std::max<int64_t>(static_cast<int64_t>(center - wide + 0.5), 0),
                 end = std::min(static_cast<int64_t>(center + wide + 0.5), from);
      float* weights = values.data() + i * most;
      double sum = 0;
      for (int64_t j = begin; j < end; ++j) {
        const double at = std::abs((static_cast<double>(j) - center + 0.5) / wide);
        weights[j - begin] = static_cast<float>(std::max(0., 1 - at));
        sum += std::max(0., 1 - at);
      }
      for (int64_t j = 0; j < end - begin; ++j)
        weights[j] = static_cast<float>(static_cast<double>(weights[j]) / sum);
      first[static_cast<size_t>(i)] = begin;
      count[static_cast<size_t>(i)] = end - begin;
    }
  }
};

template <class T>
void widen_row(const T* row, float* to, const Weights& weights) {
  const float* w = weights.values.data();
  for (size_t x = 0; x < weights.first.size(); ++x, w += weights.most) {
    const T* from = row + weights.first[x];
    float sum = 0;
    for (int64_t j = 0; j < weights.count[x]; ++j) sum += w[j] * static_cast<float>(from[j]);
    to[x] = sum;
  }
}

void store(const float* from, float* to, int64_t count) { std::copy_n(from, count, to); }
void store(const float* from, uint8_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<uint8_t>(std::lrintf(std::clamp(from[i], 0.f, 255.f)));
}

// Rows first, then columns, in f32. A row is widened when the first new row needs it and kept as
// long as others may.
template <class T>
void bilinear(const T* from, Image& image, const Shape& old, bool antialias) {
  const int64_t height = image.height(), width = image.width();
  const Weights across(old[2], width, antialias), down(old[1], height, antialias);
  std::vector<float> rows(static_cast<size_t>(down.most * width)), sum(static_cast<size_t>(width));
  T* to = image.pixels<T>().data();
  for (int64_t c = 0; c < old[0]; ++c, from += old[1] * old[2]) {
    int64_t ready = 0;  // old rows that were widened; row y is in rows at y % most
    for (int64_t y = 0; y < height; ++y, to += width) {
      const int64_t begin = down.first[static_cast<size_t>(y)],
                    end = begin + down.count[static_cast<size_t>(y)];
      for (ready = std::max(ready, begin); ready < end; ++ready)
        widen_row(from + ready * old[2], rows.data() + ready % down.most * width, across);
      std::fill(sum.begin(), sum.end(), 0.f);
      for (int64_t j = begin; j < end; ++j) {
        const float weight = down.values[static_cast<size_t>(y * down.most + j - begin)];
        const float* row = rows.data() + j % down.most * width;
        for (int64_t x = 0; x < width; ++x) sum[static_cast<size_t>(x)] += weight * row[x];
      }
      store(sum.data(), to, width);
    }
  }
}

std::vector<int64_t> nearest_places(int64_t from, int64_t to) {
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  std::vector<int64_t> places(static_cast<size_t>(to));
  for (size_t i = 0; i < places.size(); ++i)
    places[i] = std::min(static_cast<int64_t>(static_cast<float>(i) * scale), from - 1);
  return places;
}

template <class T>
void nearest(const T* from, Image& image, const Shape& old) {
  const std::vector<int64_t> across = nearest_places(old[2], image.width()),
                             down = nearest_places(old[1], image.height());
  T* to = image.pixels<T>().data();
  for (int64_t c = 0; c < old[0]; ++c, from += old[1] * old[2])
    for (int64_t y : down)
      for (int64_t x : across) *to++ = from[y * old[2] + x];
}

void resize(const char* step, Image& image, int64_t height, int64_t width, ResizeMode mode,
            bool antialias) {
  const Shape old = image.shape();
  if (old[1] == 0 || old[2] == 0)
    throw ShapeError(fmt::format("{}: an image of shape {} has no pixels", step, old));
  if (old[1] == height && old[2] == width) return;
  const void* from = image.remake(image.dtype(), old[0], height, width);
  const bool bytes = image.dtype() == DType::u8;
  if (image.numel() == 0) return;
  if (mode == ResizeMode::nearest)
    bytes ? nearest(static_cast<const uint8_t*>(from), image, old)
          : nearest(static_cast<const float*>(from), image, old);
  else
    bytes ? bilinear(static_cast<const uint8_t*>(from), image, old, antialias)
          : bilinear(static_cast<const float*>(from), image, old, antialias);
}

}  // namespace

Resize::Resize(Pair size, const ResizeOptions& options)
    : size_(checked_size("Resize", size)), options_(options) {
  if (options.max_size != 0 && (size.numbers != 1 || options.max_size < size.height))
    throw ValueError(fmt::format(
        "Resize: max_size is for the longer edge where the shorter one is given, and cannot be "
        "below it; the size is {} × {} and max_size {}",
        size.height, size.width, options.max_size));
}

void Resize::operator()(Image& image, Random&) const {
  int64_t height = size_.height, width = size_.width;
  if (size_.numbers == 1) {
    const int64_t shorter = std::min(image.height(), image.width()),
                  longer = std::max(image.height(), image.width());
    if (shorter == 0)
      throw ShapeError(fmt::format("Resize: an image of shape {} has no pixels", image.shape()));
    int64_t new_short = size_.height, new_long = 0;
    if (__builtin_mul_overflow(new_short, longer, &new_long) ||
        (new_long /= shorter) > (int64_t{1} << 31))
      throw ShapeError(fmt::format(
          "Resize: an image of shape {} would get absurdly long with a shorter edge of {}",
          image.shape(), size_.height));
    if (options_.max_size != 0 && new_long > options_.max_size) {
      new_short = std::max<int64_t>(options_.max_size * new_short / new_long, 1);
      new_long = options_.max_size;
    }
    height = image.height() <= image.width() ? new_short : new_long;
    width = image.height() <= image.width() ? new_long : new_short;
  }
  resize("Resize", image, height, width, options_.mode, options_.antialias);
}

RandomResizedCrop::RandomResizedCrop(Pair size, const RandomResizedCropOptions& options)
    : size_(checked_size("RandomResizedCrop", size)), options_(options) {
  if (!(options.min_scale > 0 && options.min_scale <= options.max_scale && options.max_scale <= 1))
    throw ValueError(
        fmt::format("RandomResizedCrop: the scale has to be a range in (0, 1], but is {} to {}",
                    number_text(options.min_scale), number_text(options.max_scale)));
  checked_ratio("RandomResizedCrop", options.min_ratio, options.max_ratio);
}

void RandomResizedCrop::operator()(Image& image, Random& random) const {
  const int64_t height = image.height(), width = image.width();
  if (height == 0 || width == 0)
    throw ShapeError(
        fmt::format("RandomResizedCrop: an image of shape {} has no pixels", image.shape()));
  // The other takes height by width.
  Window window = random_window(image, random, options_.min_scale, options_.max_scale,
                                1 / options_.max_ratio, 1 / options_.min_ratio, /*whole=*/true);
  if (window.height == 0) {
    const double ratio = static_cast<double>(width) / static_cast<double>(height),
                 nearest = std::clamp(ratio, options_.min_ratio, options_.max_ratio);
    // Python's round() goes to the even number, too.
    auto rounded = [](double side) { return static_cast<int64_t>(std::nearbyint(side)); };
    window.height = ratio < nearest ? rounded(static_cast<double>(width) / nearest) : height;
    window.width = ratio > nearest ? rounded(static_cast<double>(height) * nearest) : width;
    window.height = std::clamp<int64_t>(window.height, 1, height);
    window.width = std::clamp<int64_t>(window.width, 1, width);
    window.top = (height - window.height) / 2, window.left = (width - window.width) / 2;
  }
  crop("RandomResizedCrop", image, window);
  resize("RandomResizedCrop", image, size_.height, size_.width, options_.mode, options_.antialias);
}

}  // namespace tenon::data
