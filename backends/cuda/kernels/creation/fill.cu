// One value everywhere.
#include <cstring>

#include "kernels/shape/copy.h"

namespace tenon::cuda {
namespace {

template <class T>
struct One {
  T value;
  __device__ T operator()() const { return value; }
};

Nest nest_of(const tn_tensor_desc& to) {
  Nest nest({&to});
  nest.sort();
  return nest;
}

template <class T>
uint64_t bits_as(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// The value as the dtype stores it, in the first bytes.
uint64_t bits_of(tn_dtype dtype, const tn_scalar& s) {
  switch (dtype) {
    case TN_F32:
      return bits_as(cast<float>(s.f));
    case TN_F64:
      return bits_as(s.f);
    case TN_F16:
      return bits_as(cast<Half>(s.f));
    case TN_BF16:
      return bits_as(cast<BFloat>(s.f));
    case TN_BOOL:
      return s.i != 0;
    default:
      return static_cast<uint64_t>(s.i);  // little-endian: the low bytes are the narrower number
  }
}

}  // namespace

StridedFill::StridedFill(const tn_tensor_desc& to) : dtype_(to.dtype), loop_(nest_of(to)) {}

void StridedFill::run(tn_stream* stream, void* to, uint64_t bits) const {
  with_width(dtype_,
             [&]<class T>(T) { loop_.run<One<T>, T>(stream, One<T>{static_cast<T>(bits)}, to); });
}

namespace {

tn_plan* make_fill(tn_device*, const Request& request) {
  sdk::require_scalars(request, 1);
  auto& y = request.output(0);
  if (sdk::numel(y) == 0) return empty_plan();
  return make_plan([fill = StridedFill(y), dtype = y.dtype](const tn_run& run) {
    fill.run(run.stream, run.outputs[0], bits_of(dtype, run.scalars[0]));
  });
}
const sdk::Kernel fills({"fill"}, make_fill);

}  // namespace
}  // namespace tenon::cuda
