// Which tensor of a checkpoint belongs to which of a model, decided on names and shapes alone.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/core/api.h>
#include <tenon/core/dtype.h>
#include <tenon/core/shape.h>
#include <tenon/serialization/load_report.h>

namespace tenon {

enum class Prefix {
  automatic,  // names that differ by wrapper segments ("module.") are brought together
  exact,      // every name has to be the same
};

struct LoadOptions {
  bool strict = true;  // every tensor on either side must find its place; else what fits is loaded.
                       // Shapes must agree in both cases
  Prefix prefix = Prefix::automatic;
};

struct NamedShape {
  std::string key;
  Shape shape;
  DType dtype = DType::f32;
};

// One side of a load.
struct KeySide {
  std::vector<NamedShape> tensors;  // keys are unique
  // Paths of the children of wrappers ("module", "backbone.module"); their last segments say
  // nothing about what the model is. Absent where the one who wrote the names did not record it.
  std::optional<std::vector<std::string>> wrappers;
};

struct KeyMap {
  std::vector<std::pair<size_t, size_t>>
      pairs;  // positions in the checkpoint's and in the model's tensors
  LoadReport report;
};

// Exact names first. Where these do not cover both sides, wrapper segments are taken out on both:
// those that are known to be wrappers, then those that other tools write in front of everything,
// then those anywhere. The first of these that is one-to-one, covers both sides and agrees in every
// shape is taken. StateDictError, in PyTorch's words, where none does (strict) or a shape differs
// (always). `model_name` is its type, for the text.
TENON_API KeyMap map_keys(const KeySide& checkpoint, const KeySide& model,
                          const LoadOptions& options, const std::string& model_name);

}  // namespace tenon
