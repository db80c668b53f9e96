// What a load takes of a file, and as what: LoadOptions::rules and LoadOptions::only.
#pragma once

#include <string>
#include <vector>

#include <tenon/core/tensor.h>
#include <tenon/serialization/key_map.h>

namespace tenon {

class TENON_API Conversion {
 public:
  // Applies the rules to the names and shapes of `source`, and leaves out what options.only does
  // not match. Throws a ValueError for a pattern that is no regular expression and for a
  // permutation that is none, and a StateDictError for a name that is too long for a pattern and
  // for two names that become equal.
  Conversion(const KeySide& source, const LoadOptions& options);

  // What is left. Positions in it are those of position() and apply().
  const KeySide& side() const { return side_; }
  // Returns where tensor i is in the source.
  size_t position(size_t i) const { return positions_[i]; }
  // Returns the values of tensor i, permuted as the rules say.
  Tensor apply(size_t i, const Tensor& values) const;
  // Returns the patterns of the rules that changed nothing.
  const std::vector<std::string>& unused_rules() const { return unused_rules_; }

 private:
  KeySide side_;
  std::vector<size_t> positions_;
  std::vector<std::vector<Shape>> permutations_;  // of each tensor, one after the other
  std::vector<std::string> unused_rules_;
};

// Matches what a conversion left of `source` with a model, as map_keys does. The pairs are
// positions in the conversion's side and in `model`. The report has the names of `source` where a
// tensor was renamed. Throws as map_keys, and if the load is strict, a StateDictError for an
// options.only that matches no name of the model.
KeyMap map_converted(const Conversion& conversion, const KeySide& source, const KeySide& model,
                     const LoadOptions& options, const std::string& model_name);

}  // namespace tenon
