// Puts images together to a batch.
#pragma once

#include <cstddef>

#include <tenon/core/host_tensor.h>
#include <tenon/data/image.h>
#include <tenon/data/transform.h>

namespace tenon::data {

class ImageBatch {
 public:
  // With a table, u8 images become f32. It has to fit the number of their channels.
  explicit ImageBatch(size_t count, const PixelTable* table = nullptr);
  // Copies an image to its place. The first one decides shape and dtype; throws a ShapeError or
  // DTypeError for one that differs.
  void put(size_t place, const Image& image);
  // Returns (N, C, H, W), undefined if nothing was put.
  const Tensor& tensor() const { return batch_.tensor; }

 private:
  const size_t count_;
  const PixelTable* const table_;
  HostTensor batch_{Tensor(), nullptr};
  Shape shape_;
};

}  // namespace tenon::data
