// How every function of a plugin is called.
#pragma once

#include <string>
#include <utility>

#include <fmt/core.h>

#include <tenon/plugins/host/checked_api.h>

namespace tenon::plugins {

template <class Call, class Check>
tn_error* CheckedApi::call(const char* function, Call&& call, Check&& check,
                           const Asked* asked) const noexcept {
  try {
    InsidePlugin inside(name_, library_, function, asked);
    if (tn_error* error = call()) return readable(function, error);
  } catch (...) {
    return thrown(function);
  }
  try {
    return checked(function, check());
  } catch (...) {
    return no_memory_to_say_how();
  }
}

template <class Call>
tn_error* CheckedApi::call(const char* function, Call&& call) const noexcept {
  return this->call(function, call, [] { return std::string(); });
}

template <class Call>
void CheckedApi::call_quietly(const char* function, Call&& call) const noexcept {
  try {
    InsidePlugin inside(name_, library_, function);
    call();
  } catch (...) {
    log_thrown(function);
  }
}

// The check of a function that makes one object.
auto must_give(auto** made, const char* what) {
  return [made, what] {
    return *made ? std::string()
                 : fmt::format("reported success, but gave no {0}; set *{0}, or return a tn_error",
                               what);
  };
}

}  // namespace tenon::plugins
