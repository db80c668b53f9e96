// Values that several objects hold together.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace tenon::data {

// A Base that does not change any more: a pointer that is shared, or a value of a derived class,
// which is moved or copied into one. Copies refer to the same object.
template <class Base>
class Shared {
 public:
  // Refers to nothing.
  Shared() = default;
  // Share the object of this pointer.
  template <class Derived>
    requires std::derived_from<Derived, Base>
  Shared(std::shared_ptr<Derived> pointer) : pointer_(std::move(pointer)) {}
  Shared(std::shared_ptr<const Base> pointer) : pointer_(std::move(pointer)) {}
  // Moves or copies a value.
  template <class Derived>
    requires std::derived_from<std::remove_cvref_t<Derived>, Base>
  Shared(Derived&& value)
      : pointer_(
            std::make_shared<const std::remove_cvref_t<Derived>>(std::forward<Derived>(value))) {}

  // Returns whether it refers to an object.
  explicit operator bool() const { return static_cast<bool>(pointer_); }
  // Give access to the object, which must be there.
  const Base* operator->() const { return pointer_.get(); }
  const Base& operator*() const { return *pointer_; }
  // Returns the pointer to the object, which may be null.
  const std::shared_ptr<const Base>& pointer() const { return pointer_; }

 private:
  std::shared_ptr<const Base> pointer_;
};

}  // namespace tenon::data
