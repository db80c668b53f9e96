// A data set in memory.
#pragma once

#include <memory>

#include <tenon/data/dataset.h>
#include <tenon/data/transform.h>

namespace tenon::data {

// Rows of two tensors. Copies share the values.
class TENON_API TensorDataset : public Dataset {
 public:
  // data (N, …) and target (N, …), moved to cpu:0. ShapeError where N differs or there is none.
  TensorDataset(const Tensor& data, const Tensor& target);

  int64_t size() const override;
  Batch get_batch(std::span<const int64_t> indices) const override;

  // From now on batches hold f32 pixels, converted while they are put together. The data has to be
  // u8 (N, C, …).
  TensorDataset& convert(const ToFloat& how);
  // Examples [begin, end), sharing the values; negative counts from the end. IndexError outside.
  TensorDataset slice(int64_t begin, int64_t end) const;

  // All rows as they are stored.
  const Tensor& data() const { return data_; }
  const Tensor& target() const { return target_; }

 private:
  Tensor data_, target_;
  std::shared_ptr<const PixelTable> table_;
};

}  // namespace tenon::data
