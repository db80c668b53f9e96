// What the processor of this machine can do. Private to the host.
#pragma once

#include <set>
#include <string>

namespace tenon::plugins {

// Names as /proc/cpuinfo lists them ("flags" on x86, "Features" on ARM): what both the processor
// and the kernel support. Empty where that file cannot be read.
const std::set<std::string>& cpu_features();

}  // namespace tenon::plugins
