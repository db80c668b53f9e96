// Values that several objects hold together.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace tenon::data {

// A Base that does not change any more: a pointer that is shared, or a value of a derived class,
// which is moved or copied here. Copies refer to the same object.
template <class Base>
class Shared {
 public:
  Shared() = default;
  template <class Derived>
    requires std::derived_from<Derived, Base>
  Shared(std::shared_ptr<Derived> pointer) : pointer_(std::move(pointer)) {}
  Shared(std::shared_ptr<const Base> pointer) : pointer_(std::move(pointer)) {}
  template <class Derived>
    requires std::derived_from<std::remove_cvref_t<Derived>, Base>
  Shared(Derived&& value)
      : pointer_(
            std::make_shared<const std::remove_cvref_t<Derived>>(std::forward<Derived>(value))) {}

  explicit operator bool() const { return static_cast<bool>(pointer_); }
  const Base* operator->() const { return pointer_.get(); }
  const Base& operator*() const { return *pointer_; }
  const std::shared_ptr<const Base>& pointer() const { return pointer_; }

 private:
  std::shared_ptr<const Base> pointer_;
};

}  // namespace tenon::data
