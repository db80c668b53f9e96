// Where the state dict is in what torch.save wrote.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tenon/serialization/pickle.h>

namespace tenon {

// Returns the position of the dictionary of tensors in a section, "model" or "ema/model"; the whole
// is "". Throws a CheckpointError that lists what is inside if there is none.
uint32_t find_state_dict(const Pickle& pickle, const std::string& section);

// Returns the value of a dictionary under a key, or nullopt.
std::optional<uint32_t> find_entry(const Pickle& pickle, uint32_t dict, std::string_view key);

}  // namespace tenon
