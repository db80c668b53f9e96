// The process that runs the checks, and what it says to the one that waits for it: a line of JSON
// for each step, on a pipe.
#pragma once

#include <tenon/conformance/options.h>

namespace tenon::conformance {

// Lines: {"title": …, "count": n}, then for each check {"begin": i, …} and {"end": i, "lost": …,
// …}, results that need no run as {"known": …}, {"alive": true} while a check waits for processes
// that it has started, and {"done": true}; or {"error": …} where the device cannot be opened.
// Before all of them {"opening": true} until plugins are loaded and the device is open, and then
// {"opening": false}. SIGTERM of the process that listens asks where this one is, to which it
// answers as worker_process.h says, and then does nothing more. The
// last check is the one that lost the device, if one did. `command`: with which this program does
// that for the section "joint". Returns the exit status, or ends the process as the options say.
int run_checks(const Options& options, const std::vector<std::string>& command,
               const Resumption& resumption, int pipe);

}  // namespace tenon::conformance
