// The attribute "precision" of products and convolutions, read and checked once for every plugin.
#pragma once

#include <string_view>

#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// Returns whether f32 factors may be rounded to TF32, and methods may trade accuracy for speed. It
// is a permission: a kernel that has no use for it computes as without. Throws TN_CODE_UNSUPPORTED
// for a word that is not known, upon which the core asks without the attribute.
inline bool may_use_tf32(const Request& request, tn_dtype dtype) {
  if (!request.find("precision")) return false;
  const std::string_view asked = request.get_string("precision");
  if (asked != "high") unsupported("precision \"{}\" is not known to this plugin", asked);
  return dtype == TN_F32;
}

}  // namespace tenon::sdk
