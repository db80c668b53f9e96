// Stands in for the toolkit's header of this name, so that the plugin's kernels can be compiled by
// an ordinary C++ compiler and run on the CPU: each thread of a grid in turn, switching where
// threads meet. It is no model of speed. It shows wrong results, out-of-bounds accesses (under the
// address sanitizer), memory that is read before it is written and, because the order of blocks,
// threads and streams changes, missing barriers and missing waits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#define TENON_CUDA_EMULATED 1

// Blocks run one at a time, so what a block shares may be static. The tags are read by symbols.cpp.
#undef __shared__
#define __shared__ static __attribute__((abi_tag("tenon_shared")))
// As an attribute of the host compiler's own headers it may be dropped, too.
#define __noinline__
#undef __launch_bounds__
#define __launch_bounds__(threads) __attribute__((abi_tag("tenon_bounds_" #threads)))
#undef __grid_constant__
#define __grid_constant__

namespace tenon::emulated {

// What one thread runs, a closure of plain values as a kernel with its arguments is: how to call a
// copy of its `bytes`. A std::function of a tuple would do, but the compiler would work on the
// functions of these longer than on the kernels.
struct BoundKernel {
  template <class F>
  BoundKernel(const F& closure)
      : run([](const void* self) { (*static_cast<const F*>(self))(); }),
        closure(&closure),
        bytes(sizeof closure) {
    static_assert(std::is_trivially_copyable_v<F> && alignof(F) <= alignof(std::max_align_t),
                  "CUDA copies arguments byte by byte");
  }

  void (*run)(const void* closure);
  const void* closure;
  size_t bytes;
};

// Queues `thread` for every thread of the grid; on a stream that is being captured, for each launch
// of its graph. `kernel` is the function's address, by which its limits and its shared memory are
// known.
cudaError_t launch(dim3 grid, dim3 block, size_t dynamic_bytes, cudaStream_t stream,
                   const void* kernel, const BoundKernel& thread);

// What the driver says of the calling thread.
bool thread_has_context();

void block_barrier();
void warp_barrier();
// All lanes of a warp hand in `bytes` (at most 16) and get those of lane `source`.
void exchange(void* value, size_t bytes, int source);
int lane();
unsigned ballot(bool predicate);

}  // namespace tenon::emulated

// What the emulated thread knows of itself.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

template <class... Params>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Params...),
                               std::type_identity_t<Params>... args) {
  if (config->numAttrs != 0) return cudaErrorNotSupported;
  return tenon::emulated::launch(config->gridDim, config->blockDim, config->dynamicSmemBytes,
                                 config->stream, reinterpret_cast<const void*>(kernel),
                                 [kernel, args...] { kernel(args...); });
}

inline void __syncthreads() { tenon::emulated::block_barrier(); }
inline void __syncwarp(unsigned = 0xffffffffu) { tenon::emulated::warp_barrier(); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

template <class T>
T __shfl_sync(unsigned, T value, int source, int width = 32) {
  int base = tenon::emulated::lane() / width * width;
  tenon::emulated::exchange(&value, sizeof value, base + source % width);
  return value;
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask, int = 32) {
  tenon::emulated::exchange(&value, sizeof value, tenon::emulated::lane() ^ mask);
  return value;
}
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned delta, int width = 32) {
  int lane = tenon::emulated::lane(), to = lane + static_cast<int>(delta);
  tenon::emulated::exchange(&value, sizeof value, to / width == lane / width ? to : lane);
  return value;
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned delta, int width = 32) {
  int lane = tenon::emulated::lane(), to = lane - static_cast<int>(delta);
  tenon::emulated::exchange(&value, sizeof value, to >= lane / width * width ? to : lane);
  return value;
}
inline unsigned __ballot_sync(unsigned, int predicate) {
  return tenon::emulated::ballot(predicate != 0);
}
inline int __any_sync(unsigned, int predicate) {
  return tenon::emulated::ballot(predicate != 0) != 0;
}
inline int __all_sync(unsigned, int predicate) {
  return tenon::emulated::ballot(predicate == 0) == 0;
}

template <class T>
T atomicAdd(T* at, T value) {
  T old = *at;
  *at = old + value;
  return old;
}
template <class T>
T atomicMax(T* at, T value) {
  T old = *at;
  *at = std::max(old, value);
  return old;
}
template <class T>
T atomicMin(T* at, T value) {
  T old = *at;
  *at = std::min(old, value);
  return old;
}
template <class T>
T atomicCAS(T* at, T expected, T value) {
  T old = *at;
  if (old == expected) *at = value;
  return old;
}
template <class T>
T atomicExch(T* at, T value) {
  T old = *at;
  *at = value;
  return old;
}

template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T __ldcs(const T* at) {
  return *at;
}
template <class T>
void __stcs(T* at, T value) {
  *at = value;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline int __float_as_int(float x) {
  int i;
  std::memcpy(&i, &x, sizeof i);
  return i;
}
inline float __int_as_float(int i) {
  float x;
  std::memcpy(&x, &i, sizeof x);
  return x;
}
using std::isfinite;
using std::isinf;
using std::isnan;
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}
