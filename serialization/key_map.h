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

// Says how names of a checkpoint and of a model are matched.
enum class Prefix {
  automatic,  // names that differ by wrapper segments ("module.") match
  exact,      // only equal names match
};

// A step that converts the names and tensors of a file to those of a model.
struct LoadRule {
  // Gives a regular expression (ECMAScript). Where it matches a part of a name, the part is
  // replaced, as re.sub does in Python: "^encoder\\." with "backbone." In the replacement, $1 is
  // the first group and $& is all that matched.
  std::string pattern;
  std::string replacement = "$&";
  // Sets the order of dimensions, as Tensor::permute does: {1, 0} transposes a matrix. If it is
  // given, the rule concerns only tensors that have as many dimensions.
  Shape permute = {};
};

// Says which tensors of a file go where, and how carefully the file is read.
struct LoadOptions {
  // True if every tensor of the model and of the checkpoint must have a match; otherwise the
  // matching tensors are loaded. The shapes of matching tensors must agree in both cases.
  bool strict = true;
  // Says how names are matched.
  Prefix prefix = Prefix::automatic;
  // Names the part of a PyTorch file to load, if the file is a dictionary of state dicts: "model",
  // or "ema/model" for one inside another. If it is empty, the file itself is the state dict.
  std::string section = {};
  // Gives a regular expression (ECMAScript) that is searched in the names. If it is given, only
  // tensors whose names match are loaded, and the others stay as they are; neither side has to have
  // them. The names are those of the model, without the segments of wrappers: "^backbone\\.",
  // "^(?!head\\.)". One that matches none of them is a StateDictError if the load is strict.
  std::string only = {};
  // Rules that are applied to each name of the file, one after the other, before names are matched.
  std::vector<LoadRule> rules = {};
  // Refuses a checkpoint of Tenon's with wrong checksums. If false, it is read as an HDF5 file of
  // another program: it may be damaged, or another program has changed it.
  bool verify = true;
  // Copies the values into the model one tensor at a time, which needs memory for the largest
  // tensor (and for those that share memory) beside the model, and not for all of it a second time.
  // All checks come first nevertheless, so that the file is read twice. Only if the second reading
  // fails, for example because a disk breaks then, the model has been changed in part, and the
  // error says so.
  bool low_memory = false;
};

// The name, shape and dtype of a tensor, without its values.
struct NamedShape {
  std::string key;
  Shape shape;
  DType dtype = DType::f32;
};

// The names and shapes of one side of a load: the checkpoint or the model.
struct KeySide {
  // The tensors of the side, whose keys are unique.
  std::vector<NamedShape> tensors;
  // The paths of the children of wrappers ("module", "backbone.module"), whose last segments do not
  // belong to the model itself. nullopt if the writer of the names did not record them.
  std::optional<std::vector<std::string>> wrappers;
};

// The result of map_keys: which tensors belong together, and the report of the load.
struct KeyMap {
  // Pairs of positions, in the tensors of the checkpoint and of the model.
  std::vector<std::pair<size_t, size_t>> pairs;
  // Tells what the load did with each name.
  LoadReport report;
};

// Returns the names without the segments of wrappers: the recorded ones or, if none are recorded,
// those that all names have in front.
std::vector<std::string> names_without_wrappers(const KeySide& side);

// Matches the tensors of a checkpoint and of a model. First it tries the names unchanged. If these
// do not cover both sides, it removes wrapper segments on both: the recorded wrappers, then the
// segments that other tools write in front of every name, then such segments anywhere. It takes the
// first of these ways that is one-to-one, covers both sides and agrees in every shape. Throws a
// StateDictError in PyTorch's words if there is no such way (strict), or if a shape differs.
// `model_name` is the type of the model, for the text.
TENON_API KeyMap map_keys(const KeySide& checkpoint, const KeySide& model,
                          const LoadOptions& options, const std::string& model_name);

}  // namespace tenon
