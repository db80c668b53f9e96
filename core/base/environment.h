// Reads settings from environment variables. A value that cannot be understood is an error; it is
// never guessed.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/core/api.h>

namespace tenon {

// Returns the value of an environment variable, a number from 1 to 1024, or nothing if it is not
// set. Throws a ValueError for any other value.
std::optional<uint32_t> count_from_environment(const char* name);
// Returns true if the variable is 1, and false if it is 0, empty or not set. Throws a ValueError
// for any other value.
bool flag_from_environment(const char* name);

// Checks all variables of the library itself and throws a ValueError if one has an invalid value.
// It is called before a device is opened, because some of them are read later, where an error could
// not be reported to the user.
TENON_API void check_environment();

}  // namespace tenon
