#include <cstring>

#include <tenon/conformance/bytes.h>
#include <tenon/core/dispatch/transfer.h>

namespace tenon::conformance {

namespace {

std::vector<unsigned char> read_bytes(const Tensor& contiguous) {
  std::vector<unsigned char> bytes(static_cast<size_t>(contiguous.numel()) *
                                   size_of(contiguous.dtype()));
  contiguous.copy_to_host(bytes.data(), contiguous.dtype());
  return bytes;
}

}  // namespace

std::vector<unsigned char> bytes_of(const Tensor& tensor) {
  const Tensor x = tensor.detach();
  if (x.numel() == 0) return x.wait(), std::vector<unsigned char>();
  if (x.is_contiguous()) return read_bytes(x);
  const auto span = read_bytes(span_of(x));
  const size_t width = size_of(x.dtype());
  std::vector<unsigned char> bytes(static_cast<size_t>(x.numel()) * width);
  Shape place = Shape::filled(x.shape().size(), 0);  // of the element that is next
  int64_t from = 0;
  for (size_t at = 0; at < bytes.size(); at += width) {
    std::memcpy(&bytes[at], &span[static_cast<size_t>(from) * width], width);
    for (size_t d = place.size(); d-- > 0;) {
      from += x.strides()[d];
      if (++place[d] < x.shape()[d]) break;
      from -= place[d] * x.strides()[d];
      place[d] = 0;
    }
  }
  return bytes;
}

Tensor copied_to(const Tensor& x, Device device) {
  return from_host(bytes_of(x).data(), x.dtype(), x.shape(), {.device = device});
}

Tensor copied(const Tensor& x) { return copied_to(x, x.device()); }

Tensor zero_bytes(const Shape& shape, DType dtype, Device device) {
  const std::vector<unsigned char> zeros(static_cast<size_t>(shape.numel()) * size_of(dtype));
  return from_host(zeros.data(), dtype, shape, {.device = device});
}

Tensor as_i32(const Tensor& x) {
  const auto bytes = bytes_of(x);
  std::vector<int32_t> values(static_cast<size_t>(x.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t value;
    std::memcpy(&value, &bytes[i * sizeof value], sizeof value);
    values[i] = static_cast<int32_t>(value);
  }
  return tensor(values, x.shape(), {.device = x.device()});
}

}  // namespace tenon::conformance
