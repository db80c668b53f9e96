// Intrusive reference counting for the few objects on the hot path, where the separate control
// block of std::shared_ptr would be too expensive.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tenon {

// The base of an object that counts its references, and begins with one.
struct RefCounted {
  // The number of references.
  std::atomic<uint32_t> refs{1};
};

// Counts one reference more.
inline void retain(RefCounted* p) { p->refs.fetch_add(1, std::memory_order_relaxed); }

// Counts one reference less. The last owner calls `destroy(T*)`, which is found by
// argument-dependent lookup.
template <class T>
  requires std::derived_from<T, RefCounted>
void release(T* p) {
  if (p->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(p);
}

// Owns one reference to a T through `retain` and `release`: the functions above, or overloads for T
// if T is incomplete where it is used.
template <class T>
class Ref {
 public:
  // Makes a reference to nothing.
  constexpr Ref() = default;
  // Makes the same of a null pointer.
  constexpr Ref(std::nullptr_t) {}
  // Takes over a reference that is counted already, such as the one with which a new object starts.
  static Ref adopt(T* fresh) {
    Ref r;
    r.p_ = fresh;
    return r;
  }
  // Counts a reference more to an object, which may be null.
  static Ref share(T* p) {
    if (p) retain(p);
    return adopt(p);
  }
  // Copying counts one reference more, and moving takes it over.
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) retain(p_);
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_) release(p_);
  }

  // Returns the object, or null.
  T* get() const { return p_; }
  // Give access to the object, which must be there.
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  // Returns whether it refers to an object.
  explicit operator bool() const { return p_ != nullptr; }
  // Returns whether this is the only reference to the object.
  bool unique() const { return p_ && p_->refs.load(std::memory_order_acquire) == 1; }
  // Returns whether both refer to one object, or both to none.
  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

}  // namespace tenon
