// One thing that the kit looks at, and what it found.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tenon/core/device.h>
#include <tenon/core/dtype.h>

namespace tenon::conformance {

// What is checked, and what it is compared with: the cpu as it is without overlays.
struct Subject {
  Device device, reference;
};

struct Check {
  std::string section;  // "cases", "layouts" …
  std::string op;       // PyTorch's name, as in the table
  std::string name;     // what tells it from the others of its section: arguments, shapes, layouts
  DType dtype;
  // Throws a Mismatch where a result is wrong, and whatever the operators throw.
  std::function<void()> run;
};

enum class Status { passed, failed, not_offered, skipped };
std::string_view name_of(Status status);

struct Result {
  std::string section, op, dtype, name;
  Status status;
  std::string detail;  // what is wrong, or why it is not offered
};

// An UnsupportedError is `not_offered`, any other exception `failed`.
Result result_of(const Check& check);

}  // namespace tenon::conformance
