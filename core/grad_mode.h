// Decides whether operators are recorded for autograd. Each thread has its own setting.
#pragma once

#include <tenon/core/api.h>

namespace tenon {

// Returns whether operators of this thread are recorded for backward(): true unless a guard below
// says otherwise.
TENON_API bool grad_enabled();

// Switches recording on or off for this thread until the end of the scope.
class TENON_API GradMode {
 public:
  // Begins the scope.
  explicit GradMode(bool enabled);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool before_;
};

// Write `NoGrad guard;`: no operator in this scope is recorded.
class NoGrad : public GradMode {
 public:
  // Begins the scope.
  NoGrad() : GradMode(false) {}
};
// Gives NoGrad LibTorch's name.
using NoGradGuard = NoGrad;

// `no_grad([&] { … })` records nothing and returns what the callable returns.
template <class F>
decltype(auto) no_grad(F&& body) {
  NoGrad guard;
  return body();
}

// Holds what a thread has set, in one place, because libraries get little static thread-local
// storage.
struct GradSettings {
  // Say whether operators are recorded, and whether backward passes look for NaN
  // (core/autograd/anomaly.h).
  bool enabled = true;
  bool detects_anomaly = false;
};
// Returns the settings of this thread.
GradSettings& grad_settings();

}  // namespace tenon
