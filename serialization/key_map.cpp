#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <tenon/core/error.h>
#include <tenon/serialization/key_error.h>
#include <tenon/serialization/key_map.h>

namespace tenon {
namespace {

using Names = std::vector<std::string>;

// The segments that PyTorch's wrappers add to names: DataParallel and DistributedDataParallel,
// torch.compile, FSDP, activation checkpoints.
constexpr std::array<std::string_view, 4> kForeignSegments = {
    "module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"};

bool is_foreign(std::string_view segment) {
  return std::find(kForeignSegments.begin(), kForeignSegments.end(), segment) !=
         kForeignSegments.end();
}

// Returns a key without wrapper segments. The last segment is the name of the tensor itself and
// stays.
std::string without_segments(const std::string& key,
                             const std::unordered_set<std::string>& wrappers, bool foreign_too) {
  std::string kept;
  size_t begin = 0;
  for (size_t dot; (dot = key.find('.', begin)) != key.npos; begin = dot + 1)
    if ((wrappers.empty() || !wrappers.contains(key.substr(0, dot))) &&
        !(foreign_too && is_foreign(std::string_view(key).substr(begin, dot - begin))))
      kept.append(key, begin, dot + 1 - begin);
  return kept.append(key, begin, key.npos);
}

Names names_of(const KeySide& side) {
  Names names;
  for (const NamedShape& tensor : side.tensors) names.push_back(tensor.key);
  return names;
}

Names without_wrappers(const KeySide& side, bool foreign_too) {
  std::unordered_set<std::string> wrappers;
  if (side.wrappers) wrappers.insert(side.wrappers->begin(), side.wrappers->end());
  Names names;
  for (const NamedShape& tensor : side.tensors)
    names.push_back(without_segments(tensor.key, wrappers, foreign_too));
  return names;
}

// Removes the first segment of every name. Returns an empty list unless every name starts with the
// segment of a foreign wrapper.
Names without_first_segment(const Names& names) {
  Names shorter;
  for (const std::string& name : names) {
    size_t dot = name.find('.');
    if (dot == name.npos || !is_foreign(std::string_view(name).substr(0, dot))) return {};
    shorter.push_back(name.substr(dot + 1));
  }
  return shorter;
}

// The same once, twice and so on, as long as that is possible. A file may have any number of
// segments, and nobody has more wrappers than this.
std::vector<Names> without_first_segments(const Names& names) {
  constexpr size_t kMax = 64;
  std::vector<Names> all;
  for (Names shorter = without_first_segment(names); !shorter.empty() && all.size() < kMax;
       shorter = without_first_segment(shorter))
    all.push_back(shorter);
  return all;
}

// Returns two keys that got the same name, if there are any.
std::optional<Collision> find_collision(const KeySide& side, const Names& names) {
  std::unordered_map<std::string_view, size_t> seen;
  for (size_t i = 0; i < names.size(); ++i)
    if (auto [at, fresh] = seen.emplace(names[i], i); !fresh)
      return Collision{side.tensors[at->second].key, side.tensors[i].key, names[i]};
  return std::nullopt;
}

Pairing pair_up(const KeySide& checkpoint, const Names& checkpoint_names, const KeySide& model,
                const Names& model_names) {
  Pairing pairing;
  pairing.collision = find_collision(checkpoint, checkpoint_names);
  if (!pairing.collision) pairing.collision = find_collision(model, model_names);
  if (pairing.collision) return pairing;
  std::unordered_map<std::string_view, size_t> positions;
  for (size_t i = 0; i < checkpoint_names.size(); ++i) positions.emplace(checkpoint_names[i], i);
  std::vector<bool> used(checkpoint_names.size());
  for (size_t i = 0; i < model_names.size(); ++i) {
    auto at = positions.find(model_names[i]);
    if (at == positions.end()) {
      pairing.missing.push_back(i);
      continue;
    }
    used[at->second] = true;
    pairing.pairs.emplace_back(at->second, i);
    if (checkpoint.tensors[at->second].shape != model.tensors[i].shape)
      pairing.mis_shaped.emplace_back(at->second, i);
  }
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i]) pairing.unexpected.push_back(i);
  return pairing;
}

// Returns every way to match the names, the most careful first.
std::vector<Pairing> pairings(const KeySide& checkpoint, const KeySide& model) {
  std::vector<Pairing> all;
  auto add = [&](const Names& a, const Names& b) {
    all.push_back(pair_up(checkpoint, a, model, b));
  };
  add(names_of(checkpoint), names_of(model));
  const Names ours = without_wrappers(checkpoint, false), theirs = without_wrappers(model, false);
  add(ours, theirs);
  for (const Names& shorter : without_first_segments(ours)) add(shorter, theirs);
  for (const Names& shorter : without_first_segments(theirs)) add(ours, shorter);
  add(without_wrappers(checkpoint, true), without_wrappers(model, true));
  return all;
}

KeyMap describe(const KeySide& checkpoint, const KeySide& model, const Pairing& pairing) {
  KeyMap map{pairing.pairs, {}};
  for (auto [from, to] : pairing.pairs) {
    const NamedShape &source = checkpoint.tensors[from], &target = model.tensors[to];
    if (source.key == target.key)
      map.report.matched.push_back(target.key);
    else
      map.report.renamed.push_back({source.key, target.key});
    if (source.dtype != target.dtype)
      map.report.cast.push_back({target.key, source.dtype, target.dtype});
  }
  for (size_t i : pairing.missing) map.report.missing.push_back(model.tensors[i].key);
  for (size_t i : pairing.unexpected) map.report.unexpected.push_back(checkpoint.tensors[i].key);
  return map;
}

}  // namespace

std::vector<std::string> names_without_wrappers(const KeySide& side) {
  Names names = without_wrappers(side, false);
  if (side.wrappers) return names;
  std::vector<Names> shorter = without_first_segments(names);
  return shorter.empty() ? names : std::move(shorter.back());
}

KeyMap map_keys(const KeySide& checkpoint, const KeySide& model, const LoadOptions& options,
                const std::string& model_name) {
  std::vector<Pairing> all = pairings(checkpoint, model);
  const Pairing* chosen = &all[0];
  if (options.prefix == Prefix::automatic) {
    auto fits = std::find_if(all.begin(), all.end(),
                             [](const Pairing& p) { return p.complete() && p.mis_shaped.empty(); });
    // A load that is not strict takes the way that matches most tensors. Of equals, max_element
    // returns the first, which is the most careful.
    if (fits == all.end() && !options.strict)
      fits = std::max_element(all.begin(), all.end(), [](const Pairing& a, const Pairing& b) {
        return a.pairs.size() < b.pairs.size();
      });
    if (fits != all.end()) chosen = &*fits;
  }
  if (!chosen->mis_shaped.empty() || (options.strict && !chosen->complete()))
    throw StateDictError(explain(checkpoint, model, *chosen, all, options, model_name));
  return describe(checkpoint, model, *chosen);
}

}  // namespace tenon
