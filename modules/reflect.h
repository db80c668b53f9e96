// Finds the fields of a plain struct and their names at compile time, so that a module need not
// register them.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include <tenon/modules/bind_fields.h>

namespace tenon::nn::reflect {

// ---- counting ----

// Converts to any type. The largest number of such initializers that an aggregate takes is the
// number of its fields. A wrong count does not go unnoticed: `bind` would not compile.
struct Anything {
  template <class T>
  constexpr operator T() const noexcept {
    __builtin_unreachable();
  }
};

// Returns whether T takes as many initializers as there are indices.
template <class T, size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{(void(I), Anything{})...}; };
}
// Returns the largest number of initializers, at most N, that T takes.
template <class T, size_t N>
constexpr size_t count_initialisers() {
  if constexpr (takes<T>(std::make_index_sequence<N>{}))
    return N;
  else if constexpr (N == 0)
    return 0;
  else
    return count_initialisers<T, N - 1>();
}
// The number of fields of T. `Bases` is the number of empty base classes, which come first in the
// list of initializers. One more than `kMaxFields` is tried, so that a struct with too many fields
// is noticed.
template <class T, size_t Bases>
inline constexpr size_t field_count =
    count_initialisers<T, (sizeof(T) < kMaxFields ? sizeof(T) : kMaxFields) + 1 + Bases>() - Bases;

// ---- names ----

// Storage for a T that is never constructed: only the addresses of its fields are taken, at compile
// time.
template <class T>
union Unconstructed {
  char placeholder;
  T value;
  constexpr Unconstructed() : placeholder() {}
  constexpr ~Unconstructed() {}
};
template <class T>
inline Unconstructed<T> unconstructed{};

// A pointer to a field as a template argument.
template <class T>
struct FieldPointer {
  T* pointer;
};

// Return the compiler's own name of the template argument, in the name of the function. The
// signature has no alias, because GCC would add an explanation of it behind the argument.
template <auto P>
constexpr const char* signature_of_value() {
  return __PRETTY_FUNCTION__;
}
template <class T>
constexpr const char* signature_of_type() {
  return __PRETTY_FUNCTION__;
}

// Returns the last identifier in `text` without template arguments: "Net" for "[with T =
// a::(anonymous)::Net<b::C>]".
constexpr std::string_view last_identifier(std::string_view text) {
  auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           static_cast<unsigned char>(c) >= 128;
  };
  size_t end = text.size();
  int depth = 0;
  for (; end > 0 && (depth > 0 || !in_name(text[end - 1])); --end) {
    if (text[end - 1] == '>') ++depth;
    if (text[end - 1] == '<') --depth;
  }
  size_t begin = end;
  while (begin > 0 && in_name(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

// The name of a type: "Linear" for tenon::nn::Linear, "DataParallel" for
// tenon::nn::DataParallel<Net>.
template <class T>
inline constexpr std::string_view type_name = last_identifier(signature_of_type<T>());

// Returns the name of field `I` of the `Count` fields of T.
template <class T, size_t Count, size_t I>
constexpr std::string_view field_name() {
  constexpr auto field = std::get<I>(bind<Count>(unconstructed<T>.value));
  return last_identifier(
      signature_of_value<FieldPointer<std::remove_pointer_t<decltype(field)>>{field}>());
}
template <class T, size_t Count, size_t I>
inline constexpr std::string_view field_name_of = field_name<T, Count, I>();

// ---- visiting ----

// Calls visit(name, field) for each of the `Count` fields of a class, which are public, in the
// order of their declaration.
template <size_t Count, class T, class Visit>
void each_of(T& object, Visit&& visit) {
  auto fields = bind<Count>(object);
  [&]<size_t... I>(std::index_sequence<I...>) {
    (visit(field_name_of<T, Count, I>, *std::get<I>(fields)), ...);
  }(std::make_index_sequence<Count>{});
}

}  // namespace tenon::nn::reflect
