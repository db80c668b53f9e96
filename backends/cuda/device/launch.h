// How the plugin's kernels are started: `launch(run.stream, grid, block, kernel, arguments…)`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <cuda_runtime.h>

#include "runtime/check.h"
#include "runtime/device.h"

namespace tenon::cuda {

inline constexpr unsigned kBlock = 256;

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Queues kernel(args…) on the stream. Arguments are converted to the kernel's parameter types; a
// grid without blocks is left out. Kernels use static shared memory only.
template <class... Params, class... Args>
void launch(tn_stream* stream, dim3 grid, dim3 block, void (*kernel)(Params...), Args&&... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream->handle;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(std::forward<Args>(args))...),
        "kernel launch");
}

// Blocks for a grid-stride loop over `n` items: enough to fill the device a few times, never more
// than there is work for.
inline unsigned stride_blocks(const tn_device& device, int64_t n, unsigned block = kBlock) {
  int64_t most = int64_t{device.multiprocessors} *
                 (device.threads_per_multiprocessor / static_cast<int>(block)) * 4;
  return static_cast<unsigned>(std::clamp<int64_t>(ceil_div(n, block), n > 0 ? 1 : 0, most));
}

}  // namespace tenon::cuda
