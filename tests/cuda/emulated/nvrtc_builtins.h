// What NVRTC's compiler knows without any header, for the compiler of the host: comes before the
// source of a kernel. No header of the host is read, so that it compiles in a tenth of a second.
#pragma once

#define TENON_CUDA_EMULATED 1
#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __shared__ static  // blocks run one at a time
#define __launch_bounds__(threads)

using size_t = decltype(sizeof 0);

struct uint2 {
  unsigned x, y;
};
struct uint3 {
  unsigned x, y, z;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};

// The layout of DeviceOfModule.
struct TenonDevice {
  const uint3 *thread_index, *block_index, *block_size, *grid_size;
  float (*half_to_float)(unsigned short bits);
  unsigned short (*float_to_half)(float x);
  float (*bfloat_to_float)(unsigned short bits);
  unsigned short (*float_to_bfloat)(float x);
  void (*block_barrier)();
  void (*warp_barrier)();
  void (*exchange)(void* value, size_t bytes, int source);
  int (*lane)();
  void (*count_wide_access)();
};
static const TenonDevice* tenon_device;
extern "C" void tenon_bind(const TenonDevice* device) { tenon_device = device; }

// What one instruction moves between memory and registers.
struct alignas(16) uint4 {
  unsigned x, y, z, w;
  uint4() = default;
  uint4(const uint4& from) : x(from.x), y(from.y), z(from.z), w(from.w) {
    tenon_device->count_wide_access();
  }
  uint4& operator=(const uint4& from) {
    x = from.x, y = from.y, z = from.z, w = from.w;
    tenon_device->count_wide_access();
    return *this;
  }
};

#define threadIdx (*tenon_device->thread_index)
#define blockIdx (*tenon_device->block_index)
#define blockDim (*tenon_device->block_size)
#define gridDim (*tenon_device->grid_size)

inline void __syncthreads() { tenon_device->block_barrier(); }
inline void __syncwarp() { tenon_device->warp_barrier(); }
template <class T>
T __shfl_sync(unsigned, T value, int source, int width) {
  tenon_device->exchange(&value, sizeof value,
                         tenon_device->lane() / width * width + source % width);
  return value;
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  tenon_device->exchange(&value, sizeof value, tenon_device->lane() ^ mask);
  return value;
}

extern "C" void* memcpy(void* to, const void* from, size_t bytes) noexcept;
inline float __int_as_float(int bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// As the host's own headers have them, of both types.
#define TENON_OF_ONE(name)                    \
  extern "C" double name(double x) noexcept;  \
  extern "C" float name##f(float x) noexcept; \
  inline float name(float x) { return name##f(x); }
#define TENON_OF_TWO(name)                             \
  extern "C" double name(double x, double y) noexcept; \
  extern "C" float name##f(float x, float y) noexcept; \
  inline float name(float x, float y) { return name##f(x, y); }
TENON_OF_ONE(acos)
TENON_OF_ONE(acosh)
TENON_OF_ONE(asin)
TENON_OF_ONE(asinh)
TENON_OF_ONE(atan)
TENON_OF_ONE(atanh)
TENON_OF_ONE(ceil)
TENON_OF_ONE(cos)
TENON_OF_ONE(cosh)
TENON_OF_ONE(erf)
TENON_OF_ONE(erfc)
TENON_OF_ONE(exp)
TENON_OF_ONE(exp2)
TENON_OF_ONE(expm1)
TENON_OF_ONE(fabs)
TENON_OF_ONE(floor)
TENON_OF_ONE(lgamma)
TENON_OF_ONE(log)
TENON_OF_ONE(log10)
TENON_OF_ONE(log1p)
TENON_OF_ONE(log2)
TENON_OF_ONE(nearbyint)
TENON_OF_ONE(sin)
TENON_OF_ONE(sinh)
TENON_OF_ONE(sqrt)
TENON_OF_ONE(tan)
TENON_OF_ONE(tanh)
TENON_OF_ONE(trunc)
TENON_OF_TWO(atan2)
TENON_OF_TWO(copysign)
TENON_OF_TWO(fmod)
TENON_OF_TWO(hypot)
TENON_OF_TWO(pow)
#undef TENON_OF_ONE
#undef TENON_OF_TWO
// std::pow(double, int), which is computed as of two doubles.
inline double pow(double x, int y) { return pow(x, static_cast<double>(y)); }
