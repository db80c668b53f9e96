// All checks that the options ask for, in an order that is the same in every process.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <tenon/conformance/case.h>
#include <tenon/conformance/case_files.h>
#include <tenon/conformance/check.h>
#include <tenon/conformance/options.h>

namespace tenon::conformance {

struct Checklist {
  std::vector<Check> checks;
  std::vector<Result> known;  // what is known without running anything: files that cannot be read
  CaseFolder cases;
};

// Whether the options leave the operator of this line in.
bool is_asked_for(const Options& options, const Line& line);

// What is called while the list is made and its checks run.
struct Listener {
  std::function<void()> alive;  // the making of the list, or a check that waits for processes
  // HDF5 begins to read this file or case; none at the end.
  std::function<void(const std::string& part)> reading;
};

// `command`: with which this program does `run_checks` of the section "joint"; empty where no check
// may start a process.
Checklist make_checklist(const Options& options, const Subject& subject,
                         const std::vector<std::string>& command, const Resumption& resumption,
                         const Listener& listener);

// The names of the operators that have checks, PyTorch's and the Op's.
std::set<std::string> operator_names();
// Throws a ValueError with the names that may be meant, unless `op` is empty or in the table.
void require_known_op(const std::string& op);

}  // namespace tenon::conformance
