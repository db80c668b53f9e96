#include <algorithm>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/torch_section.h>

namespace tenon {
namespace {

constexpr size_t kShownEntries = 12;

// Returns the section of a state dict that a dictionary, `section`, is or has in itself; nullopt if
// there is none.
std::optional<std::string> state_dict_in(const Pickle& pickle, uint32_t position,
                                         const std::string& section, int depth = 0) {
  if (describe(pickle, position).starts_with("a state dict")) return section;
  const PickleValue& value = pickle.values[position];
  if (value.kind != PickleKind::dict || depth == 3) return std::nullopt;
  for (size_t i = 0; i < std::min(value.items.size() / 2, kShownEntries); ++i) {
    const PickleValue& key = pickle.values[value.items[2 * i]];
    if (key.kind != PickleKind::text) continue;
    const std::string part = fmt::format("{}/{}", section, excerpt(key.text));
    if (auto found = state_dict_in(pickle, value.items[2 * i + 1], part, depth + 1)) return found;
  }
  return std::nullopt;
}

// Lists what is inside, where a state dict was expected, and says what to do. `missing` is what was
// looked for in the section and is not there.
[[noreturn]] void no_state_dict(const Pickle& pickle, uint32_t position, const std::string& section,
                                std::string_view missing = {}) {
  const PickleValue& value = pickle.values[position];
  const std::string where =
      section.empty() ? "it" : fmt::format("its section '{}'", printable(section));
  if (value.kind != PickleKind::dict)
    throw CheckpointError(
        fmt::format("{} is {} and not a state dict. Save one: torch.save(model.state_dict(), path)",
                    where, describe(pickle, position)));
  std::string entries, advice = "Save a state dict: torch.save(model.state_dict(), path)";
  const size_t count = value.items.size() / 2;
  for (size_t i = 0; i < std::min(count, kShownEntries); ++i) {
    const uint32_t key = value.items[2 * i];
    const std::string_view text = pickle.values[key].text;
    const bool named = pickle.values[key].kind == PickleKind::text;
    const std::string what = describe(pickle, value.items[2 * i + 1]);
    entries +=
        fmt::format("{}{}: {}", i ? ", " : "",
                    named ? fmt::format("\"{}\"", excerpt(text)) : describe(pickle, key), what);
    if (!named || advice.starts_with("Load")) continue;
    const std::string part =
        fmt::format("{}{}{}", printable(section), section.empty() ? "" : "/", excerpt(text));
    if (const auto found = state_dict_in(pickle, value.items[2 * i + 1], part))
      advice = fmt::format("Load one of its parts with .section = \"{}\"", *found);
  }
  if (count > kShownEntries) entries += fmt::format(" and {} more", count - kShownEntries);
  throw CheckpointError(fmt::format("{} {}; inside is {}. {}", where,
                                    missing.empty()
                                        ? "is no state dict, which has nothing but tensors"
                                        : fmt::format("has no section '{}'", excerpt(missing)),
                                    entries.empty() ? "nothing" : entries, advice));
}

// Goes from the whole to a section, whose '/' may be part of a key or lead into a dictionary.
uint32_t find_section(const Pickle& pickle, const std::string& section) {
  uint32_t position = pickle.root;
  std::string_view rest = section;
  while (!rest.empty()) {
    std::optional<uint32_t> next;
    size_t end = rest.size();
    for (;; end = rest.rfind('/', end - 1)) {
      if (end == rest.npos) break;
      next = find_entry(pickle, position, rest.substr(0, end));
      if (next || end == 0) break;
    }
    if (!next) {
      const size_t found = section.size() - rest.size();  // with the '/' behind it
      no_state_dict(pickle, position, section.substr(0, found ? found - 1 : 0), rest);
    }
    position = *next;
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return position;
}

bool is_tensor(const PickleValue& value) {
  return value.kind == PickleKind::tensor || value.kind == PickleKind::tensor_v3;
}

bool is_state_dict(const Pickle& pickle, uint32_t position) {
  const PickleValue& value = pickle.values[position];
  if (value.kind != PickleKind::dict) return false;
  for (size_t i = 0; i < value.items.size(); i += 2)
    if (pickle.values[value.items[i]].kind != PickleKind::text ||
        !is_tensor(pickle.values[value.items[i + 1]]))
      return false;
  return true;
}

}  // namespace

std::optional<uint32_t> find_entry(const Pickle& pickle, uint32_t dict, std::string_view key) {
  const PickleValue& value = pickle.values[dict];
  if (value.kind != PickleKind::dict) return std::nullopt;
  for (size_t i = 0; i < value.items.size(); i += 2)
    if (pickle.values[value.items[i]].kind == PickleKind::text &&
        pickle.values[value.items[i]].text == key)
      return value.items[i + 1];
  return std::nullopt;
}

uint32_t find_state_dict(const Pickle& pickle, const std::string& section) {
  const uint32_t states = find_section(pickle, section);
  if (!is_state_dict(pickle, states)) no_state_dict(pickle, states, section);
  return states;
}

}  // namespace tenon
