// Vendor code on the host's threads. All plugins share one budget of threads, and a library that
// brings a pool of its own fights with it for the cores. So split the work with the host's
// parallel_for, and let each part call the library with one thread:
//
//   sdk::parallel_for_vendor(host, rows, 16, [&](int64_t begin, int64_t end, uint32_t slot) {
//     vendor_gemm(a + begin * k, b, y + begin * n, end - begin);  // may use OpenMP inside
//   });
//
// A library that accepts a pool of its caller, such as oneDNN built with the runtime THREADPOOL,
// gets a HostPool instead.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include <tenon/plugins/sdk/sdk.h>

// These are weak, because a plugin, or a library to which it is linked, may bring OpenMP's runtime,
// and need not.
extern "C" {
[[gnu::weak]] int omp_get_max_threads(void);
[[gnu::weak]] void omp_set_num_threads(int count);
}

#pragma GCC visibility push(hidden)

namespace tenon::sdk {

// Gives parallel regions of OpenMP that this thread begins one thread while it lives. The number
// belongs to each thread, so the host's threads do not change that of the program's own. Without
// OpenMP in the process it does nothing.
class SingleThreadedOpenMP {
 public:
  // Begins the scope.
  SingleThreadedOpenMP() : before_(here() ? omp_get_max_threads() : 0) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~SingleThreadedOpenMP() {
    if (before_ > 1) omp_set_num_threads(before_);
  }
  SingleThreadedOpenMP(const SingleThreadedOpenMP&) = delete;

 private:
  static bool here() { return omp_get_max_threads && omp_set_num_threads; }
  const int before_;
};

// Does what sdk::parallel_for does, for bodies that call a library with OpenMP inside.
template <class F>
void parallel_for_vendor(const tn_host& host, int64_t n, int64_t grain, F&& body) {
  parallel_for(host, n, grain, [&](int64_t begin, int64_t end, uint32_t slot) {
    SingleThreadedOpenMP single;
    body(begin, end, slot);
  });
}

// Offers the host's threads as the pool that a library asks for. Interface is the library's class;
// its functions are those of oneDNN's dnnl::threadpool_interop::threadpool_iface:
//
//   sdk::HostPool<dnnl::threadpool_interop::threadpool_iface> pool(host);
//   auto stream = dnnl::threadpool_interop::make_stream(engine, &pool);
template <class Interface>
class HostPool : public Interface {
 public:
  // Takes the host, which has to outlive the pool.
  explicit HostPool(const tn_host& host) : host_(&host) {}

  // Returns the number of the host's threads.
  int get_num_threads() const { return static_cast<int>(host_->thread_count(host_->context)); }
  // Returns whether the calling thread is inside a part: the library then does not split once more.
  bool get_in_parallel() const { return inside_; }
  // Calls fn(i, n) for each i below n, and returns when all calls have ended. What they throw comes
  // out here.
  void parallel_for(int n, const std::function<void(int, int)>& fn) {
    sdk::parallel_for(*host_, n, 1, [&](int64_t begin, int64_t end, uint32_t) {
      struct Inside {
        const bool before = std::exchange(inside_, true);
        ~Inside() { inside_ = before; }
      } inside;
      for (int64_t i = begin; i < end; ++i) fn(static_cast<int>(i), n);
    });
  }
  // Returns 0: parallel_for is not asynchronous.
  uint64_t get_flags() const { return 0; }
  // Does nothing, because parallel_for has waited.
  void wait() {}

 private:
  const tn_host* host_;
  static inline thread_local bool inside_ = false;
};

}  // namespace tenon::sdk

#pragma GCC visibility pop
