// The description of a program as JSON, which docs/checkpoints.md describes.
#pragma once

#include <string>
#include <string_view>

#include <tenon/core/graph/saved.h>

namespace tenon {

inline constexpr uint32_t kProgramVersion = 1;

std::string program_to_json(const graph::SavedProgram& program);
// Returns what the text says; its tensors have no memory. Numbers are in their ranges, and lists as
// long as they say, but whether nodes and values fit is not known then. Throws a CheckpointError
// for a text that program_to_json did not write, and for an operator that this version does not
// have.
graph::SavedProgram program_from_json(std::string_view text);

}  // namespace tenon
