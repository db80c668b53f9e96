// Calls that do not end in one plan: they are decomposed, computed on the CPU, or need copies that
// nobody asked for. While such a detour lasts, errors of the operators that it consists of name the
// call of the user, and the detour is counted and traced.
#pragma once

#include <optional>
#include <string>

#include <tenon/core/base/module_path.h>
#include <tenon/core/device.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/runtime/counts.h>

namespace tenon {

// The types and shapes of the inputs, "f32 (2, 3), f32 (3,)"; if there are none, those of the
// output: "-> f32 (2, 3)".
std::string signature_of(const Call& call);

class Detour {
 public:
  // All arguments have to outlive the detour. `reason` tells why the plugins refused the call, in
  // one line for each. `copied` is the tensor that is copied or converted for the call; null if the
  // detour concerns the whole call.
  Detour(observe::DetourKind kind, const Call& call, Device device, const std::string& reason,
         const Tensor* copied = nullptr);
  // Begins the detour of a function that is no operator and copies one tensor unasked.
  Detour(const char* function, const Tensor& copied);
  ~Detour();
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;

  // Counts bytes that are copied between devices.
  void add_bytes(uint64_t bytes) { bytes_ += bytes; }

  // Returns the beginning of an error text about an operator that a detour of this thread needs,
  // "layer_norm: (2, 3) on joint:0: its decomposition needs "; empty if there is no detour.
  static std::string whole();
  // Returns the end of such a text: why the plugins refused the operator that the user called, and
  // those between, where the reasons differ from `reasons`, which are those of the needed operator:
  // "\nBefore that, layer_norm itself was refused:\n  joint: …".
  static std::string refusals(const std::string& reasons);

 private:
  void announce();
  void add();
  tracing::Detour seen() const;
  const char* name() const;
  const char* outermost() const;
  std::string text() const;
  std::string refusals_beside(const std::string& reasons) const;

  const observe::DetourKind kind_;
  const char* const function_ = nullptr;  // null if there is a call
  const Call* const call_ = nullptr;
  const Device device_;
  const std::string& reason_;
  const Tensor* const copied_;
  uint64_t bytes_;
  const Detour* const outer_;
  tracing::Clock::time_point began_{};
  std::optional<PartPath> part_;  // the call, while its decomposition is watched
};

}  // namespace tenon
