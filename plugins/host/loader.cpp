#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>

#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/plugins/host/entry_rules.h>
#include <tenon/plugins/host/files.h>
#include <tenon/plugins/host/host_version.h>
#include <tenon/plugins/host/library_table.h>
#include <tenon/plugins/host/loader.h>
#include <tenon/plugins/host/services.h>

namespace tenon::plugins {

namespace {

// No future minor version will come close to this size: a larger number is not a longer struct but
// garbage.
constexpr size_t kAbsurdSize = 4096;
// The bytes behind the table that a plugin fills, which reveal a plugin that writes more than it
// may.
constexpr size_t kFenceSize = 1024;
constexpr unsigned char kFenceByte = 0xa5;

// Returns why the dynamic linker failed to open `library`. A shortage of memory or of file
// descriptors is temporary and no reason to refuse a plugin for ever, so it is a std::bad_alloc or
// a PluginError.
std::string dl_error(const std::string& library) {
  const char* text = dlerror();
  if (!text) return "the dynamic linker gives no reason";
  const std::string_view reason = text;
  for (int shortage : {EMFILE, ENFILE})
    if (reason.ends_with(std::strerror(shortage))) require_descriptors(shortage, library);
  const bool short_of_memory = reason == "out of memory" ||
                               reason.ends_with(std::strerror(ENOMEM)) ||
                               reason.find(": cannot create ") != reason.npos ||
                               reason.find(": cannot allocate ") != reason.npos;
  if (short_of_memory && reason.find("static TLS") == reason.npos) throw std::bad_alloc();
  return text;
}

// A library that threw while it was loaded stays half loaded: it cannot be tried again.
struct Broken : Refused {
  Broken(const std::string& library, const std::string& what)
      : Refused(fmt::format("library {} let an exception out while it was loaded: {}; it cannot be "
                            "used in this process any more",
                            library, what)) {}
};

// As dlopen; an exception that a constructor of the library lets out is a Broken.
void* open_or_null(const std::string& library, const std::string& plugin, int mode) {
  try {
    InsidePlugin inside(plugin.c_str(), library.c_str(), "a constructor of the library");
    // Its header promises that it does not throw, and the compiler would leave out the handlers,
    // and in what calls it the unlocking of mutexes.
    static void* (*volatile const open)(const char*, int) = dlopen;
    return open(library.c_str(), mode);
  } catch (const std::exception& e) {
    throw Broken(library, e.what());
  } catch (...) {
    throw Broken(library, "one of unknown type");
  }
}

// Opens the vendor libraries, which are not closed again because the plugin needs them.
void require_vendor_libraries(const Manifest& m) {
  for (auto& name : m.vendor_libraries) {
    if (name.empty() || name.find('/') != std::string::npos)
      throw Refused(
          fmt::format("manifest: \"vendor_libraries\" holds \"{}\"; it must be a library's plain "
                      "name, such as \"libcudart.so.12\"",
                      name));
    if (open_or_null(name, m.name, RTLD_LAZY | RTLD_LOCAL)) continue;
    auto refuse = [&](const std::string& reason) {
      throw Refused(
          fmt::format("needs the vendor library {}, which cannot be loaded: {}", name, reason));
    };
    const auto reason = dl_error(name);
    struct stat s {};
    if (lstat((m.folder + "/" + name).c_str(), &s) != 0) refuse(reason);
    // A library next to the plugin is part of it and has to be trusted as its own library is.
    const auto path = trusted_library(m.folder, name, "vendor library");
    if (!open_or_null(path, m.name, RTLD_LAZY | RTLD_LOCAL)) refuse(dl_error(path));
  }
}

void* open_library(const std::string& path, const std::string& name) {
  void* handle = open_or_null(path, name, RTLD_NOW | RTLD_LOCAL);
  if (handle) return handle;
  const std::string reason = dl_error(path);
  // The linker says this too, with or without a reason of the system, if it has no memory for the
  // name of a file that exists.
  if (reason.starts_with(path + ": cannot open shared object file") &&
      access(path.c_str(), R_OK) == 0)
    throw std::bad_alloc();
  throw Refused(fmt::format("library cannot be loaded: {}", reason));
}

[[noreturn]] void refuse_entry(const std::string& fault) { throw Refused(fault); }

// Returns the query symbol of the library, which has as many bytes as its struct_size says.
const tn_plugin_info* find_entry(void* handle) {
  dlerror();
  auto* entry = static_cast<const tn_plugin_info*>(dlsym(handle, TN_PLUGIN_ENTRY_NAME));
  if (!entry)
    throw Refused("library has no symbol " TN_PLUGIN_ENTRY_NAME
                  ": it is not a Tenon plugin, or does not export it (TN_EXPORT)");

  Dl_info where{};
  ElfW(Sym)* symbol = nullptr;
  link_map* map = nullptr;
  bool known = dladdr1(entry, &where, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) != 0 &&
               dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0;
  // dlsym also searches the libraries that this one links.
  if (known && std::strcmp(where.dli_fname, map->l_name) != 0)
    throw Refused(fmt::format("library has no symbol {} of its own; the one found belongs to {}",
                              TN_PLUGIN_ENTRY_NAME, where.dli_fname));
  size_t room = known && symbol && symbol->st_size > 0 ? symbol->st_size : kAbsurdSize;
  look_at_symbol(room, refuse_entry);
  look_at_head(*entry, std::min(room, kAbsurdSize), refuse_entry);
  return entry;
}

void check_entry(const tn_plugin_info& entry, const Manifest& m) {
  const auto read = [](const char* text) {
    return PointedText{true, text ? std::optional<std::string>(text) : std::nullopt};
  };
  look_at_contents(entry, &m, entry.init != nullptr, read, refuse_entry);
}

void check_functions(const tn_backend_api& api, tn_plugin_kind kind) {
  struct Function {
    const char* name;
    bool missing;
    bool overlay_needs_it;
  };
  const Function required[] = {
      {"device_count", !api.device_count, false}, {"device_open", !api.device_open, true},
      {"device_close", !api.device_close, true},  {"device_info", !api.device_info, false},
      {"memory_kinds", !api.memory_kinds, false}, {"memory_alloc", !api.memory_alloc, false},
      {"memory_free", !api.memory_free, false},   {"copy", !api.copy, false},
      {"supports", !api.supports, true},          {"plan_create", !api.plan_create, true}};
  std::string missing;
  for (auto& f : required)
    if (f.missing && (kind == TN_PLUGIN_DEVICE || f.overlay_needs_it))
      missing += (missing.empty() ? "" : ", ") + std::string(f.name);
  if (!missing.empty())
    throw Refused(fmt::format(
        "init left required functions NULL: {}; set them in the table that it fills", missing));
}

// Calls init. A shortage of memory is no reason to refuse a plugin: init may be called again.
tn_backend_api initialise(const tn_plugin_info& entry, const tn_host* host, tn_plugin_kind kind) {
  const size_t given = host_version().table_bytes;
  alignas(tn_backend_api) unsigned char
      room[sizeof(tn_backend_api) + HostVersion::kMaxFuture + kFenceSize]{};
  std::memset(room + given, kFenceByte, sizeof room - given);
  auto* table = reinterpret_cast<tn_backend_api*>(room);
  table->struct_size = given;
  tn_error* error = nullptr;
  try {
    InsidePlugin inside(entry.name, host->plugin_path, "init");
    error = entry.init(host, table);
  } catch (const std::exception& e) {
    throw Refused(fmt::format("init threw an exception across the boundary: {}; {}", e.what(),
                              "catch it in the plugin and return a tn_error"));
  } catch (...) {
    throw Refused(
        "init threw an exception of unknown type across the boundary; catch it in the plugin and "
        "return a tn_error");
  }
  if (error && error->code == TN_CODE_OUT_OF_MEMORY)
    throw OutOfMemoryError(
        fmt::format("plugin {} ({}): init ran out of memory: {}; the next use of the backend calls "
                    "it again",
                    printable(entry.name), host->plugin_path, take_message(error)));
  if (error) throw Refused(fmt::format("init failed: {}", take_message(error)));

  bool overrun =
      std::any_of(room + given, std::end(room), [](unsigned char b) { return b != kFenceByte; });
  size_t filled = table->struct_size;
  if (overrun || filled > given)
    throw Refused(fmt::format(
        "init filled more of the function table than the {} bytes it was given (it says {} bytes); "
        "copy no more than api->struct_size, and set that to what was copied",
        given, filled));
  if (filled < TN_BACKEND_API_SIZE_1_0)
    throw Refused(
        fmt::format("init filled {} bytes of the function table, less than the {} bytes of ABI "
                    "1.0; set api->struct_size to what was copied",
                    filled, size_t{TN_BACKEND_API_SIZE_1_0}));
  if (filled % sizeof(void*))
    throw Refused(
        fmt::format("init filled {} bytes of the function table, which end inside of a function "
                    "pointer; set api->struct_size to what was copied",
                    filled));
  tn_backend_api api{};
  std::memcpy(&api, room, std::min(filled, sizeof api));
  check_functions(api, kind);
  return api;
}

// The result of loading a library. A library can be initialised once in a process, so the result,
// good or bad, is used by all registries.
struct Outcome {
  const tn_plugin_info* entry = nullptr;
  std::unique_ptr<Backend> backend;
  std::string reason;
};

Outcome first_load(const Manifest& m) {
  Outcome outcome;
  void* library = nullptr;
  try {
    require_vendor_libraries(m);
    library = open_library(m.library, m.name);
  } catch (const Broken& e) {
    outcome.reason = e.what();
    return outcome;
  }
  enter_library(library, {m.name, m.library});
  auto* entry = find_entry(library);
  check_entry(*entry, m);
  outcome.entry = entry;
  // All that may fail is done before the plugin runs, because a failure then would lose it.
  BackendInfo info{m.name, m.version, m.library, m.kind, m.abi_minor, m.overlays, m.priority};
  auto* host = make_host_services(m.name, m.library);
  auto backend = std::make_unique<Backend>(std::move(info));
  try {
    backend->start(initialise(*entry, host, m.kind));
    outcome.backend = std::move(backend);
  } catch (const Refused& e) {
    outcome.reason = e.what();
  }
  return outcome;
}

}  // namespace

Backend& load_plugin(const Manifest& m) {
  struct Outcomes {
    ForkMutex mutex{ForkOrder::backends};
    std::map<std::string, Outcome> of;
  };
  static constinit NeverDestroyed<Outcomes> kept;  // plugins outlive every exit handler
  Outcomes& outcomes = kept.get();
  std::lock_guard lock(outcomes.mutex);
  auto& outcome = outcomes.of[m.library];
  if (outcome.entry)
    check_entry(*outcome.entry, m);
  else if (outcome.reason.empty())
    outcome = first_load(m);
  if (!outcome.backend) throw Refused(outcome.reason);
  if (outcome.backend->closed())
    throw Refused(
        "library was loaded and closed before in this process, and cannot be started twice");
  return *outcome.backend;
}

}  // namespace tenon::plugins
