// The features of the processor of this machine.
#pragma once

#include <set>
#include <string>

namespace tenon::plugins {

// Returns the features that both the processor and the kernel support, with the names of
// /proc/cpuinfo ("flags" on x86, "Features" on ARM). Returns an empty set if that file cannot be
// read.
const std::set<std::string>& cpu_features();

// Returns what to say of a feature that this machine lacks and that no machine has, as far as is
// known: " (no known name; did you mean avx512f?)". Returns "" for a known one.
std::string remark_on_feature(const std::string& name);

}  // namespace tenon::plugins
