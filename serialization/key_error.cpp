#include <algorithm>
#include <string_view>

#include <tenon/core/base/edit_distance.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/format.h>
#include <tenon/serialization/key_error.h>

namespace tenon {
namespace {

constexpr size_t kMaxHints = 8;
constexpr size_t kMaxCandidates = 2000;  // limits the time that the search for similar names takes

// A file may have any number of names, of any length.
constexpr size_t kMaxNames = 1000, kMaxNameBytes = 1000;

std::string shown(const std::string& name) {
  return name.size() > kMaxNameBytes ? excerpt(name) : printable(name);
}

std::string quoted(const KeySide& side, const std::vector<size_t>& positions) {
  std::string text;
  for (size_t i = 0; i < std::min(positions.size(), kMaxNames); ++i)
    text += fmt::format("{}\"{}\"", i ? ", " : "", shown(side.tensors[positions[i]].key));
  if (positions.size() > kMaxNames)
    text += fmt::format(" and {} more", positions.size() - kMaxNames);
  return text;
}

std::string nearest_names(const KeySide& checkpoint, const KeySide& model, const Pairing& pairing) {
  std::string text;
  for (size_t i = 0; i < std::min(pairing.missing.size(), kMaxHints); ++i) {
    const std::string& wanted = model.tensors[pairing.missing[i]].key;
    const Shape& shape = model.tensors[pairing.missing[i]].shape;
    const std::string* best = nullptr;
    bool best_fits = false;                // one of the same shape is nearer than any other
    size_t best_distance = wanted.size();  // a name at this distance or more is not similar
    for (size_t j = 0; j < std::min(pairing.unexpected.size(), kMaxCandidates); ++j) {
      const std::string& found = checkpoint.tensors[pairing.unexpected[j]].key;
      if (found.size() > kMaxNameBytes) continue;
      size_t distance = edit_distance(wanted, found);
      // A name that contains the other is similar, however long the rest is.
      if (found.find(wanted) != found.npos || wanted.find(found) != wanted.npos) distance = 0;
      const bool fits = checkpoint.tensors[pairing.unexpected[j]].shape == shape;
      if (distance >= wanted.size() || (best && fits < best_fits)) continue;
      if (distance < best_distance || fits > best_fits)
        best = &found, best_distance = distance, best_fits = fits;
    }
    if (best)
      text += fmt::format("{}\"{}\" for \"{}\"", text.empty() ? "" : ", ", printable(*best),
                          printable(wanted));
  }
  return text.empty() ? text : fmt::format("\n\tNearest names in state_dict: {}.", text);
}

std::string size_mismatches(const KeySide& checkpoint, const KeySide& model,
                            const Pairing& pairing) {
  std::string text;
  for (auto [from, to] : pairing.mis_shaped) {
    const NamedShape &source = checkpoint.tensors[from], &target = model.tensors[to];
    const std::string other_name =
        source.key == target.key ? "" : fmt::format(" ({} in the checkpoint)", shown(source.key));
    text += fmt::format(
        "\n\tsize mismatch for {}{}: copying a param with shape {} from checkpoint, the shape in "
        "current model is {}.",
        shown(target.key), other_name, source.shape, target.shape);
  }
  return text;
}

// Says what removing wrapper segments would lead to, if the load did not do that.
std::string wrapper_hint(const KeySide& checkpoint, const KeySide& model,
                         const std::vector<Pairing>& all, const LoadOptions& options) {
  auto fits =
      std::find_if(all.begin() + 1, all.end(), [](const Pairing& p) { return p.complete(); });
  if (fits != all.end() && fits->mis_shaped.empty() && options.prefix == Prefix::exact)
    return "\n\tThe names differ by wrapper segments alone (such as \"module.\"): load with "
           ".prefix = Prefix::automatic.";
  if (fits != all.end())
    return "\n\tWithout wrapper segments (such as \"module.\") the names agree, but not the "
           "shapes:" +
           size_mismatches(checkpoint, model, *fits);
  auto best = std::max_element(all.begin(), all.end(), [](const Pairing& a, const Pairing& b) {
    return a.pairs.size() < b.pairs.size();
  });
  if (best->pairs.size() > all[0].pairs.size()) {
    std::string text = fmt::format(
        "\n\tWithout wrapper segments (such as \"module.\") {} of {} tensors find their place",
        best->pairs.size(), model.tensors.size());
    if (!best->missing.empty()) text += "; still missing: " + quoted(model, best->missing);
    if (!best->unexpected.empty())
      text += "; still unexpected: " + quoted(checkpoint, best->unexpected);
    return text + ".";
  }
  auto ambiguous = std::find_if(all.begin(), all.end(),
                                [](const Pairing& p) { return p.collision.has_value(); });
  if (ambiguous == all.end()) return "";
  const Collision& collision = *ambiguous->collision;
  return fmt::format(
      "\n\tTaking out wrapper segments would be ambiguous: \"{}\" and \"{}\" would both become "
      "\"{}\". Rename the keys in the state dict.",
      shown(collision.first), shown(collision.second), shown(collision.name));
}

std::string remedy(const Pairing& chosen, const LoadOptions& options) {
  if (!chosen.mis_shaped.empty())
    return options.strict
               ? "\n\tBuild the model with the sizes that the checkpoint was saved with."
               : "\n\tSizes have to agree with .strict = false, too: leave these tensors out with "
                 ".only, change them with a rule, or build the model with the sizes that the "
                 "checkpoint was saved with.";
  if (chosen.pairs.empty())
    return "\n\tNo name is the same: is this a checkpoint of another model? `tenon checkpoint show "
           "FILE` lists its tensors.";
  return options.strict
             ? "\n\tLoad with .strict = false to take what fits and leave the rest as it is."
             : "";
}

}  // namespace

std::string explain(const KeySide& checkpoint, const KeySide& model, const Pairing& chosen,
                    const std::vector<Pairing>& all, const LoadOptions& options,
                    const std::string& model_name) {
  std::string text = fmt::format("Error(s) in loading state_dict for {}:", model_name);
  if (options.strict && !chosen.missing.empty())
    text += fmt::format("\n\tMissing key(s) in state_dict: {}. ", quoted(model, chosen.missing));
  if (options.strict && !chosen.unexpected.empty())
    text += fmt::format("\n\tUnexpected key(s) in state_dict: {}. ",
                        quoted(checkpoint, chosen.unexpected));
  text += size_mismatches(checkpoint, model, chosen);
  if (options.strict) text += nearest_names(checkpoint, model, chosen);
  std::string hint =
      options.strict && !chosen.complete() ? wrapper_hint(checkpoint, model, all, options) : "";
  return text + (hint.empty() ? remedy(chosen, options) : hint);
}

}  // namespace tenon
