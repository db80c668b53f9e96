// Too little memory, for this program and for every library in it: allocations that fail by number,
// HDF5's left out, or bytes that come to an end. Included by one file of a program, whose malloc
// and free this replaces, also under the address sanitizer.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include <dlfcn.h>
#include <hdf5.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
// Where the address sanitizer is there, memory is its to give.
__attribute__((weak)) void* __interceptor_malloc(size_t);
__attribute__((weak)) void* __interceptor_realloc(void*, size_t);
__attribute__((weak)) void* __interceptor_aligned_alloc(size_t, size_t);
__attribute__((weak)) void __interceptor_free(void*);
}

namespace {

constexpr int64_t kUnlimited = INT64_MAX;

// What there is too little of, while it is armed: allocations by number, or bytes.
struct Scarcity {
  int64_t first = kUnlimited, last = kUnlimited;  // that fail, of those that are not HDF5's
  int64_t bytes = kUnlimited;                     // that may be taken by all, HDF5 included
};
bool armed = false;
Scarcity scarcity;
std::atomic<int64_t> counted{0}, taken{0}, most_taken{0};

// Where HDF5 lies. Found once: dladdr looks through all libraries for each allocation.
std::atomic<uintptr_t> hdf5_begin{0}, hdf5_end{0};
int find_hdf5(dl_phdr_info* library, size_t, void*) {
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& part = library->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    begin = std::min<uintptr_t>(begin, library->dlpi_addr + part.p_vaddr);
    end = std::max<uintptr_t>(end, library->dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  const auto known = reinterpret_cast<uintptr_t>(&H5open);
  if (known < begin || known >= end) return 0;
  hdf5_begin = begin;
  hdf5_end = end;
  return 1;
}
// HDF5 does not survive an allocation that fails, which is why Tenon sees to it that there is
// enough beforehand: single faults are not for it.
bool is_hdf5(const void* caller) {
  if (!hdf5_end) dl_iterate_phdr(find_hdf5, nullptr);
  const auto at = reinterpret_cast<uintptr_t>(caller);
  return at >= hdf5_begin && at < hdf5_end;
}

// Whether this thread begins and asks for its stack, as the address sanitizer has it do, which
// would end the program if there were no memory for the answer.
thread_local bool is_beginning = false;

// Memory of the system's, or of the address sanitizer's; called also before that is set up.
#define UNCHECKED __attribute__((no_sanitize("address")))
UNCHECKED bool is_armed() { return __atomic_load_n(&armed, __ATOMIC_RELAXED); }
UNCHECKED void* plain(size_t bytes) {
  return __interceptor_malloc ? __interceptor_malloc(bytes) : __libc_malloc(bytes);
}
UNCHECKED void* plain_again(void* p, size_t bytes) {
  return __interceptor_realloc ? __interceptor_realloc(p, bytes) : __libc_realloc(p, bytes);
}
UNCHECKED void* plain_aligned(size_t bytes, size_t alignment) {
  bytes = (bytes + alignment - 1) / alignment * alignment;
  return __interceptor_aligned_alloc ? __interceptor_aligned_alloc(alignment, bytes)
                                     : __libc_memalign(alignment, bytes);
}
UNCHECKED void plain_free(void* p) { __interceptor_free ? __interceptor_free(p) : __libc_free(p); }

bool is_refused(size_t bytes, const void* caller) {
  if (is_beginning) return false;
  const int64_t n = is_hdf5(caller) ? 0 : ++counted;
  // What was there before may be freed meanwhile, so `taken` may be below 0.
  const bool refused =
      (n >= scarcity.first && n <= scarcity.last) ||
      (scarcity.bytes != kUnlimited && static_cast<int64_t>(bytes) > scarcity.bytes - taken);
  if (refused) errno = ENOMEM;
  return refused;
}

void* count(void* p) {
  if (!p) return p;
  const int64_t now = taken += static_cast<int64_t>(malloc_usable_size(p));
  for (int64_t most = most_taken; now > most && !most_taken.compare_exchange_weak(most, now);) {
  }
  return p;
}
void count_free(void* p) { taken -= p ? static_cast<int64_t>(malloc_usable_size(p)) : 0; }

UNCHECKED void* get(size_t bytes, size_t alignment, const void* caller) {
  const bool counts = is_armed();
  if (counts && is_refused(bytes, caller)) return nullptr;
  void* p = alignment <= alignof(std::max_align_t) ? plain(bytes) : plain_aligned(bytes, alignment);
  return counts ? count(p) : p;
}

void* get_or_throw(size_t bytes, size_t alignment, const void* caller) {
  if (void* p = get(bytes, alignment, caller)) return p;
  throw std::bad_alloc();
}

UNCHECKED void give_back(void* p) {
  if (is_armed()) count_free(p);
  plain_free(p);
}

}  // namespace

#define REPLACED extern "C" __attribute__((visibility("default"))) UNCHECKED
#define CALLER __builtin_return_address(0)

REPLACED void* malloc(size_t bytes) { return get(bytes, 1, CALLER); }
REPLACED void* calloc(size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  void* p = get(bytes, 1, CALLER);
  return p ? std::memset(p, 0, bytes) : nullptr;
}
REPLACED void* realloc(void* p, size_t bytes) {
  const bool counts = is_armed();
  if (counts && is_refused(bytes, CALLER)) return nullptr;
  if (counts) count_free(p);
  p = plain_again(p, bytes);
  return counts ? count(p) : p;
}
REPLACED void* aligned_alloc(size_t alignment, size_t bytes) {
  return get(bytes, alignment, CALLER);
}
REPLACED int posix_memalign(void** p, size_t alignment, size_t bytes) {
  void* got = get(bytes, alignment, CALLER);
  if (got) *p = got;
  return got ? 0 : ENOMEM;
}
REPLACED int pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes) noexcept {
  static const auto next =
      reinterpret_cast<int (*)(pthread_t, pthread_attr_t*)>(dlsym(RTLD_NEXT, "pthread_getattr_np"));
  is_beginning = true;
  const int error = next(thread, attributes);
  is_beginning = false;
  return error;
}
REPLACED char* strdup(const char* text) noexcept {  // HDF5's is not libc's
  const size_t bytes = std::strlen(text) + 1;
  void* p = get(bytes, 1, CALLER);
  return p ? static_cast<char*>(std::memcpy(p, text, bytes)) : nullptr;
}
REPLACED void free(void* p) { give_back(p); }

#if defined(__SANITIZE_ADDRESS__)
// The linker's memory for thread-local variables is known not to be lost by who asked for it, which
// is this file now.
REPLACED const char* __lsan_default_suppressions() { return "leak:ld-linux"; }
#endif

void* operator new(size_t n) { return get_or_throw(n, 1, CALLER); }
void* operator new[](size_t n) { return get_or_throw(n, 1, CALLER); }
void* operator new(size_t n, std::align_val_t a) {
  return get_or_throw(n, static_cast<size_t>(a), CALLER);
}
void* operator new[](size_t n, std::align_val_t a) {
  return get_or_throw(n, static_cast<size_t>(a), CALLER);
}
void* operator new(size_t n, const std::nothrow_t&) noexcept { return get(n, 1, CALLER); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return get(n, 1, CALLER); }
void operator delete(void* p) noexcept { give_back(p); }
void operator delete[](void* p) noexcept { give_back(p); }
void operator delete(void* p, size_t) noexcept { give_back(p); }
void operator delete[](void* p, size_t) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { give_back(p); }

#undef REPLACED
#undef CALLER
#undef UNCHECKED
