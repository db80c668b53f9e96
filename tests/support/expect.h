// What tests ask again and again: errors by their texts, and the plugin "sim".
#pragma once

#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>
#include <tenon/plugins/host/registry.h>

#include "places.h"

namespace tenon::test {

namespace detail {

// Templates that are called hundreds of times are thin: what they share is compiled once.
struct Call {
  void* object;
  void (*run)(void* object);
  bool (*is_expected)(const std::exception& e);
};
template <class E, class F>
Call call_of(F& f) {
  return {const_cast<void*>(static_cast<const volatile void*>(&f)),
          [](void* object) { (*static_cast<F*>(object))(); },
          [](const std::exception& e) {
            if constexpr (std::is_same_v<E, std::exception>)
              return true;
            else
              return dynamic_cast<const E*>(&e) != nullptr;
          }};
}
std::string error_of(const Call& call);
void require_error(const Call& call, std::initializer_list<std::string_view> parts);

}  // namespace detail

// The text of the E that `call` throws; "" where it throws nothing. Any other exception goes on.
template <class E = Error>
std::string error_of(auto&& call) {
  return detail::error_of(detail::call_of<E>(call));
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

// `call` throws an E whose text holds all `parts`.
template <class E>
void require_error(auto&& call, const auto&... parts) {
  detail::require_error(detail::call_of<E>(call), {std::string_view(parts)...});
}

// As a global fixture: "sim" is found.
struct SimFolder {
  SimFolder() { plugins::registry().add_path(build_dir() + "/tests/sim"); }
};

}  // namespace tenon::test
