// What the compiler leaves of CUDA's attributes: names. cuda_runtime.h turns __shared__ and
// __launch_bounds__ into tags, which become part of mangled names and are read from this module's
// table of symbols.
#pragma once

#include <cstddef>
#include <vector>

namespace tenon::emulated {

struct SharedVariable {
  void* at;
  size_t bytes;
};

struct Kernel {
  unsigned most_threads = 1024;        // a block may have
  size_t shared_bytes = 0;             // of the kernel's own
  std::vector<SharedVariable> shared;  // also those of functions that no kernel is
};

// By the address of its function.
const Kernel& kernel_at(const void* function);

}  // namespace tenon::emulated
