// What tn_plugin_entry has to be. The loader reads it in memory and refuses a plugin for the first
// fault; `tenon plugin check` reads it in the file and names all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/plugins/host/manifest.h>

namespace tenon::plugins {

// Gets what is wrong, and may throw.
using OnFault = std::function<void(const std::string&)>;

namespace entry_rules {

inline constexpr const char* kSetSize = "set struct_size to sizeof(tn_plugin_info)";

inline std::string kind_text(tn_plugin_kind kind) {
  return kind == TN_PLUGIN_DEVICE    ? "device"
         : kind == TN_PLUGIN_OVERLAY ? "overlay"
                                     : std::to_string(kind);
}

inline void look_at_same(const char* field, const std::string& manifest, const std::string& library,
                         const OnFault& fault) {
  if (manifest != library)
    fault(
        fmt::format("manifest and library disagree about {}: the manifest says {}, the library {}; "
                    "they must be of one build",
                    field, manifest, library));
}

inline std::string version_text(uint32_t major, uint32_t minor) {
  return fmt::format("{}.{}", major, minor);
}

}  // namespace entry_rules

// The symbol has `bytes` bytes. Returns whether what it begins with can be read.
inline bool look_at_symbol(uint64_t bytes, const OnFault& fault) {
  if (bytes >= TN_PLUGIN_INFO_SIZE_1_0) return true;
  fault(fmt::format("{} has {} bytes, less than the {} of ABI 1.0; define it as a tn_plugin_info",
                    TN_PLUGIN_ENTRY_NAME, bytes, size_t{TN_PLUGIN_INFO_SIZE_1_0}));
  return false;
}

// The magic number and the size that it gives itself. Returns whether it is a tn_plugin_info.
inline bool look_at_head(const tn_plugin_info& entry, uint64_t bytes, const OnFault& fault) {
  if (entry.magic != TN_PLUGIN_MAGIC) {
    fault(TN_PLUGIN_ENTRY_NAME
          " does not begin as a tn_plugin_info: wrong magic number; set magic to TN_PLUGIN_MAGIC");
    return false;
  }
  if (entry.struct_size < TN_PLUGIN_INFO_SIZE_1_0)
    fault(fmt::format("{} says it has {} bytes, less than the {} of ABI 1.0; {}",
                      TN_PLUGIN_ENTRY_NAME, entry.struct_size, size_t{TN_PLUGIN_INFO_SIZE_1_0},
                      entry_rules::kSetSize));
  if (entry.struct_size > bytes)
    fault(fmt::format("{} says it has {} bytes, more than the {} that are there; {}",
                      TN_PLUGIN_ENTRY_NAME, entry.struct_size, bytes, entry_rules::kSetSize));
  // Newer minor versions have longer structs. In a version that this host knows, a longer struct is
  // a mistake.
  else if (entry.abi_major == TN_ABI_MAJOR && entry.abi_minor <= TN_ABI_MINOR &&
           entry.struct_size > sizeof(tn_plugin_info))
    fault(fmt::format("{} is over-long: {} bytes, where ABI {} has {}; {}", TN_PLUGIN_ENTRY_NAME,
                      entry.struct_size,
                      entry_rules::version_text(entry.abi_major, entry.abi_minor),
                      sizeof(tn_plugin_info), entry_rules::kSetSize));
  return true;
}

// The text to which a pointer of the entry leads. In a file, the linker may not have filled it in.
struct PointedText {
  bool is_known;
  std::optional<std::string> text;  // nothing if the pointer is null
};
// Reads what `field`, which is one of the entry that is looked at, points to.
using ReadText = std::function<PointedText(const char* const& field)>;

// Checks all fields of the entry. They must agree with the manifest, unless that is NULL.
inline void look_at_contents(const tn_plugin_info& entry, const Manifest* m, bool has_init,
                             const ReadText& read, const OnFault& fault) {
  using namespace entry_rules;
  if (m) {
    look_at_same("the ABI", version_text(m->abi_major, m->abi_minor),
                 version_text(entry.abi_major, entry.abi_minor), fault);
    look_at_same("the kind", kind_text(m->kind), kind_text(entry.kind), fault);
    if (m->kind == TN_PLUGIN_OVERLAY)
      look_at_same("the priority", std::to_string(m->priority), std::to_string(entry.priority),
                   fault);
  }
  const auto look_at_text = [&](const char* what, const char* name, const char* const& field,
                                std::string Manifest::*said) {
    const auto [is_known, text] = read(field);
    if (!is_known) return;
    if (!text)
      return fault(fmt::format("{} does not say {}; set tn_plugin_info.{}", TN_PLUGIN_ENTRY_NAME,
                               what, name));
    if (m && m->*said != *text)
      look_at_same(what, fmt::format("\"{}\"", m->*said), fmt::format("\"{}\"", excerpt(*text)),
                   fault);
  };
  look_at_text("the name", "name", entry.name, &Manifest::name);
  look_at_text("the version", "version", entry.version, &Manifest::version);
  if (entry.kind == TN_PLUGIN_OVERLAY)
    look_at_text("what it overlays", "overlays", entry.overlays, &Manifest::overlays);
  if (!has_init) fault(TN_PLUGIN_ENTRY_NAME " has no init function; set tn_plugin_info.init");
}

}  // namespace tenon::plugins
