// Checks of the joint itself: what the C interface promises besides the results of operators.
#pragma once

#include <string>
#include <vector>

#include <tenon/conformance/check.h>

namespace tenon::conformance {

// For the device of the subject: errors, requests, plans, what it does to the plugin of the
// reference device, memory and its shortage, copies and, where it has them, streams and events. An
// overlay has its own errors, requests and plans; the rest is of the plugin below. They use the
// plugin directly, beside the core, and open its device in this process.
std::vector<Check> joint_checks(const Subject& subject);

// Throws a ValueError unless the text is empty or names an operator as Options::tried does.
void require_readable(const std::string& tried);

}  // namespace tenon::conformance
