// Checks the names of a model that stand for one tensor, for which a checkpoint may have different
// values.
#pragma once

#include <string>

#include <tenon/serialization/key_map.h>
#include <tenon/serialization/staged_load.h>

namespace tenon {

// Lists in the report which of the targets that are about to be loaded are one tensor. Throws a
// StateDictError if different values are staged for it, or for an element that views of one memory
// share: one of the values would be lost silently.
void check_ties(KeyMap& map, const StagedLoad& staged, const std::string& model_name);
// Throws a StateDictError if two models that are loaded together have a tensor in common for which
// different values are staged.
void check_ties_between(const KeyMap& map, const StagedLoad& staged, const KeyMap& other_map,
                        const StagedLoad& other_staged);

}  // namespace tenon
