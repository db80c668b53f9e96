#include <cstring>
#include <new>
#include <string>

#include <tenon/core/base/host_room.h>
#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/image.h>
#include <tenon/data/image_batch.h>

namespace tenon::data {

void Image::require(DType dtype) const {
  if (dtype != dtype_)
    throw DTypeError(fmt::format("Image: its pixels are {}, not {}", dtype_, dtype));
}

const void* Image::remake(DType dtype, int64_t channels, int64_t height, int64_t width) {
  const Shape shape{channels, height, width};
  if (dtype != DType::u8 && dtype != DType::f32)
    throw DTypeError(fmt::format("Image: pixels are u8 or f32, not {}", dtype));
  require_addressable("Image", shape);
  const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  std::swap(now_, former_);
  if (now_.capacity < bytes) {
    now_ = {};
    try {
      if (!host_has_room(bytes, 1)) throw std::bad_alloc();
      now_ = {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
    } catch (const std::bad_alloc&) {
      std::swap(now_, former_);
      throw OutOfMemoryError(fmt::format(
          "Image: the host has no memory for an image of shape {} and type {}", shape, dtype));
    }
  }
  dtype_ = dtype, channels_ = channels, height_ = height, width_ = width;
  return former_.bytes.get();
}

void Image::assign(const void* pixels, DType dtype, int64_t channels, int64_t height,
                   int64_t width) {
  remake(dtype, channels, height, width);
  if (const size_t bytes = static_cast<size_t>(numel()) * size_of(dtype))
    std::memcpy(data(), pixels, bytes);
}

Compose::Compose(std::vector<Step> steps) : steps_(std::move(steps)) {
  for (size_t i = 0; i < steps_.size(); ++i)
    if (!steps_[i]) throw ValueError(fmt::format("Compose: step {} is an empty function", i));
}

void Compose::operator()(Image& image, Random& random) const {
  for (const Step& step : steps_) step(image, random);
}

Tensor Compose::operator()(const Tensor& images, const Random& random) const {
  if (images.dim() != 3 && images.dim() != 4)
    throw ShapeError(fmt::format("Compose: images are (C, H, W) or (N, C, H, W), found shape {}",
                                 images.shape()));
  const Tensor batch = on_host(images.dim() == 3 ? images.unsqueeze(0) : images);
  const auto count = static_cast<size_t>(batch.size(0));
  if (count == 0) throw ShapeError("Compose: no images given, so their new shape is unknown");
  ImageBatch result(count);
  const size_t bytes = static_cast<size_t>(batch.numel()) / count * size_of(batch.dtype());
  auto* pixels = static_cast<const std::byte*>(host_values(batch));
  Image image;
  for (size_t i = 0; i < count; ++i) {
    image.assign(pixels + (bytes ? i * bytes : 0), batch.dtype(), batch.size(1), batch.size(2),
                 batch.size(3));
    Random own = random.at(i);
    (*this)(image, own);
    result.put(i, image);
  }
  return images.dim() == 3 ? result.tensor().squeeze(0) : result.tensor();
}

ImageBatch::ImageBatch(size_t count, const PixelTable* table) : count_(count), table_(table) {}

void ImageBatch::put(size_t place, const Image& image) {
  const bool converts = table_ && image.dtype() == DType::u8;
  const DType dtype = converts ? DType::f32 : image.dtype();
  if (!batch_.tensor.defined()) {
    batch_ = make_host_tensor(
        {static_cast<int64_t>(count_), image.channels(), image.height(), image.width()}, dtype);
    shape_ = image.shape();
  }
  if (image.shape() != shape_)
    throw ShapeError(fmt::format(
        "the image has shape {} after its transforms, and the first one of the batch {}; "
        "give all of them one size with Resize, RandomCrop or CenterCrop",
        image.shape(), shape_));
  if (dtype != batch_.tensor.dtype())
    throw DTypeError(
        fmt::format("the image is {} after its transforms, and the first one of the batch {}",
                    dtype, batch_.tensor.dtype()));
  if (converts && table_->tables() != 1 && table_->tables() != image.channels())
    throw ShapeError(fmt::format(
        "the image has shape {} after its transforms, and there are means or stds for {} channels",
        image.shape(), table_->tables()));
  if (image.numel() == 0) return;
  const size_t bytes = static_cast<size_t>(image.numel()) * size_of(dtype);
  auto* to = static_cast<std::byte*>(batch_.values) + place * bytes;
  if (!converts) return void(std::memcpy(to, image.data(), bytes));
  const int64_t pixels = image.height() * image.width();
  for (int64_t c = 0; c < image.channels(); ++c)
    table_->convert_channel(c, image.pixels<uint8_t>().data() + c * pixels,
                            reinterpret_cast<float*>(to) + c * pixels, pixels);
}

}  // namespace tenon::data
