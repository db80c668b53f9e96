// Finds the operator whose gradient is the first that is NaN.
#pragma once

#include <tenon/core/api.h>

namespace tenon {

// Write `DetectAnomaly guard;`: while it exists, backward passes that this thread runs look at each
// gradient that a rule has computed, and throw an AutogradError for the first that has a NaN. It
// names the operator, what it was called with (dtypes and shapes of the inputs) and the module that
// called it. Each look waits for the gradient, so passes are much slower.
class TENON_API DetectAnomaly {
 public:
  // Begins to look for NaN, or stops it if `enabled` is false, until the end of the scope.
  explicit DetectAnomaly(bool enabled = true);
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  bool before_;
};

// Returns whether backward passes of this thread look for NaN.
TENON_API bool detects_anomaly();

}  // namespace tenon
