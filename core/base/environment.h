// Settings that the environment holds. What cannot be understood is told, never guessed at.
#pragma once

#include <cstdint>
#include <optional>

namespace tenon {

// The value of an environment variable, from 1 to 1024; nothing where it is not set. ValueError
// where it is anything else.
std::optional<uint32_t> count_from_environment(const char* name);
// Whether it is 1; false where it is 0, empty or not set. ValueError where it is anything else.
bool flag_from_environment(const char* name);

// ValueError where one of the library's own variables is set to what it cannot be. Called before a
// device is opened: some are read where an error could reach nobody.
void check_environment();

}  // namespace tenon
