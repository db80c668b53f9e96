// The text of the error of a load that does not fit: PyTorch's words, followed by hints.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/serialization/key_map.h>

namespace tenon {

// Two keys of one side that would become the same name.
struct Collision {
  std::string first, second, name;
};

// One way to match the names. Positions are those in KeySide::tensors.
struct Pairing {
  std::vector<std::pair<size_t, size_t>> pairs;  // (checkpoint, model), mis-shaped ones included
  std::vector<std::pair<size_t, size_t>> mis_shaped;  // (checkpoint, model)
  std::vector<size_t> missing;                        // in the model
  std::vector<size_t> unexpected;                     // in the checkpoint
  std::optional<Collision> collision;                 // the names are ambiguous; nothing is paired

  bool complete() const { return !collision && missing.empty() && unexpected.empty(); }
};

// Returns the text. `all` are the ways that were tried: all[0] takes the names unchanged, and
// `chosen` is one of them.
std::string explain(const KeySide& checkpoint, const KeySide& model, const Pairing& chosen,
                    const std::vector<Pairing>& all, const LoadOptions& options,
                    const std::string& model_name);

}  // namespace tenon
