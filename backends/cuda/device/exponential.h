// Exponentials and logarithms of both floating types by one name.
#pragma once

#include <cmath>

#include <cuda_runtime.h>

namespace tenon::cuda {

__device__ inline float exp_of(float x) { return expf(x); }
__device__ inline double exp_of(double x) { return exp(x); }
__device__ inline float log_of(float x) { return logf(x); }
__device__ inline double log_of(double x) { return log(x); }

}  // namespace tenon::cuda
