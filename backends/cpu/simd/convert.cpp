#include "simd/convert.h"

#include <array>
#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <Eigen/Core>

namespace tenon::cpu {
namespace {

using Half = Eigen::half;
using BFloat = Eigen::bfloat16;
template <class T>
constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;
struct Bool {
  uint8_t bits;
};

template <class From>
inline auto plain(From x) {
  if constexpr (is_half<From>) {
    return static_cast<float>(x);
  } else if constexpr (std::is_same_v<From, Bool>) {
    return x.bits;
  } else {
    return x;
  }
}

template <class To, class From>
inline To cast(From from) {
  auto x = plain(from);
  using X = decltype(x);
  if constexpr (is_half<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(x != X(0))};
  } else if constexpr (std::is_floating_point_v<X> && std::is_integral_v<To>) {
    // Outside the range C++ leaves the result open: make it the smallest i64, as the hardware does,
    // and cut that down.
    bool fits = x > X(-9223372036854775808.0) && x < X(9223372036854775808.0);
    if constexpr (sizeof(To) == 8) {
      return fits ? static_cast<int64_t>(x) : INT64_MIN;
    } else if constexpr (sizeof(To) == 4) {
      return x >= X(-2147483648.0) && x < X(2147483648.0) ? static_cast<int32_t>(x) : INT32_MIN;
    } else {
      return static_cast<To>(fits ? static_cast<int64_t>(x) : 0);
    }
  } else {
    return static_cast<To>(x);
  }
}

void widen(int64_t n, float* y, const uint16_t* x) {
  for (int64_t i = 0; i < n; ++i) y[i] = widened(x[i]);
}
void narrow(int64_t n, uint16_t* y, const float* x) {
  for (int64_t i = 0; i < n; ++i) y[i] = narrowed(x[i]);
}

template <class To, class From>
void convert(int64_t n, void* dst, const void* src) {
  auto* y = static_cast<To*>(dst);
  auto* x = static_cast<const From*>(src);
  constexpr bool widens = is_half<From> && std::is_same_v<To, float>;
  constexpr bool narrows = is_half<To> && std::is_same_v<From, float>;
  if constexpr (widens && std::is_same_v<From, BFloat>) {
    widen(n, y, static_cast<const uint16_t*>(src));
  } else if constexpr (narrows && std::is_same_v<To, BFloat>) {
    narrow(n, static_cast<uint16_t*>(dst), x);
  } else if constexpr (widens || narrows) {
    using Eigen::ArrayX, Eigen::Map;
    Map<ArrayX<To>>(y, n) = Map<const ArrayX<From>>(x, n).template cast<To>();
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = cast<To>(x[i]);
  }
}

// In the order of tn_dtype.
using Types = std::tuple<float, double, Half, BFloat, int64_t, int32_t, uint8_t, Bool>;
constexpr size_t kTypes = std::tuple_size_v<Types>;

template <size_t... I>
constexpr std::array<ConvertRow, sizeof...(I)> conversions(std::index_sequence<I...>) {
  return {
      convert<std::tuple_element_t<I / kTypes, Types>, std::tuple_element_t<I % kTypes, Types>>...};
}

}  // namespace

ConvertRow convert_row(tn_dtype to, tn_dtype from) {
  static constexpr auto table = conversions(std::make_index_sequence<kTypes * kTypes>());
  return table[static_cast<size_t>(to) * kTypes + static_cast<size_t>(from)];
}

}  // namespace tenon::cpu
