// What requests of several families are checked by. Texts name neither plugin nor operator: the
// host puts both before them.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include <tenon/plugins/sdk/sdk.h>

namespace tenon::sdk {

// For requests that no plugin can take.
[[noreturn]] inline void invalid(std::string why) {
  throw Error(TN_CODE_INVALID_ARGUMENT, std::move(why));
}

// "(2, 3)".
inline std::string shape_text(const tn_tensor_desc& d) {
  std::string text = "(";
  for (uint32_t i = 0; i < d.rank; ++i) text += (i ? ", " : "") + std::to_string(d.shape[i]);
  return text + ")";
}

// The attribute `name`: two integers from `least` to 2^31 - 1, so that products of two of them do
// not overflow.
inline std::array<int64_t, 2> get_pair(const Request& request, const char* name, int64_t least) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  const auto v = request.get_ints(name);
  if (v.size() != 2 || v[0] < least || v[1] < least || v[0] > most || v[1] > most)
    invalid(std::string(name) + " must be two integers of at least " + std::to_string(least));
  return {v[0], v[1]};
}

}  // namespace tenon::sdk
