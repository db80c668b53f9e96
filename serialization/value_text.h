// Numbers and texts by name as a JSON object without nesting, which is how checkpoints hold them.
#pragma once

#include <string>
#include <string_view>

#include <tenon/serialization/checkpoint_value.h>

namespace tenon {

// Returns the object, a line for each value; tensors are left out. Numbers are written so that they
// are read exactly: those of floating point with a point or an exponent, or as Python's NaN,
// Infinity and -Infinity. Throws a CheckpointError for a name or text that is not UTF-8.
std::string values_to_json(const CheckpointValues& values);
// Reads it. Throws a CheckpointError for anything else.
CheckpointValues values_from_json(std::string_view text);

}  // namespace tenon
