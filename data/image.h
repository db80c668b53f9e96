// Images while they are read, and the steps that change them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <tenon/core/tensor.h>
#include <tenon/data/random.h>

namespace tenon::data {

// One image (C, H, W) of u8 or f32 pixels in memory of its own, which steps change in place. It is
// used by one thread, and costs no operators. The memory is kept for the next image.
class TENON_API Image {
 public:
  // Makes an image without pixels, of u8 and shape (0, 0, 0).
  Image() = default;
  Image(Image&&) noexcept = default;
  Image& operator=(Image&&) noexcept = default;

  // Returns the type of the pixels, u8 or f32.
  DType dtype() const { return dtype_; }
  // Returns the number of channels, C.
  int64_t channels() const { return channels_; }
  // Returns the number of rows, H.
  int64_t height() const { return height_; }
  // Returns the number of columns, W.
  int64_t width() const { return width_; }
  // Returns the number of pixels of all channels.
  int64_t numel() const { return channels_ * height_ * width_; }
  // Returns (channels, height, width).
  Shape shape() const { return {channels_, height_, width_}; }

  // Returns the pixels, row by row, one channel after the other. T is uint8_t or float. Throws a
  // DTypeError if the pixels are of the other type.
  template <class T>
  std::span<T> pixels() {
    require(DTypeOf<T>::value);
    return {static_cast<T*>(data()), static_cast<size_t>(numel())};
  }
  template <class T>
  std::span<const T> pixels() const {
    return const_cast<Image*>(this)->pixels<T>();
  }
  // Return where the first pixel is; null if the image never had any.
  void* data() { return now_.bytes.get(); }
  const void* data() const { return now_.bytes.get(); }

  // Gives the image another size or type. Its pixels are undefined after that. Returns the former
  // ones, which stay valid until the next call. Throws a DTypeError unless dtype is u8 or f32, a
  // ShapeError for sizes that cannot be addressed, and an OutOfMemoryError if there is no memory.
  const void* remake(DType dtype, int64_t channels, int64_t height, int64_t width);
  // Gives the image this size and type and copies its pixels from memory. Errors are those of
  // remake.
  void assign(const void* pixels, DType dtype, int64_t channels, int64_t height, int64_t width);

 private:
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    size_t capacity = 0;
  };
  void require(DType dtype) const;

  DType dtype_ = DType::u8;
  int64_t channels_ = 0, height_ = 0, width_ = 0;
  Buffer now_, former_;
};

// A function that changes an image: the transforms of <tenon/data/augment.h> and its neighbors, or
// any function of your own. It may be called by several threads at the same time. All random
// numbers have to come from `random`, so that they are the same whichever thread calls it.
using Step = std::function<void(Image& image, Random& random)>;

// Steps that are done one after the other: Compose({RandomCrop(32, {.padding = 4}),
// RandomHorizontalFlip()}). It changes images as a step does, so that Compose is a Step as well.
class TENON_API Compose {
 public:
  // Makes a step that changes nothing.
  Compose() = default;
  // Make a step of several. Throw a ValueError if one of them is an empty function.
  Compose(std::initializer_list<Step> steps) : Compose(std::vector<Step>(steps)) {}
  explicit Compose(std::vector<Step> steps);

  // Does all steps with one image.
  void operator()(Image& image, Random& random) const;
  // Transforms one image (C, H, W) or each of several (N, C, H, W), u8 or f32, and returns them on
  // cpu:0. Image i draws from random.at(i). Throws a ShapeError for a tensor of other dimensions or
  // without images, a DTypeError for another dtype, and whatever the steps throw.
  Tensor operator()(const Tensor& images, const Random& random = Random(0)) const;

  // Returns whether there are no steps.
  bool empty() const { return steps_.empty(); }

 private:
  std::vector<Step> steps_;
};

}  // namespace tenon::data
