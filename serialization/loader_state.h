// What a checkpoint holds of a loader.
#pragma once

#include <tenon/data/loader.h>
#include <tenon/serialization/checkpoint_value.h>

namespace tenon {

// Where a loader is, and what its place in an epoch depends on.
CheckpointValues loader_values(const data::DataLoader& loader);
// Throws a StateDictError unless the places of two loaders mean the same examples.
void require_same_order(const CheckpointValues& there, const CheckpointValues& here);

}  // namespace tenon
