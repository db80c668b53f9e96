#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/edit_distance.h>
#include <tenon/core/base/json_value.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/plugins/host/cpu_features.h>
#include <tenon/plugins/host/files.h>
#include <tenon/plugins/host/manifest.h>

namespace tenon::plugins {

namespace {

constexpr size_t kMaxManifestBytes = 64 * 1024;
constexpr size_t kMaxString = 128;
constexpr size_t kMaxList = 64;

constexpr std::string_view kKeys[] = {"name",     "variant",  "version",      "kind",
                                      "abi",      "library",  "comment",      "preference",
                                      "overlays", "priority", "cpu_features", "vendor_libraries"};
constexpr std::string_view kKeysOfAbi[] = {"major", "minor"};

[[noreturn]] void refuse(const std::string& why) {
  throw Refused(fmt::format("manifest: {}", why));
}

// What is wrong with one field. parse_fields goes on, and names all of them.
struct Fault : ValueError {
  using ValueError::ValueError;
};

// The report is printed on terminals, so it may contain only printable characters.
std::string checked(const std::string& text, const std::string& field) {
  if (text.size() > kMaxString)
    throw Fault(fmt::format("\"{}\" is longer than {} characters", field, kMaxString));
  for (unsigned char c : text)
    if (c < 0x20 || c > 0x7e)
      throw Fault(fmt::format("\"{}\" holds a character that is not printable ASCII", field));
  return text;
}

JsonValue parsed(const std::string& text) {
  constexpr size_t depth = 3;  // strings in a list in an object
  try {
    return parse_json(text, depth);
  } catch (const ValueError& fault) {
    refuse(fault.what());
  }
}

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether somebody who wrote `key` may have meant `known`.
bool is_like(std::string_view key, std::string_view known) {
  return key.size() <= kMaxString && edit_distance(key, known) <= 2;
}

const JsonValue& require(const JsonValue& object, const char* field) {
  auto* value = object.find(field);
  if (value) return *value;
  std::string meant;
  for (auto& [key, other] : object.fields())
    if (!is_one_of(kKeys, key) && !is_one_of(kKeysOfAbi, key) && is_like(key, field))
      meant = fmt::format("; \"{}\" is there, did you mean \"{}\"?", excerpt(key), field);
  throw Fault(fmt::format("\"{}\" is missing{}", field, meant));
}

std::string string_of(const JsonValue& value, const std::string& field) {
  if (value.kind() != JsonValue::string)
    throw Fault(fmt::format("\"{}\" must be a string, not {}", field, value.type_name()));
  return checked(value.text(), field);
}

int64_t integer_of(const JsonValue& value, const std::string& field, int64_t low, int64_t high) {
  const bool fits =
      value.kind() == JsonValue::integer && value.whole() >= low && value.whole() <= high;
  if (!fits) throw Fault(fmt::format("\"{}\" must be an integer from {} to {}", field, low, high));
  return value.whole();
}

std::string optional_string(const JsonValue& object, const char* field) {
  auto* value = object.find(field);
  return value ? string_of(*value, field) : std::string();
}

int32_t optional_int(const JsonValue& object, const char* field) {
  constexpr auto limits = std::numeric_limits<int32_t>();
  auto* value = object.find(field);
  return value ? static_cast<int32_t>(integer_of(*value, field, limits.min(), limits.max())) : 0;
}

std::vector<std::string> optional_strings(const JsonValue& object, const char* field) {
  std::vector<std::string> list;
  auto* value = object.find(field);
  if (!value) return list;
  if (value->kind() != JsonValue::array || value->items().size() > kMaxList)
    throw Fault(fmt::format("\"{}\" must be an array of at most {} strings", field, kMaxList));
  for (auto& item : value->items()) list.push_back(string_of(item, field));
  return list;
}

// Checks a name of a device, which is used before a colon ("cuda:0") and in environment variables.
std::string identifier(const std::string& text, const std::string& field) {
  auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  bool good = !text.empty() && text.size() <= 32 && text[0] >= 'a' && text[0] <= 'z' &&
              std::all_of(text.begin(), text.end(), plain);
  if (!good)
    throw Fault(fmt::format(
        "\"{}\" is \"{}\"; it must be 1 to 32 of a-z, 0-9 and _, a letter first", field, text));
  return text;
}

// A newer Tenon may read more keys than this one, so an unknown key is no error. But it may also be
// one that the author has mistyped.
void note_unread(const JsonValue::Fields& fields, std::span<const std::string_view> known,
                 Manifest& m) {
  constexpr size_t most = 8;
  std::set<std::string_view> seen;
  for (auto& [key, value] : fields) {
    if (!seen.insert(key).second && m.remarks.size() < most)
      m.remarks.push_back(
          fmt::format("the key \"{}\" is there more than once; the last one counts", excerpt(key)));
    if (is_one_of(known, key)) continue;
    if (m.remarks.size() == most) return;
    std::string remark = fmt::format("the key \"{}\" is not read", excerpt(key));
    for (auto& other : known)
      if (is_like(key, other)) {
        remark += fmt::format("; did you mean \"{}\"?", other);
        break;
      }
    m.remarks.push_back(std::move(remark));
  }
}

void note_unread(const JsonValue& object, Manifest& m) {
  note_unread(object.fields(), kKeys, m);
  if (m.kind == TN_PLUGIN_DEVICE)
    for (const char* key : {"overlays", "priority"})
      if (object.find(key))
        m.remarks.push_back(fmt::format("the key \"{}\" is read of an overlay only", key));
  note_unread(require(object, "abi").fields(), kKeysOfAbi, m);
}

void parse_abi(const JsonValue& abi, Manifest& m) {
  if (abi.kind() != JsonValue::object)
    throw Fault("\"abi\" must be an object with \"major\" and \"minor\"");
  m.abi_major = static_cast<uint32_t>(integer_of(require(abi, "major"), "abi.major", 0, 0xffff));
  m.abi_minor = static_cast<uint32_t>(integer_of(require(abi, "minor"), "abi.minor", 0, 0xffff));
}

tn_plugin_kind kind_of(const JsonValue& object) {
  const auto kind = string_of(require(object, "kind"), "kind");
  if (kind != "device" && kind != "overlay")
    throw Fault(fmt::format("\"kind\" is \"{}\"; it must be \"device\" or \"overlay\"", kind));
  return kind == "device" ? TN_PLUGIN_DEVICE : TN_PLUGIN_OVERLAY;
}

void parse_fields(const JsonValue& object, Manifest& m) {
  std::string faults;
  const auto read = [&](auto&& field) {
    try {
      field();
    } catch (const Fault& fault) {
      faults += fmt::format("{}{}", faults.empty() ? "" : "; ", fault.what());
    }
  };
  const auto named = [&](const char* field) {
    return identifier(string_of(require(object, field), field), field);
  };
  read([&] { m.name = named("name"); });
  read([&] { m.variant = optional_string(object, "variant"); });
  read([&] { m.version = string_of(require(object, "version"), "version"); });
  read([&] { m.kind = kind_of(object); });
  read([&] { m.preference = optional_int(object, "preference"); });
  if (m.kind == TN_PLUGIN_OVERLAY) {
    read([&] { m.overlays = named("overlays"); });
    read([&] { m.priority = optional_int(object, "priority"); });
  }
  read([&] { parse_abi(require(object, "abi"), m); });
  read([&] { m.library = string_of(require(object, "library"), "library"); });
  read([&] { m.cpu_features = optional_strings(object, "cpu_features"); });
  read([&] { m.vendor_libraries = optional_strings(object, "vendor_libraries"); });
  if (!faults.empty()) refuse(faults);
  note_unread(object, m);
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (auto& w : words) text += (text.empty() ? "" : ", ") + w;
  return text;
}

void check_cpu(const Manifest& m) {
  if (m.cpu_features.empty()) return;
  auto& have = cpu_features();
  if (have.empty())
    throw Unsuitable(
        fmt::format("needs CPU features ({}), and /proc/cpuinfo lists none to compare with",
                    join(m.cpu_features)));
  std::vector<std::string> missing;
  for (auto& f : m.cpu_features)
    if (!have.contains(f)) missing.push_back(f + remark_on_feature(f));
  if (!missing.empty())
    throw Unsuitable(
        fmt::format("needs CPU features that this machine does not have: {}", join(missing)));
}

}  // namespace

void find_library(Manifest& m) {
  if (m.library.empty() || m.library.find('/') != std::string::npos || m.library == "." ||
      m.library == "..")
    refuse(
        fmt::format("\"library\" is \"{}\"; it must be the name of a file beside the manifest, not "
                    "a path that can leave its folder",
                    m.library));
  m.library = trusted_library(m.folder, m.library, "library");
}

void read_manifest(Manifest& m) {
  m.folder = parent_folder(m.path);
  const JsonValue object = parsed(read_trusted_file(m.path, kMaxManifestBytes, "manifest"));
  if (object.kind() != JsonValue::object)
    refuse(fmt::format("not a JSON object but {}", object.type_name()));
  parse_fields(object, m);
}

void require_loadable_here(const Manifest& m) {
  if (m.abi_major != TN_ABI_MAJOR)
    throw Refused(
        fmt::format("built for plugin ABI {}.{}, this Tenon has {}.{}; build the plugin again "
                    "against its headers",
                    m.abi_major, m.abi_minor, TN_ABI_MAJOR, TN_ABI_MINOR));
  check_cpu(m);
}

void check_loadable(Manifest& m) {
  require_loadable_here(m);
  require_trusted_folder(m.folder);
  find_library(m);
}

}  // namespace tenon::plugins
