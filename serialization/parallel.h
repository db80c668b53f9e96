// Loops over the threads of the host, for work that waits for files or goes through much memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tenon {

inline constexpr uint64_t kMaxThreads = 16;

// Calls body(i) for i from 0 to n - 1 from several threads, among them the caller's. The calls
// begin in this order. Throws what the first call that failed has thrown, when all that began have
// ended.
template <class Body>
void in_parallel(uint64_t n, Body&& body) {
  std::atomic<uint64_t> next = 0;
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&]() noexcept {
    for (uint64_t i; (i = next.fetch_add(1)) < n;) {
      try {
        body(i);
      } catch (...) {
        next = n;
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
    }
  };
  {
    const uint64_t threads =
        n < 2 ? 1 : std::min<uint64_t>({n, std::thread::hardware_concurrency(), kMaxThreads});
    std::vector<std::jthread> others;
    try {
      others.reserve(threads);
      while (others.size() + 1 < threads) others.emplace_back(work);
    } catch (const std::system_error&) {  // there are no more: those that run do the work
    } catch (const std::bad_alloc&) {
    }
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace tenon
