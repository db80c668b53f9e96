#include <algorithm>
#include <string>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/text_dataset.h>

namespace tenon::data {
namespace {

template <class T>
void copy_windows(const T* tokens, std::span<const int64_t> indices, int64_t length, int64_t stride,
                  int64_t* data, int64_t* target) {
  for (int64_t index : indices) {
    const T* from = tokens + index * stride;
    data = std::copy_n(from, length, data);
    target = std::copy_n(from + 1, length, target);
  }
}

}  // namespace

TextDataset::TextDataset(const Tensor& tokens, int64_t block_size, int64_t stride)
    : block_size_(block_size), stride_(stride == 0 ? block_size : stride) {
  if (block_size < 1)
    throw ValueError(
        fmt::format("TextDataset: block_size has to be at least 1, but is {}", block_size));
  if (stride < 0)
    throw ValueError(fmt::format("TextDataset: stride has to be at least 0, but is {}", stride));
  if (tokens.dim() != 1)
    throw ShapeError(
        fmt::format("TextDataset: tokens are one row (T), found shape {}", tokens.shape()));
  if (!is_integer(tokens.dtype()))
    throw DTypeError(
        fmt::format("TextDataset: tokens are i64, i32 or u8, found {}", tokens.dtype()));
  const int64_t count = tokens.size(0);
  if (count <= block_size)
    throw ValueError(fmt::format(
        "TextDataset: a window of {} tokens and the one after it need more than the {} that the "
        "text has",
        block_size, count));
  tokens_ = on_host(tokens);
  size_ = (count - 1 - block_size) / stride_ + 1;
}

Batch TextDataset::get_batch(std::span<const int64_t> indices) const {
  for (int64_t index : indices)
    if (index < 0 || index >= size_)
      throw IndexError(fmt::format("TextDataset: there is no window {}; it has {}", index, size_));
  const Shape shape{static_cast<int64_t>(indices.size()), block_size_};
  const HostTensor data = make_host_tensor(shape, DType::i64),
                   target = make_host_tensor(shape, DType::i64);
  auto* to = static_cast<int64_t*>(data.values);
  auto* next = static_cast<int64_t*>(target.values);
  const void* tokens = host_values(tokens_);
  auto copy = [&](auto* from) { copy_windows(from, indices, block_size_, stride_, to, next); };
  if (tokens_.dtype() == DType::i64)
    copy(static_cast<const int64_t*>(tokens));
  else if (tokens_.dtype() == DType::i32)
    copy(static_cast<const int32_t*>(tokens));
  else
    copy(static_cast<const uint8_t*>(tokens));
  return {data.tensor, target.tensor};
}

}  // namespace tenon::data
