// For tests of the cuda plugin's kernels: makes "cuda" the plugin that runs on the CPU (see
// CMakeLists.txt), before any real one. TENON_TEST_GPU=1 leaves it out: the same tests then show
// that a real device gives the same results.
#pragma once

#include <cstdlib>

#include <tenon/plugins/host/registry.h>

#include "places.h"

namespace tenon::test {

struct EmulatedCuda {
  EmulatedCuda() {
    if (std::getenv("TENON_TEST_GPU")) return;
    const std::string folder = build_dir() + "/tests/cuda";
    setenv("TENON_CUDA_LIBRARY_PATH", (folder + ":" + folder + "/nccl").c_str(),
           1);  // the stand-ins for cuBLASLt and NCCL
    plugins::registry().add_path(folder);
  }
};

// Whether a sanitizer slows the device down, the host's an emulated one or compute-sanitizer a GPU
// (for which TENON_TEST_BRIEFLY=1 says so): long tests then try less.
inline bool device_is_slow() {
  if (std::getenv("TENON_TEST_BRIEFLY")) return true;
#if defined(__SANITIZE_ADDRESS__)
  return !std::getenv("TENON_TEST_GPU");
#else
  return false;
#endif
}

// Where the device is slow, true for fifteen of sixteen calls: which of many combinations a test
// passes over. The same in each run.
inline bool passed_over() {
  static unsigned calls = 0;
  return device_is_slow() && (++calls * 2654435761u) >> 28 != 0;
}

}  // namespace tenon::test
