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

// The formats that load reads. docs/checkpoints.md describes what is checked in each.
enum class FileFormat { tenon, safetensors, torch, npy, npz, hdf5 };
// Returns "Tenon", "safetensors", "PyTorch", "NumPy .npy", "NumPy .npz" or "HDF5".
TENON_API std::string_view name_of(FileFormat format);

struct TENON_API LoadReport {
  struct Renamed {
    std::string from;  // the name in the checkpoint
    std::string to;    // the name in the model
  };
  struct MisShaped {
    std::string key;  // in the model
    Shape in_checkpoint;
    Shape in_model;
  };
  struct Cast {
    std::string key;  // in the model
    DType from;       // of the checkpoint
    DType to;         // of the model
  };

  struct Tied {
    std::string key;   // in the model
    std::string with;  // the first name of the same tensor
  };

  std::vector<std::string> matched;     // loaded under the same name
  std::vector<Renamed> renamed;         // loaded; wrapper segments were removed or added
  std::vector<std::string> missing;     // only in the model; unchanged
  std::vector<std::string> unexpected;  // only in the checkpoint; not used
  std::vector<MisShaped> mis_shaped;    // never loaded; empty in a report that a load returns
  std::vector<Cast> cast;               // loaded, and converted to the model's dtype
  std::vector<Tied> tied;               // loaded into a tensor that the model has under two names

  std::vector<std::string> skipped;       // in the model, but not what LoadOptions::only asks for
  std::vector<std::string> unused_rules;  // the patterns of rules that match no name of the file
  // In an HDF5 file of another program, but no tensors, each with the reason: "names: it holds
  // text".
  std::vector<std::string> not_tensors;
  std::optional<FileFormat> format;  // of the file; nullopt if the values came from memory
  bool unverified = false;  // the file has no checksums of Tenon's: damage may be unnoticed

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
