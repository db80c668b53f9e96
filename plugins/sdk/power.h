// Powers of whole numbers, alike on every device.
#pragma once

#include <cstdint>
#include <type_traits>

#include <tenon/plugins/sdk/host_device.h>

namespace tenon::sdk {

// Returns a to the power of b, by squaring. What grows too large wraps around; to a negative power
// it is 0, except for bases 1 and -1.
template <class T>
TN_HD constexpr T whole_power(T a, T b) {
  static_assert(std::is_integral_v<T>);
  if constexpr (std::is_signed_v<T>)
    if (b < 0) return a == 1 ? T(1) : a == -1 ? T(b & 1 ? -1 : 1) : T(0);
  // At least unsigned: a product of two bytes would be computed in int, and overflow it for wider
  // ones.
  using Wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
  Wide result = 1, factor = static_cast<Wide>(a);
  for (auto rest = static_cast<std::make_unsigned_t<T>>(b); rest; rest >>= 1, factor *= factor)
    if (rest & 1) result *= factor;
  return static_cast<T>(result);
}

}  // namespace tenon::sdk
