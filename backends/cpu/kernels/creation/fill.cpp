// Fills: one value, an arithmetic sequence.
#include <cstring>

#include "kernels/shape/copy.h"
#include "simd/convert.h"

namespace tenon::cpu {
namespace {

// The value as the dtype stores it, in the first bytes.
uint64_t bits_of(tn_dtype dtype, const tn_scalar& s) {
  uint64_t bits = 0;
  if (is_float(dtype)) {
    convert_row(dtype, TN_F64)(1, &bits, &s.f);
  } else {
    convert_row(dtype, TN_I64)(1, &bits, &s.i);
  }
  return bits;
}

template <class T>
void fill_part(char* y, int64_t begin, int64_t end, uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  std::fill(reinterpret_cast<T*>(y) + begin, reinterpret_cast<T*>(y) + end, value);
}

tn_plan* make_fill(tn_device*, const Request& request) {
  auto& y = request.output(0);
  int64_t n = sdk::numel(y), size = static_cast<int64_t>(sdk::dtype_size(y.dtype));
  if (n == 0) return empty_plan();
  sdk::PlanOptions options{0, 20 + static_cast<uint64_t>(n * size / 16)};
  Nest nest({&y});
  nest.sort();
  if (nest.rank == 0 || (nest.rank == 1 && nest.col_stride(0) == 1)) {
    auto fill = size == 1   ? fill_part<uint8_t>
                : size == 2 ? fill_part<uint16_t>
                : size == 4 ? fill_part<uint32_t>
                            : fill_part<uint64_t>;
    auto run = [n, fill, dtype = y.dtype](const tn_run& run) {
      uint64_t bits = bits_of(dtype, run.scalars[0]);
      parallel_for(n, 2 * kGrain, [&](int64_t begin, int64_t end, uint32_t) {
        fill(static_cast<char*>(run.outputs[0]), begin, end, bits);
      });
    };
    return sdk::make_plan(run, options);
  }
  tn_tensor_desc value = y;  // one element, expanded
  std::fill(std::begin(value.strides), std::end(value.strides), 0);
  StridedCopy spread(y, value);
  auto run = [spread, dtype = y.dtype](const tn_run& run) {
    uint64_t bits = bits_of(dtype, run.scalars[0]);
    spread.run(run.outputs[0], &bits);
  };
  return sdk::make_plan(run, options);
}
const sdk::Kernel fills({"fill"}, make_fill);

template <class T>
void arange_part(T* y, int64_t begin, int64_t end, const tn_scalar* s) {
  if constexpr (std::is_floating_point_v<T>) {
    double start = s[0].f, step = s[1].f;
    for (int64_t k = begin; k < end; ++k)
      y[k] = static_cast<T>(start + static_cast<double>(k) * step);
  } else {
    uint64_t start = static_cast<uint64_t>(s[0].i), step = static_cast<uint64_t>(s[1].i);
    for (int64_t k = begin; k < end; ++k)
      y[k] = static_cast<T>(start + static_cast<uint64_t>(k) * step);
  }
}

tn_plan* make_arange(tn_device*, const Request& request) {
  auto& y = request.output(0);
  require_contiguous(request, y);
  int64_t n = sdk::numel(y);
  auto plan = [n]<class T>(T) {
    auto run = [n](const tn_run& run) {
      parallel_for(n, kGrain, [&](int64_t begin, int64_t end, uint32_t) {
        arange_part(static_cast<T*>(run.outputs[0]), begin, end, run.scalars);
      });
    };
    return sdk::make_plan(run, {0, 20 + static_cast<uint64_t>(n)});
  };
  switch (y.dtype) {
    case TN_F32:
      return plan(float{});
    case TN_F64:
      return plan(double{});
    case TN_I64:
      return plan(int64_t{});
    case TN_I32:
      return plan(int32_t{});
    case TN_U8:
      return plan(uint8_t{});
    default:
      refuse_dtype(request, y.dtype);
  }
}
const sdk::Kernel aranges({"arange"}, make_arange);

}  // namespace
}  // namespace tenon::cpu
