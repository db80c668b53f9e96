// Rows in the type that kernels compute in. They are used where they lie in memory; those of half
// types go through a buffer in f32 that stays in cache, so that one row function serves all types.
#pragma once

#include "runtime/common.h"
#include "simd/convert.h"

namespace tenon::cpu {

template <class T>
class RowsIn {
 public:
  RowsIn(const void* data, tn_dtype dtype)
      : data_(static_cast<const char*>(data)),
        size_(static_cast<int64_t>(sdk::dtype_size(dtype))),
        convert_(has_16_bits(dtype) ? convert_row(TN_F32, dtype) : nullptr) {}

  // The elements [at, at + n), in memory or in `buffer`.
  const T* read(int64_t at, int64_t n, T* buffer) const {
    const char* row = data_ + at * size_;
    if (!convert_) return reinterpret_cast<const T*>(row);
    convert_(n, buffer, row);
    return buffer;
  }

 private:
  const char* data_;
  int64_t size_;
  ConvertRow convert_;
};

template <class T>
class RowsOut {
 public:
  RowsOut(void* data, tn_dtype dtype)
      : data_(static_cast<char*>(data)),
        size_(static_cast<int64_t>(sdk::dtype_size(dtype))),
        convert_(has_16_bits(dtype) ? convert_row(dtype, TN_F32) : nullptr) {}
  explicit operator bool() const { return data_; }

  // Where to write the elements from `at` on: in memory or in `buffer`, which is passed to `write`
  // when the elements are there.
  T* place(int64_t at, T* buffer) const {
    return convert_ ? buffer : reinterpret_cast<T*>(data_ + at * size_);
  }
  void write(int64_t at, int64_t n, const T* buffer) const {
    if (convert_) convert_(n, data_ + at * size_, buffer);
  }

 private:
  char* data_;
  int64_t size_;
  ConvertRow convert_;
};

// The workspace of such a kernel: a part of `whole` elements, then one of `each` elements for every
// slot of parallel_for.
template <class T>
struct RowBuffers {
  int64_t whole = 0, each = 0;

  uint64_t bytes() const {
    return static_cast<uint64_t>(whole + each * static_cast<int64_t>(thread_count())) * sizeof(T);
  }
  T* of(const tn_run& run, uint32_t slot) const {
    return each ? static_cast<T*>(run.workspace) + whole + slot * each : nullptr;
  }
};

}  // namespace tenon::cpu
