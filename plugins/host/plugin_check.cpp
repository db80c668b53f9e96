#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/plugins/host/elf_file.h>
#include <tenon/plugins/host/entry_rules.h>
#include <tenon/plugins/host/files.h>
#include <tenon/plugins/host/linker_check.h>
#include <tenon/plugins/host/manifest.h>
#include <tenon/plugins/host/plugin_check.h>

namespace tenon::plugins {

namespace {

namespace fs = std::filesystem;

// For a library, the manifest beside it that names it, or an empty text. For a manifest, itself.
std::string manifest_of(const std::string& canonical) {
  constexpr const char* ending = ".tenon.json";
  if (canonical.ends_with(ending)) return canonical;
  std::error_code error;
  for (auto& entry : fs::directory_iterator(parent_folder(canonical), error)) {
    Manifest m;
    m.path = entry.path().string();
    if (!m.path.ends_with(ending)) continue;
    try {
      read_manifest(m);
    } catch (const Refused&) {  // what it says of its library may have been read
    }
    if (m.library == fs::path(canonical).filename().string()) return m.path;
  }
  return "";
}

class Check {
 public:
  explicit Check(std::string path) : path_(std::move(path)) {}
  std::vector<Finding> run();

 private:
  void good(std::string what) { findings_.push_back({Finding::good, std::move(what)}); }
  void remark(std::string what) { findings_.push_back({Finding::remark, std::move(what)}); }
  void fault(std::string what) { findings_.push_back({Finding::fault, std::move(what)}); }
  // Notes what the step refuses. Returns whether it refuses nothing.
  template <class Step>
  bool passes(Step&& step) {
    try {
      step();
      return true;
    } catch (const Refused& e) {
      fault(e.what());
      return false;
    }
  }

  void find_manifest();
  void check_manifest();
  void check_places();
  void check_symbols(const ElfFile& library);
  void check_entry(const ElfFile& library, const ElfFile::Symbol& symbol);
  std::vector<std::string> vendor_libraries() const;
  void check_libraries(const ElfFile& library);

