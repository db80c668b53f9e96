// Checks of the joint itself: what the C interface promises besides the results of operators.
#pragma once

#include <string>
#include <vector>

#include <tenon/conformance/check.h>

namespace tenon::conformance {

// For a device: memory, copies, errors, requests, plans and, where it has them, streams and events.
// They use the plugin directly, beside the core, and open its device in this process.
std::vector<Check> joint_checks(const Device& device);

}  // namespace tenon::conformance
