// The compute threads, which all logical CPU devices and plugins share.
#pragma once

#include <cstdint>
#include <memory>

#include <tenon/plugins/abi/abi.h>

namespace tenon {

class ThreadPool {
 public:
  // Returns the pool of the process, which is never destroyed. It has TENON_NUM_THREADS threads, or
  // as many as the process may run on.
  static ThreadPool& shared();

  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  uint32_t size() const;
  // Works as tn_host::parallel_for. What a part throws comes out here when all are done: the first
  // exception of several.
  void parallel_for(int64_t n, int64_t grain, tn_loop_body body, void* context);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// As parallel_for of the shared pool. Without memory for a pool, the caller does the work.
void run_shared_loop(int64_t n, int64_t grain, tn_loop_body body, void* context);

// Gives plugins the threads of the pool. Call it before the first plugin is loaded.
void lend_threads_to_plugins();

}  // namespace tenon
