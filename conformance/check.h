// One thing that the kit looks at, and what it found.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenon/core/device.h>
#include <tenon/core/dtype.h>

namespace tenon::conformance {

// What is checked, and what it is compared with: the cpu as it is without overlays.
struct Subject {
  Device device, reference;
  std::string overlay = {};  // the one over the device that is checked; empty: the whole device
  std::string tried = {};    // an operator of its own with which plans are tried; see Options
  // What the overlay says to operators that it does not have (overlay.h).
  std::shared_ptr<const std::set<std::string>> refusals_of_unknown =
      std::make_shared<std::set<std::string>>();
};

// Thrown by a check that has nothing to compare: there is no element to compute, or the call makes
// no sense.
struct Skipped : std::runtime_error {
  explicit Skipped(const std::string& reason = "") : std::runtime_error(reason) {}
};

struct Check {
  std::string section;  // "cases", "layouts" …
  std::string op;       // PyTorch's name, as in the table; empty where it is about none
  std::string name;     // unique in its section: arguments, shapes, layouts
  DType dtype;
  // Throws a Mismatch where a result is wrong, and whatever the operators throw.
  std::function<void()> run;
  bool promised = false;                        // not to offer it is a failure
  std::shared_ptr<std::string> note = nullptr;  // what it found where nothing is wrong
};

enum class Status { passed, failed, not_offered, skipped };
std::string_view name_of(Status status);

struct Result {
  std::string section, op, dtype, name;
  Status status;
  std::string detail;  // what is wrong, or why it is not offered or skipped, or a note
  // What the device refused, where that is why: "sum", "copy from f32 to f64".
  std::string refused = {};
};

// An UnsupportedError is `not_offered` unless it was promised, any other exception `failed`.
Result result_of(const Check& check);

}  // namespace tenon::conformance
