// The reduction of a loss, by PyTorch's name.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/loss.h>

namespace tenon::conformance {

// PyTorch's name for a reduction, "mean" if there is none.
inline Reduction reduction_of(const json& attributes) {
  const std::string name = attributes.value("reduction", "mean");
  for (Reduction reduction :
       {Reduction::none, Reduction::mean, Reduction::sum, Reduction::batchmean})
    if (name == name_of(reduction)) return reduction;
  throw ValueError("no reduction is called " + name);
}

}  // namespace tenon::conformance
