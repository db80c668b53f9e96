#include "fault.h"

namespace tenon::cuda {

std::string take_fault(Fault& fault) {
  const FaultSite site = *const_cast<volatile FaultSite*>(&fault.site);
  if (site == FaultSite::none) return {};
  auto text = [](int64_t n) { return std::to_string(n); };
  std::string message;
  if (site == FaultSite::cross_entropy) {
    message = "cross_entropy: label " + text(fault.value) + " in row " + text(fault.position) + " lies outside [0, " +
              text(fault.bound) + ")";
  } else {
    const char* op = site == FaultSite::embedding ? "embedding" : site == FaultSite::index_select ? "index_select" : "gather";
    message = std::string(op) + ": index " + text(fault.value) + " at position " + text(fault.position) + " is outside [0, " +
              text(fault.bound) + ")";
  }
  fault.site = FaultSite::none;
  *const_cast<volatile int32_t*>(&fault.claimed) = 0;
  return message;
}

}  // namespace tenon::cuda
