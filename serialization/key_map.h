// Decides by names and shapes which tensor of a checkpoint belongs to which tensor of a model.
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
  automatic,  // names that differ by wrapper segments ("module.") match
  exact,      // only equal names match
};

struct LoadOptions {
  // Whether every tensor of the model and of the checkpoint must have a match. Otherwise the
  // matching tensors are loaded. The shapes of matching tensors must agree in both cases.
  bool strict = true;
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
  // The paths of the children of wrappers ("module", "backbone.module"), whose last segments do not
  // belong to the model itself. nullopt if the writer of the names did not record them.
  std::optional<std::vector<std::string>> wrappers;
};

struct KeyMap {
  // Positions in the tensors of the checkpoint and of the model.
  std::vector<std::pair<size_t, size_t>> pairs;
  LoadReport report;
};

// Matches the tensors of a checkpoint and of a model. First it tries the names unchanged. If these
// do not cover both sides, it removes wrapper segments on both: the recorded wrappers, then the
// segments that other tools write in front of every name, then such segments anywhere. It takes the
// first of these ways that is one-to-one, covers both sides and agrees in every shape. Throws a
// StateDictError in PyTorch's words if there is no such way (strict), or if a shape differs.
// `model_name` is the type of the model, for the text.
TENON_API KeyMap map_keys(const KeySide& checkpoint, const KeySide& model,
                          const LoadOptions& options, const std::string& model_name);

}  // namespace tenon
