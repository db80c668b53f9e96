// The features of the processor of this machine. Private to the host.
#pragma once

#include <set>
#include <string>

namespace tenon::plugins {

// Returns the features that both the processor and the kernel support, with the names of
// /proc/cpuinfo ("flags" on x86, "Features" on ARM). Returns an empty set if that file cannot be
// read.
const std::set<std::string>& cpu_features();

}  // namespace tenon::plugins
