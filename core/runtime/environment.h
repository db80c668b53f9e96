// Numbers that the environment sets.
#pragma once

#include <cstdint>
#include <optional>

namespace tenon {

// The value of an environment variable, from 1 to 1024; nothing where it is not set. ValueError where it is anything else.
std::optional<uint32_t> count_from_environment(const char* name);

}  // namespace tenon
