// What cat and slice_backward are made of.
#pragma once

#include <tenon/plugins/sdk/requests/shape.h>

#include "kernels/shape/copy.h"

namespace tenon::cpu {

// One input to its part of the output.
struct PartCopy {
  sdk::CopyPart part;
  StridedCopy copy;
  void run(const tn_run& run) const { copy.run(part.destination(run), part.source(run)); }
};

}  // namespace tenon::cpu
