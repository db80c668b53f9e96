// The report of a load, name by name.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/api.h>
#include <tenon/core/dtype.h>
#include <tenon/core/shape.h>

namespace tenon {

// Names the formats that load reads. docs/checkpoints.md describes what is checked in each.
enum class FileFormat { tenon, safetensors, torch, npy, npz, hdf5 };
// Returns "Tenon", "safetensors", "PyTorch", "NumPy .npy", "NumPy .npz" or "HDF5".
TENON_API std::string_view name_of(FileFormat format);

// Tells what a load did with each name.
struct TENON_API LoadReport {
  // A tensor whose names in the checkpoint and in the model differ.
  struct Renamed {
    // The name in the checkpoint, and the one in the model.
    std::string from;
    std::string to;
  };
  // A tensor whose shapes in the checkpoint and in the model differ.
  struct MisShaped {
    // The name in the model, and both shapes.
    std::string key;
    Shape in_checkpoint;
    Shape in_model;
  };
  // A tensor that was converted to the dtype of the model.
  struct Cast {
    // The name in the model, the dtype in the checkpoint and that in the model.
    std::string key;
    DType from;
    DType to;
  };

  // A tensor that the model has under two names.
  struct Tied {
    // The name in the model, and the first name of the same tensor.
    std::string key;
    std::string with;
  };

  // Names that were loaded under the same name.
  std::vector<std::string> matched;
  // Names that were loaded after wrapper segments were removed or added, or rules applied.
  std::vector<Renamed> renamed;
  // Names that only the model has; their tensors are unchanged.
  std::vector<std::string> missing;
  // Names that only the checkpoint has; they are not used.
  std::vector<std::string> unexpected;
  // Tensors of other shapes, which are never loaded; empty in a report that a load returns.
  std::vector<MisShaped> mis_shaped;
  // Tensors that were loaded and converted to the model's dtype.
  std::vector<Cast> cast;
  // Names that were loaded into a tensor that the model has under another name, too.
  std::vector<Tied> tied;

  // Names of the model that LoadOptions::only does not ask for.
  std::vector<std::string> skipped;
  // The patterns of rules that match no name of the file.
  std::vector<std::string> unused_rules;
  // Lists what an HDF5 file of another program holds beside tensors, each with the reason: "names:
  // it holds text".
  std::vector<std::string> not_tensors;
  // The format of the file; nullopt if the values came from memory.
  std::optional<FileFormat> format;
  // True if the file has no checksums of Tenon's, so that damage may be unnoticed.
  bool unverified = false;

  // Returns how many tensors of the model got values.
  size_t loaded() const { return matched.size() + renamed.size(); }
  // Returns whether every tensor of the model and of the checkpoint has a match.
  bool complete() const { return missing.empty() && unexpected.empty() && mis_shaped.empty(); }
  // Returns one line with the count, then a line for each kind of note. Long lists are cut.
  std::string str() const;
};

// Returns report.str().
TENON_API std::string to_string(const LoadReport& report);
// Prints report.str().
TENON_API std::ostream& operator<<(std::ostream& out, const LoadReport& report);

}  // namespace tenon
