// Checks that need a process of their own: the plugin under older and newer hosts, and the end of a
// process that has work in its queues.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/conformance/check.h>
#include <tenon/conformance/options.h>

namespace tenon::conformance {

// How such a process is started.
struct Launch {
  std::string program = "/proc/self/exe";
  // The program's name and the arguments with which it does `run_checks` of the section "joint".
  // "--host", "--end" and "--pipe" are added.
  std::vector<std::string> command;
  unsigned limit = 60;  // seconds that each check in it may take
  bool checked = true;  // except for those that end with queued work: a check would wait for it
  // The names of checks that have passed under this host, and have to pass under others.
  std::shared_ptr<std::set<std::string>> passed = std::make_shared<std::set<std::string>>();
  std::function<void()> alive = [] {};  // called whenever a check in it begins or ends
};

// What such a process prints where a check in it begins: what it printed before is not about that
// check. The line on the pipe does not tell, because it may be read later than what is printed.
inline constexpr std::string_view kBeginning = "[tenon conformance] a check begins\n";

std::vector<Check> process_checks(const Launch& launch);

// What the process that is to end does (Options::end): queues work on the subject's device, and,
// for "drain", drains its plugin. Throws a Mismatch if that goes wrong.
void queue_before_the_end(const Options& options, const Subject& subject);

}  // namespace tenon::conformance
