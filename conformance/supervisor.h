// `tenon conformance`: starts the process that runs the checks, and again where it crashes or
// hangs.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <tenon/conformance/options.h>

namespace tenon::conformance {

// `command`: the program and the arguments with which it does `run_checks`; "--from N" and
// "--without OP", "--without-section NAME" and "--passed NAME" are added, and the number of the
// pipe as "--pipe N". Prints to `out`. Returns the exit status: 0 if something passed and nothing
// failed.
int supervise(const Options& options, const std::vector<std::string>& command, std::ostream& out);

}  // namespace tenon::conformance
