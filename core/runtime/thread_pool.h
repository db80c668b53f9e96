// The one budget of compute threads, shared by every logical CPU device and plugin.
#pragma once

#include <cstdint>
#include <memory>

#include <tenon/plugins/abi/abi.h>

namespace tenon {

class ThreadPool {
 public:
  // As many threads as TENON_NUM_THREADS says, else as the process may run on; lives until the
  // process ends.
  static ThreadPool& shared();

  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  uint32_t size() const;
  // As tn_host::parallel_for. `body` must not throw.
  void parallel_for(int64_t n, int64_t grain, tn_loop_body body, void* context);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Before the first plugin is loaded.
void lend_threads_to_plugins();

}  // namespace tenon
