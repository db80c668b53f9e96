// TN_HD: a function that runs on the host and, compiled for a GPU, in its kernels too.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define TN_HD __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define TN_HD inline __attribute__((always_inline))
#else
#define TN_HD inline
#endif
