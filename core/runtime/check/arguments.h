// What tn_run points to, in checked mode (TENON_CHECK).
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/plugins/abi/abi.h>

namespace tenon::checked {

// Copies of the arrays of one run. They live for the call only: once it has returned, their
// pointers lead nowhere, so that a plan which reads them later, when its turn comes, does not
// happen to find what was there.
class Arguments {
 public:
  explicit Arguments(const tn_run& run);
  Arguments(const Arguments&) = delete;

  tn_run& run() { return run_; }
  void spoil();

 private:
  std::vector<void*> inputs_, outputs_;
  std::vector<tn_scalar> scalars_;
  std::vector<uint64_t> versions_;
  tn_run run_;
};

}  // namespace tenon::checked