  const std::string path_;
  std::string library_;  // a canonical path
  std::optional<Manifest> manifest_;
  bool manifest_read_ = false;
  const OnFault on_fault_ = [this](const std::string& what) { fault(what); };
  std::vector<Finding> findings_;
};

void Check::find_manifest() {
  const std::string canonical = canonical_path(fs::absolute(path_).string()),
                    manifest = manifest_of(canonical);
  if (manifest != canonical) library_ = canonical;
  if (!manifest.empty())
    manifest_.emplace().path = manifest;
  else
    fault(
        fmt::format("no manifest (*.tenon.json) beside the library names it, so it is never found: "
                    "{}",
                    canonical));
}

void Check::check_manifest() {
  auto& m = *manifest_;
  manifest_read_ = passes([&] { read_manifest(m); });
  for (auto& text : m.remarks) remark(fmt::format("manifest: {}", text));
  if (!manifest_read_) return;
  good(fmt::format("manifest {}: {} \"{}\" {}, ABI {}.{}", m.path,
                   m.kind == TN_PLUGIN_DEVICE ? "device" : "overlay", m.name, m.version,
                   m.abi_major, m.abi_minor));
  passes([&] { require_loadable_here(m); });
}

// Who may write the manifest, the library and the folders above.
void Check::check_places() {
  const std::string folder = parent_folder(manifest_ ? manifest_->path : library_);
  if (passes([&] { require_trusted_folder(folder); }))
    good(
        "its folder and those above it belong to root or to this user, and none is world-writable "
        "without a sticky bit");
  if (!manifest_ || manifest_->library.empty()) return;
  passes([&] {
    Manifest m = *manifest_;
    find_library(m);
    if (!library_.empty() && library_ != m.library)
      remark(fmt::format("the manifest names another library: {}", m.library));
    library_ = m.library;
  });
}

void Check::check_symbols(const ElfFile& library) {
  const auto* entry = library.find(TN_PLUGIN_ENTRY_NAME);
  if (!entry)
    return fault("the library has no symbol " TN_PLUGIN_ENTRY_NAME
                 ": define it as extern \"C\" and with TN_EXPORT");
  if (!entry->is_data)
    return fault(TN_PLUGIN_ENTRY_NAME " is no data; it must be a constant of tn_plugin_info");
  if (!look_at_symbol(entry->bytes, on_fault_)) return;
  check_entry(library, *entry);
  // Weak ones come out of templates, and are the same everywhere.
  std::vector<std::string> others;
  for (auto& s : library.exported())
    if (!s.is_weak && s.name != TN_PLUGIN_ENTRY_NAME) others.push_back(s.name);
  if (!others.empty())
    remark(
        fmt::format("the library exports {} more symbol{}, such as {}; hide them "
                    "(-fvisibility=hidden, or a version script), or they may clash with those "
                    "of other libraries",
                    others.size(), others.size() == 1 ? "" : "s", excerpt(others[0])));
}

void Check::check_entry(const ElfFile& library, const ElfFile::Symbol& symbol) {
  const uint64_t at = symbol.address;
  tn_plugin_info entry{};
  if (!library.read(at, &entry, TN_PLUGIN_INFO_SIZE_1_0))
    return fault(TN_PLUGIN_ENTRY_NAME " lies outside of the file");
  const size_t before = findings_.size();
  if (!look_at_head(entry, symbol.bytes, on_fault_)) return;
  const auto read = [&](const char* const& field) {
    const auto offset =
        reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&entry);
    const auto pointer = library.pointer_at(at + static_cast<uint64_t>(offset));
    return PointedText{pointer.has_value(),
                       pointer && *pointer ? library.text_at(*pointer) : std::nullopt};
  };
  look_at_contents(entry, manifest_read_ ? &*manifest_ : nullptr,
                   library.pointer_at(at + offsetof(tn_plugin_info, init)) != 0, read, on_fault_);
  if (findings_.size() == before)
    good(fmt::format("{} is there{}", TN_PLUGIN_ENTRY_NAME,
                     manifest_read_ ? " and agrees with the manifest" : ""));
}

// A vendor library may lie beside the plugin, where the linker does not look.
std::vector<std::string> Check::vendor_libraries() const {
  std::vector<std::string> libraries;
  if (!manifest_read_) return libraries;
  for (auto& name : manifest_->vendor_libraries) {
    std::error_code error;
    const std::string beside = manifest_->folder + "/" + name;
    libraries.push_back(fs::exists(beside, error) ? beside : name);
  }
  return libraries;
}

void Check::check_libraries(const ElfFile& library) {
  for (auto& name : library.auditors())
    fault(
        fmt::format("asks the dynamic linker to run {} while it is loaded (DT_AUDIT); no plugin "
                    "needs that",
                    excerpt(name)));
  if (!library.auditors().empty()) return;
  const LinkerReport report = ask_linker(library_, vendor_libraries());
  if (!report.asked) return remark(fmt::format("what it links was not looked at: {}", report.why));
  for (auto& name : report.missing)
    fault(
        fmt::format("needs the library {}, which is not found; install it, or put its folder "
                    "into LD_LIBRARY_PATH or the library's RUNPATH",
                    excerpt(name)));
  for (auto& text : report.versions)
    fault(fmt::format("{}; it is built for newer libraries than this machine has", excerpt(text)));
  // Where a version is missing, so are its symbols.
  if (report.versions.empty())
    for (auto& name : report.undefined)
      fault(fmt::format("lacks the symbol {}, which no library that it links defines",
                        excerpt(name)));
  if (report.missing.empty() && report.versions.empty() && report.undefined.empty())
    good(library.needed().size() == 1
             ? "the one library that it links and all its symbols are found"
             : fmt::format("the {} libraries that it links and all their symbols are found",
                           library.needed().size()));
}

std::vector<Finding> Check::run() {
  try {
    find_manifest();
  } catch (const Refused& e) {
    fault(fmt::format("{}: {}", path_, e.what()));
    return std::move(findings_);
  }
  if (manifest_) check_manifest();
  check_places();
  if (library_.empty()) return std::move(findings_);
  passes([&] {
    const ElfFile library(library_);
    check_symbols(library);
    check_libraries(library);
  });
  return std::move(findings_);
}

}  // namespace

std::vector<Finding> check_plugin(const std::string& path) { return Check(path).run(); }

PluginFile read_plugin_file(const std::string& path) try {
  Manifest m;
  m.path = manifest_of(canonical_path(fs::absolute(path).string()));
  if (m.path.empty()) throw Refused("no manifest (*.tenon.json) beside the library names it");
  read_manifest(m);
  const bool overlay = m.kind == TN_PLUGIN_OVERLAY;
  return {m.path, overlay ? m.overlays : m.name, overlay ? m.name : ""};
} catch (const Refused& e) {
  throw PluginError(fmt::format("{}: {}", path, e.what()));
}

}  // namespace tenon::plugins
