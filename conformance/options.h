// What is asked of the kit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/core/dtype.h>

namespace tenon::conformance {

struct Options {
  std::string device = "cpu";  // an installed one; not with `plugin`
  std::string plugin;          // a library or a manifest: this plugin alone, with the stock cpu
  std::string cases;           // a folder of reference cases; empty: those of the installed copy
  std::string op;              // PyTorch's name or the Op's; empty: all
  std::optional<DType> dtype;
  std::string section;         // "cases", "layouts" …; empty: all
  bool required_only = false;  // operators of Level::required alone, which have to be offered
  uint64_t seed = 0;           // of the random shapes
  // An operator that the plugin's own library defines (core/dispatch/custom_op.h), with which the
  // joint tries plans: "mylib::swish2(beta=1.5)". It makes one tensor of f32 of one of its shape,
  // element by element. Empty: one of Tenon's.
  std::string tried;
  bool speed = false;   // measure instead of check
  bool checked = true;  // with TENON_CHECK=1
  std::string json;     // a file for all results
  unsigned limit = 60;  // seconds that a check may take
  // For processes of their own (processes.h). The host that this one pretends to be: "1.0", "1.1",
  // "1.2" or "newer"; and how it ends, instead of checking anything: "drain", "return" or "exit".
  std::string host, end;
};

// Where the process that runs the checks begins, what it leaves out because it ended it
// before, and what has passed before.
struct Resumption {
  size_t from = 0;
  std::vector<std::string> without;        // operators
  std::vector<std::string> without_files;  // of reference cases
  std::vector<std::string> without_sections;
  std::vector<std::string> passed;  // names of checks of the joint
};

}  // namespace tenon::conformance
