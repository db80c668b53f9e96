// For tests of the cuda plugin's kernels: makes "cuda" the plugin that runs on the CPU (see CMakeLists.txt), before any real one.
// TENON_TEST_GPU=1 leaves it out: the same tests then show that a real device gives the same results.
#pragma once

#include <cstdlib>

#include <tenon/plugins/host/registry.h>

#include "places.h"

namespace tenon::test {

struct EmulatedCuda {
  EmulatedCuda() {
    if (std::getenv("TENON_TEST_GPU")) return;
    const std::string folder = build_dir() + "/tests/cuda";
    setenv("TENON_CUDA_LIBRARY_PATH", (folder + ":" + folder + "/nccl").c_str(), 1);  // the stand-ins for cuBLASLt and NCCL
    plugins::registry().add_path(folder);
  }
};

}  // namespace tenon::test
