// An array whose length is known at run time. A short one needs no allocation.
#pragma once

#include <cstddef>
#include <vector>

namespace tenon {

// Elements of type T, without a value at first. Up to `kInPlace` of them are part of the object.
template <class T, size_t kInPlace>
class ShortArray {
 public:
  explicit ShortArray(size_t size) {
    if (size <= kInPlace) return;
    heap_.resize(size);
    data_ = heap_.data();
  }
  ShortArray(const ShortArray&) = delete;
  ShortArray& operator=(const ShortArray&) = delete;

  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  T in_place_[kInPlace];
  std::vector<T> heap_;
  T* data_ = in_place_;
};

}  // namespace tenon
