#include "fault.h"

#include <string>

#include <tenon/plugins/sdk/sdk.h>

namespace tenon::cuda {

namespace {
const char* operator_of(FaultSite site) {
  switch (site) {
    case FaultSite::cross_entropy:
      return "cross_entropy";
    case FaultSite::embedding:
      return "embedding";
    case FaultSite::index_select:
      return "index_select";
    default:
      return "gather";
  }
}
}  // namespace

void throw_fault(Fault& fault) {
  const FaultSite site = *const_cast<volatile FaultSite*>(&fault.site);
  if (site == FaultSite::none) return;
  auto text = [](int64_t n) { return std::to_string(n); };
  const std::string op = operator_of(site);
  const std::string what = site == FaultSite::cross_entropy
                               ? "label " + text(fault.value) + " in row " + text(fault.position) + " lies outside [0, "
                               : "index " + text(fault.value) + " at position " + text(fault.position) + " is outside [0, ";
  const std::string message = op + ": " + what + text(fault.bound) + ")";
  fault.site = FaultSite::none;
  *const_cast<volatile int32_t*>(&fault.claimed) = 0;
  throw sdk::Error(TN_CODE_OUT_OF_RANGE, message, {{"op", op}});
}

}  // namespace tenon::cuda
