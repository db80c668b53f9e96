// Allocations that fail on order, of the program and of every library in it: operator new's and
// those of C. Included by one file of a program, whose malloc this replaces.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

// The sanitizers' own malloc is not replaced: it is called before instrumented code may run. There,
// only operator new fails.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENON_TEST_C_ALLOCATIONS_FAIL 0
#else
#define TENON_TEST_C_ALLOCATIONS_FAIL 1
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}
#endif

namespace tenon::test {

inline constinit std::atomic<int64_t> counted{0};
inline constinit thread_local int64_t counted_here = 0;  // those of this thread
inline constinit std::atomic<int64_t> until_failure{
    0};  // 0: none fails. Otherwise the n-th from now on does, in whatever thread
inline constinit std::atomic<bool> failed{false};  // it has

inline constinit std::atomic<size_t> max_bytes{SIZE_MAX};  // more are never there

inline bool fails(size_t bytes) {
  counted.fetch_add(1, std::memory_order_relaxed);
  ++counted_here;
  if (bytes > max_bytes.load(std::memory_order_relaxed)) {
    errno = ENOMEM;
    return true;
  }
  if (until_failure.load(std::memory_order_relaxed) <= 0 ||
      until_failure.fetch_sub(1, std::memory_order_relaxed) != 1)
    return false;
  failed = true;
  errno = ENOMEM;
  return true;
}

inline void* allocate(size_t bytes, size_t alignment) {
  if (fails(bytes)) return nullptr;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
#if TENON_TEST_C_ALLOCATIONS_FAIL
  return alignment <= alignof(std::max_align_t) ? __libc_malloc(bytes)
                                                : __libc_memalign(alignment, rounded);
#else
  return alignment <= alignof(std::max_align_t) ? std::malloc(bytes)
                                                : std::aligned_alloc(alignment, rounded);
#endif
}

inline void* allocate_or_throw(size_t bytes, size_t alignment) {
  if (void* p = allocate(bytes ? bytes : 1, alignment)) return p;
  throw std::bad_alloc();
}

}  // namespace tenon::test

#if TENON_TEST_C_ALLOCATIONS_FAIL
#define TENON_TEST_REPLACES extern "C" __attribute__((visibility("default")))

TENON_TEST_REPLACES void* malloc(size_t bytes) { return tenon::test::allocate(bytes, 1); }
TENON_TEST_REPLACES void* calloc(size_t count, size_t bytes) {
  if (tenon::test::fails(count * bytes)) return nullptr;
  return __libc_calloc(count, bytes);
}
TENON_TEST_REPLACES void* realloc(void* p, size_t bytes) {
  if (tenon::test::fails(bytes)) return nullptr;
  return __libc_realloc(p, bytes);
}
TENON_TEST_REPLACES void* aligned_alloc(size_t alignment, size_t bytes) {
  return tenon::test::allocate(bytes, alignment);
}
TENON_TEST_REPLACES int posix_memalign(void** p, size_t alignment, size_t bytes) {
  void* got = tenon::test::allocate(bytes, alignment);
  if (!got) return ENOMEM;
  *p = got;
  return 0;
}

#undef TENON_TEST_REPLACES
#endif

void* operator new(size_t n) { return tenon::test::allocate_or_throw(n, 1); }
void* operator new[](size_t n) { return tenon::test::allocate_or_throw(n, 1); }
void* operator new(size_t n, std::align_val_t a) {
  return tenon::test::allocate_or_throw(n, static_cast<size_t>(a));
}
void* operator new[](size_t n, std::align_val_t a) {
  return tenon::test::allocate_or_throw(n, static_cast<size_t>(a));
}
void* operator new(size_t n, const std::nothrow_t&) noexcept { return tenon::test::allocate(n, 1); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept {
  return tenon::test::allocate(n, 1);
}
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return tenon::test::allocate(n, static_cast<size_t>(a));
}
void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return tenon::test::allocate(n, static_cast<size_t>(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }
