// Names of a model that are one tensor, and what a checkpoint holds for them. Internal to
// serialization.
#pragma once

#include <string>

#include <tenon/serialization/key_map.h>
#include <tenon/serialization/staged_load.h>

namespace tenon {

// Lists in the report which of the targets that are about to be loaded are one tensor.
// StateDictError where different values are staged for it, or for an element that views of one
// memory share: one of them would be lost without a word.
void check_ties(KeyMap& map, const StagedLoad& staged, const std::string& model_name);

}  // namespace tenon
