// What the kernels share: the host's services, and tensors of a run.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tenon/plugins/sdk/dispatch.h>
#include <tenon/plugins/sdk/nest.h>
#include <tenon/plugins/sdk/sdk.h>

namespace accelerator {

namespace sdk = tenon::sdk;

// The services of the host; valid after init.
const tn_host& host();

// Splits [0, n) over the host's threads, into parts of at least `grain`.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& body) {
  sdk::parallel_for(host(), n, grain,
                    [&](int64_t begin, int64_t end, uint32_t) { body(begin, end); });
}

// All tensors of these operators have one dtype, f32 or f64. Whatever else is asked for is refused
// with the reason.
inline tn_dtype float_of(const sdk::Request& request) {
  const tn_dtype dtype = request.output(0).dtype;
  for (size_t i = 0; i < request.num_inputs(); ++i)
    if (request.has_input(i) && request.input(i).dtype != dtype)
      sdk::unsupported("tensors of different dtypes");
  return dtype;
}

template <class T>
const T* input(const tn_run& run, size_t i) {
  return static_cast<const T*>(run.inputs[i]);
}
template <class T>
T* output(const tn_run& run, size_t i) {
  return static_cast<T*>(run.outputs[i]);
}

// Calls f(at) for the elements [begin, end) of the nest's tensors; at[k] is the place of the
// element in tensor k.
template <class F>
void walk(const sdk::Nest& nest, int64_t begin, int64_t end, F&& f) {
  while (begin < end) {
    int64_t at[sdk::Nest::kMaxOperands] = {}, row = begin;
    for (int d = nest.rank; d-- > 0; row /= nest.shape[d])
      for (int k = 0; k < nest.operands; ++k) at[k] += row % nest.shape[d] * nest.strides[k][d];
    const int64_t left = nest.cols() - begin % nest.cols(), n = std::min(end - begin, left);
    for (int64_t i = 0; i < n; ++i) {
      f(at);
      for (int k = 0; k < nest.operands; ++k) at[k] += nest.col_stride(k);
    }
    begin += n;
  }
}

}  // namespace accelerator
