// A stream of the emulated runtime, for it and for libraries that queue work of their own.
#pragma once

#include <functional>
#include <memory>

#include <cuda_runtime_api.h>

struct CUstream_st {
  int device = 0;
  bool (*is_capturing)(CUstream_st*);
  // Queues a task; while the stream is captured it becomes part of the graph.
  cudaError_t (*queue)(CUstream_st*, std::function<void()> task);
  // What is queued later does not run before the flag is true.
  cudaError_t (*wait_for)(CUstream_st*, std::shared_ptr<const bool> flag);
};
