// The tensors among the arguments and results of functions that users write.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon::detail {

template <class T>
struct Tensors : std::bool_constant<std::derived_from<T, Tensor>> {};
template <class T, class A>
struct Tensors<std::vector<T, A>> : Tensors<T> {};
template <class T, size_t N>
struct Tensors<std::array<T, N>> : Tensors<T> {};
template <class T>
struct Tensors<std::optional<T>> : Tensors<T> {};
template <class K, class T, class C, class A>
struct Tensors<std::map<K, T, C, A>> : Tensors<T> {};
template <class... T>
struct Tensors<std::tuple<T...>> : std::disjunction<Tensors<std::remove_cvref_t<T>>...> {};
template <class T, class U>
struct Tensors<std::pair<T, U>> : std::disjunction<Tensors<T>, Tensors<U>> {};

// Tells whether a type is a tensor, or a std::vector, array, optional, map, pair or tuple of
// tensors, in any nesting.
template <class T>
inline constexpr bool has_tensors = Tensors<std::remove_cvref_t<T>>::value;

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class T, class U>
inline constexpr bool is_tuple<std::pair<T, U>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class K, class T, class C, class A>
inline constexpr bool is_map<std::map<K, T, C, A>> = true;

// Calls visit(tensor) for each tensor in the value, with a Tensor& unless the value is const.
template <class T, class F>
void each_tensor(T& value, F& visit) {
  using V = std::remove_const_t<T>;
  if constexpr (!has_tensors<V>) {
  } else if constexpr (std::derived_from<V, Tensor>) {
    visit(static_cast<std::conditional_t<std::is_const_v<T>, const Tensor, Tensor>&>(value));
  } else if constexpr (is_optional<V>) {
    if (value) each_tensor(*value, visit);
  } else if constexpr (is_tuple<V>) {
    std::apply([&](auto&... items) { (each_tensor(items, visit), ...); }, value);
  } else if constexpr (is_map<V>) {
    for (auto& item : value) each_tensor(item.second, visit);
  } else {
    for (auto& item : value) each_tensor(item, visit);
  }
}

// Returns copies of the tensors in these values.
template <class... T>
std::vector<Tensor> tensors_in(const T&... values) {
  std::vector<Tensor> found;
  auto add = [&](const Tensor& tensor) { found.push_back(tensor); };
  (each_tensor(values, add), ...);
  return found;
}

// Returns where the tensors in a value are.
template <class T>
std::vector<Tensor*> places_of_tensors(T& value) {
  std::vector<Tensor*> places;
  auto add = [&](Tensor& tensor) { places.push_back(&tensor); };
  each_tensor(value, add);
  return places;
}

}  // namespace tenon::detail
