// Handles of a function's memory and tensors that its programs have.
#pragma once

#include <utility>

#include <tenon/core/tensor_impl.h>

namespace tenon::graph {

// Counts one handle more or less of those that programs have.
void count_held(Storage& storage);
void count_held(TensorImpl& tensor);
void uncount_held(Storage& storage) noexcept;
void uncount_held(TensorImpl& tensor) noexcept;

// A handle that is counted as that of a program, or of a trace on the way to one.
template <class T>
class ProgramRef {
 public:
  ProgramRef() = default;
  ProgramRef(Ref<T> of) : of_(std::move(of)) {
    if (of_) count_held(*of_);
  }
  ProgramRef(const ProgramRef& o) : ProgramRef(o.of_) {}
  ProgramRef(ProgramRef&& o) noexcept : of_(std::move(o.of_)) {}
  ProgramRef& operator=(ProgramRef o) noexcept {
    std::swap(of_, o.of_);
    return *this;
  }
  ~ProgramRef() {
    if (of_) uncount_held(*of_);
  }

  const Ref<T>& ref() const { return of_; }
  T* get() const { return of_.get(); }
  T* operator->() const { return of_.get(); }
  T& operator*() const { return *of_; }
  explicit operator bool() const { return bool(of_); }
  friend bool operator==(const ProgramRef& a, const ProgramRef& b) { return a.of_ == b.of_; }

 private:
  Ref<T> of_;
};

// Whether only programs still have the tensor, or the memory and tensors in it: then the functions
// that they were made of do not use it any more.
bool is_let_go(const TensorImpl& tensor);
bool is_let_go(const Storage& storage);

// Whether gradients of the tensor go through hooks, without a lock where there never were any.
inline bool is_hooked(const TensorImpl& tensor) {
  return tensor.autograd && tensor.autograd->hooks && has_hooks(tensor);
}

}  // namespace tenon::graph
