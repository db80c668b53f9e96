// Reads settings from environment variables. One that is empty is as one that is not set. A value
// that cannot be understood is an error; it is never guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tenon/core/api.h>

namespace tenon {

// Returns the value of an environment variable, a number from 1 to 1024, or nothing if it is not
// set or empty. Throws a ValueError for any other value.
std::optional<uint32_t> count_from_environment(const char* name);
// Returns true if the variable is 1, and false if it is 0, empty or not set. Throws a ValueError
// for any other value.
bool flag_from_environment(const char* name);

// What TENON_CPU_FALLBACK allows: nothing (0), operators that a device lacks are computed on the
// CPU (1), and a list of these is printed at the end (report).
enum class CpuFallback { off, on, report };
// Throws a ValueError for any other value.
CpuFallback cpu_fallback_from_environment();

// What TENON_TRACE asks for: any of "ops", "plans" and the name of one file that ends in ".json",
// separated by commas.
struct TraceSettings {
  bool ops = false;    // a line on stderr for each run of an operator
  bool plans = false;  // a line on stderr for each plan that is made
  std::string file;    // where a Chrome trace is written; empty for none
  bool any() const { return ops || plans || !file.empty(); }
};
// Throws a ValueError if the variable holds anything else.
TraceSettings trace_from_environment();

// Checked mode, as TENON_CHECK asks for it: "1" for checks of memory and of runs, "nan" to also
// look for the first NaN of a program, "1,nan" for the same.
struct CheckSettings {
  bool on = false;
  bool nan = false;
  uint32_t seconds = 60;  // how long work may take before it counts as stuck: TENON_CHECK_TIMEOUT
};
// Returns the settings, which are read once. Throws a ValueError if a value is not understood; the
// next call tries again then.
TENON_API const CheckSettings& check_settings();

// Checks all variables of the library itself and throws a ValueError if one has an invalid value.
// It is called before a device is opened, because some of them are read later, where an error could
// not be reported to the user.
TENON_API void check_environment();

}  // namespace tenon
