// Cumulative operators along one dimension: a thread goes down each line, or a block along each row
// where neighbours lie side by side.
#include <tenon/plugins/sdk/requests/order.h>
#include <tenon/plugins/sdk/scans.h>

#include "device/block_reduce.h"

namespace tenon::cuda {
namespace {

struct ScanShape {
  int64_t outer, size, inner;
  bool reverse;
  __device__ int64_t place(int64_t i) const { return reverse ? size - 1 - i : i; }
};

template <class S, class T = typename S::Element>
__global__ void __launch_bounds__(kBlock) scan_lines(ScanShape s, const T* x, sdk::ScanOut<T> out) {
  for (int64_t line = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; line < s.outer * s.inner;
       line += int64_t{gridDim.x} * blockDim.x) {
    const int64_t o = divide(line, s.inner), base = o * s.size * s.inner + line - o * s.inner;
    auto state = S::init();
    for (int64_t i = 0; i < s.size; ++i) {
      const int64_t at = base + s.place(i) * s.inner;
      state = S::merge(state, S::of(x[at], i));
      S::write(out, at, state);
    }
  }
}

// As many elements at a time as the block has threads, from what lies before them (Hillis and
// Steele, 1986).
template <class S, class T = typename S::Element>
__global__ void __launch_bounds__(kBlock) scan_rows(ScanShape s, const T* x, sdk::ScanOut<T> out) {
  __shared__ typename S::State shared[kBlock];
  const unsigned lane = threadIdx.x;
  for (int64_t row = blockIdx.x; row < s.outer; row += gridDim.x) {
    auto carry = S::init();
    for (int64_t start = 0; start < s.size; start += kBlock) {
      const int64_t i = start + lane, at = row * s.size + s.place(i);
      auto own = i < s.size ? S::of(x[at], i) : S::init();
      for (unsigned step = 1; step < kBlock; step *= 2) {
        shared[lane] = own;
        __syncthreads();
        if (lane >= step) own = S::merge(shared[lane - step], own);
        __syncthreads();
      }
      own = S::merge(carry, own);
      if (i < s.size) S::write(out, at, own);
      shared[lane] = own;
      __syncthreads();
      carry = shared[kBlock - 1];
      __syncthreads();
    }
  }
}

template <class S>
tn_plan* scan_plan(const sdk::ScanRequest& r) {
  using T = typename S::Element;
  constexpr int64_t kShortRow = 64;
  const bool rows = r.inner == 1 && r.size > kShortRow;
  const ScanShape shape{r.outer, r.size, r.inner, r.reverse};
  return make_plan([=](const tn_run& run) {
    const sdk::ScanOut<T> out{
        static_cast<T*>(run.outputs[0]),
        run.num_outputs > 1 ? static_cast<int64_t*>(run.outputs[1]) : nullptr};
    auto* x = static_cast<const T*>(run.inputs[0]);
    if (rows)
      launch(run.stream, static_cast<unsigned>(std::min<int64_t>(shape.outer, 1 << 20)), kBlock,
             scan_rows<S>, shape, x, out);
    else
      launch(run.stream, stride_blocks(*run.stream->device, shape.outer * shape.inner), kBlock,
             scan_lines<S>, shape, x, out);
  });
}

template <template <class> class S>
tn_plan* plan_sum(const sdk::ScanRequest& r) {
  if (r.dtype == TN_I64) return scan_plan<S<int64_t>>(r);
  return with_float(r.dtype, [&]<class T>(T) { return scan_plan<S<T>>(r); });
}

tn_plan* make_scan(tn_device*, const Request& request) {
  const auto r = sdk::ScanRequest::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  if (request.op() == "cumsum") return plan_sum<sdk::CumulativeSum>(r);
  if (request.op() == "cumprod") return plan_sum<sdk::CumulativeProduct>(r);
  if (request.op() == "logcumsumexp")
    return with_float(r.dtype, [&]<class T>(T) { return scan_plan<sdk::CumulativeLogSum<T>>(r); });
  const bool largest = request.op() == "cummax";
  return with_number(sdk::byte_for_bool(r.dtype), [&]<class T>(T) {
    return largest ? scan_plan<sdk::CumulativeExtreme<T, true>>(r)
                   : scan_plan<sdk::CumulativeExtreme<T, false>>(r);
  });
}

const sdk::Kernel scans({"cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"}, make_scan);

}  // namespace
}  // namespace tenon::cuda
