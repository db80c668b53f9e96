// What a load did, name by name.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include <tenon/core/api.h>
#include <tenon/core/dtype.h>
#include <tenon/core/shape.h>

namespace tenon {

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

  std::vector<std::string> matched;     // loaded under the very same name
  std::vector<Renamed> renamed;         // loaded, with wrapper segments taken out or put in
  std::vector<std::string> missing;     // in the model alone: left as they were
  std::vector<std::string> unexpected;  // in the checkpoint alone: not used
  std::vector<MisShaped> mis_shaped;    // never loaded; empty in a report that a load returns
  std::vector<Cast> cast;               // loaded, and converted to the model's dtype
  std::vector<Tied> tied;  // loaded, into a tensor that the model holds under two names

  // How many tensors of the model were given values.
  size_t loaded() const { return matched.size() + renamed.size(); }
  // Whether every tensor on either side found its place.
  bool complete() const { return missing.empty() && unexpected.empty() && mis_shaped.empty(); }
  // One line, then one for each kind of note; long lists are cut.
  std::string str() const;
};

TENON_API std::string to_string(const LoadReport& report);
TENON_API std::ostream& operator<<(std::ostream& out, const LoadReport& report);

}  // namespace tenon
