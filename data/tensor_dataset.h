// A data set in memory.
#pragma once

#include <memory>

#include <tenon/data/dataset.h>
#include <tenon/data/image.h>
#include <tenon/data/transform.h>

namespace tenon::data {

// A data set whose examples are the rows of two tensors. Copies share the values.
class TENON_API TensorDataset : public Dataset {
 public:
  // Takes data (N, …) and target (N, …), which are moved to cpu:0. Throws a ShapeError if N differs
  // or is missing.
  TensorDataset(const Tensor& data, const Tensor& target);

  // Returns the number of rows.
  int64_t size() const override;
  // Returns the rows with these indices. Throws an IndexError for an index outside [0, size()).
  Batch get_batch(std::span<const int64_t> indices) const override;

  // Makes batches have f32 pixels, which are converted while a batch is made. The data has to be u8
  // (N, C, …): throws a DTypeError or ShapeError otherwise, and a ValueError as to_float does.
  // Returns *this.
  TensorDataset& convert(const ToFloat& how);
  // Makes batches have images that went through these steps, in the threads of the loader and
  // before convert. Each example draws from reading().random(index). The data has to be u8 or f32
  // images (N, C, H, W): throws a DTypeError or ShapeError otherwise. get_batch throws a ShapeError
  // or DTypeError that names the example if the images of a batch do not come out equal. The steps
  // replace those of an earlier call. Returns *this.
  TensorDataset& transform(Compose steps);
  // Returns the data set of examples [begin, end), which shares the values. Negative numbers count
  // from the end. Throws an IndexError for a range outside the data set.
  TensorDataset slice(int64_t begin, int64_t end) const;

  // Returns all rows of the data as they are stored.
  const Tensor& data() const { return data_; }
  // Returns all rows of the target as they are stored.
  const Tensor& target() const { return target_; }

 private:
  Tensor data_, target_;
  std::shared_ptr<const PixelTable> table_;
  std::shared_ptr<const Compose> steps_;
  Tensor transformed(std::span<const int64_t> indices) const;
};

}  // namespace tenon::data
