#include <cstring>
#include <string>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/image_batch.h>
#include <tenon/data/naming.h>
#include <tenon/data/reading.h>
#include <tenon/data/tensor_dataset.h>

namespace tenon::data {
namespace {

// Returns the rows of `indices`, each of which `put(from, to, bytes)` copies.
template <class Put>
Tensor gather(const Tensor& rows, std::span<const int64_t> indices, DType as, Put&& put) {
  Shape shape = rows.shape();
  shape[0] = static_cast<int64_t>(indices.size());
  HostTensor gathered = make_host_tensor(shape, as);
  const int64_t elements = rows.size(0) ? rows.numel() / rows.size(0) : 0;
  if (elements == 0) return gathered.tensor;
  auto* from = static_cast<const std::byte*>(host_values(rows));
  auto* to = static_cast<std::byte*>(gathered.values);
  const size_t from_bytes = static_cast<size_t>(elements) * size_of(rows.dtype()),
               to_bytes = static_cast<size_t>(elements) * size_of(as);
  for (size_t i = 0; i < indices.size(); ++i)
    put(from + static_cast<size_t>(indices[i]) * from_bytes, to + i * to_bytes, from_bytes);
  return gathered.tensor;
}

void copy_row(const std::byte* from, std::byte* to, size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace

TensorDataset::TensorDataset(const Tensor& data, const Tensor& target) {
  if (data.dim() == 0 || target.dim() == 0 || data.size(0) != target.size(0))
    throw ShapeError(
        fmt::format("TensorDataset: data of shape {} and target of shape {} do not have the same "
                    "number of rows",
                    data.shape(), target.shape()));
  data_ = on_host(data);
  target_ = on_host(target);
}

int64_t TensorDataset::size() const { return data_.size(0); }

Batch TensorDataset::get_batch(std::span<const int64_t> indices) const {
  for (int64_t index : indices)
    if (index < 0 || index >= size())
      throw IndexError(
          fmt::format("TensorDataset: there is no example {}; it has {}", index, size()));
  Batch batch;
  if (steps_ && !indices.empty()) {
    batch.data = transformed(indices);
  } else if (table_) {
    const int64_t pixels = data_.numel() / std::max<int64_t>(data_.size(0) * data_.size(1), 1);
    batch.data =
        gather(data_, indices, DType::f32, [&](const std::byte* from, std::byte* to, size_t) {
          table_->convert(reinterpret_cast<const uint8_t*>(from), reinterpret_cast<float*>(to),
                          pixels);
        });
  } else {
    batch.data = gather(data_, indices, data_.dtype(), copy_row);
  }
  batch.target = gather(target_, indices, target_.dtype(), copy_row);
  return batch;
}

TensorDataset& TensorDataset::convert(const ToFloat& how) {
  if (data_.dtype() != DType::u8)
    throw DTypeError(fmt::format("TensorDataset: pixels are converted from u8, and the data is {}",
                                 data_.dtype()));
  if (data_.dim() < 2)
    throw ShapeError(fmt::format("TensorDataset: pixels are (N, C, …), and the data has shape {}",
                                 data_.shape()));
  table_ = std::make_shared<PixelTable>(how, data_.size(1));
  return *this;
}

TensorDataset& TensorDataset::transform(Compose steps) {
  if (data_.dtype() != DType::u8 && data_.dtype() != DType::f32)
    throw DTypeError(
        fmt::format("TensorDataset: images that are transformed are u8 or f32, and the data is {}",
                    data_.dtype()));
  if (data_.dim() != 4)
    throw ShapeError(fmt::format(
        "TensorDataset: images that are transformed are (N, C, H, W), and the data has shape {}",
        data_.shape()));
  steps_ = steps.empty() ? nullptr : std::make_shared<const Compose>(std::move(steps));
  return *this;
}

Tensor TensorDataset::transformed(std::span<const int64_t> indices) const {
  ImageBatch batch(indices.size(), table_.get());
  const auto* rows = static_cast<const std::byte*>(host_values(data_));
  const int64_t elements = data_.numel() / data_.size(0);
  const size_t bytes = static_cast<size_t>(elements) * size_of(data_.dtype());
  Image image;
  Reading now = reading();
  for (size_t i = 0; i < indices.size(); ++i)
    naming_example(*this, indices[i], [&] {
      now.place = i;
      Random random = now.random(indices[i]);
      image.assign(rows ? rows + static_cast<size_t>(indices[i]) * bytes : nullptr, data_.dtype(),
                   data_.size(1), data_.size(2), data_.size(3));
      (*steps_)(image, random);
      batch.put(i, image);
    });
  return batch.tensor();
}

TensorDataset TensorDataset::slice(int64_t begin, int64_t end) const {
  const int64_t first = begin < 0 ? begin + size() : begin, last = end < 0 ? end + size() : end;
  if (first < 0 || last > size() || first > last)
    throw IndexError(
        fmt::format("TensorDataset: cannot take examples [{}, {}) of {}", begin, end, size()));
  TensorDataset part = *this;
  part.data_ = data_.narrow(0, first, last - first);
  part.target_ = target_.narrow(0, first, last - first);
  return part;
}

}  // namespace tenon::data
