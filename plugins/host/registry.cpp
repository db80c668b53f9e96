#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>

#include <fmt/core.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/plugins/host/discovery.h>
#include <tenon/plugins/host/loader.h>
#include <tenon/plugins/host/registry.h>

namespace tenon::plugins {

namespace {

// The ranks of places. Explicit paths that are added later still come before the environment.
constexpr size_t kEnvironmentRank = size_t{1} << 30;
constexpr size_t kInstallRank = size_t{1} << 31;

std::string kind_name(const Manifest& m) {
  return m.name.empty() ? "" : m.kind == TN_PLUGIN_DEVICE ? "device" : "overlay";
}

}  // namespace

struct Registry::Impl {
  SearchOptions options;
  ForkMutex mutex{ForkOrder::plugins};
  bool scanned = false;
  bool closed = false;
  std::vector<Candidate> candidates;  // sorted by goes_before
  std::vector<Backend*> loaded;

  void scan_once();
  void disable();
  void warn_of_unknown(const char* variable, const char* kind,
                       bool (*holds)(const Candidate&)) const;
  void rank();
  bool has_backend(const std::string& name) const;
  Backend* load_best(tn_plugin_kind kind, const std::string& name);
  LoadReport report() const;
  std::string explain(const std::string& name) const;
  std::string suggestion(const std::string& name) const;
  void each_but(std::span<const Backend* const> used, void (Backend::*step)() noexcept) noexcept;
};

// Calls `step` for overlays first, and for plugins of one kind in the reverse order of loading.
void Registry::Impl::each_but(std::span<const Backend* const> used,
                              void (Backend::*step)() noexcept) noexcept {
  for (auto kind : {TN_PLUGIN_OVERLAY, TN_PLUGIN_DEVICE})
    for (auto it = loaded.rbegin(); it != loaded.rend(); ++it)
      if ((*it)->info().kind == kind && std::find(used.begin(), used.end(), *it) == used.end())
        ((*it)->*step)();
}

void Registry::Impl::scan_once() {
  if (scanned) return;
  std::vector<Candidate> found;  // kept only if the search ends; otherwise it is repeated
  for (size_t i = 0; i < options.paths.size(); ++i) scan(options.paths[i], i, found);
  if (options.environment) {
    auto places = environment_places();
    for (size_t i = 0; i < places.size(); ++i)
      if (auto refusal = scan(places[i], kEnvironmentRank + i, found); !refusal.empty())
        log_message(TN_LOG_WARNING, "tenon",
                    fmt::format("TENON_PLUGIN_PATH: \"{}\" is not searched: {}",
                                printable(places[i]), refusal));
  }
  // The folder may be missing: all plugins may come from other places.
  std::error_code error;
  if (options.install_folder && std::filesystem::exists(install_place(), error))
    scan(install_place(), kInstallRank, found);
  candidates = std::move(found);
  disable();
  rank();
  scanned = true;
  if (!options.environment) return;
  warn_of_unknown(kDisableVariable, "plugin", [](const Candidate&) { return true; });
  warn_of_unknown(kPreferVariable, "overlay",
                  [](const Candidate& c) { return c.manifest.kind == TN_PLUGIN_OVERLAY; });
  const auto disabled = names_in(kDisableVariable);
  for (auto& name : names_in(kPreferVariable))
    if (std::find(disabled.begin(), disabled.end(), name) != disabled.end())
      log_message(TN_LOG_WARNING, "tenon",
                  fmt::format("{} names \"{}\", and {} switches it off; take the name out of one "
                              "of the two",
                              kPreferVariable, printable(name), kDisableVariable));
}

// Warns of the names in a variable that no candidate has for which `holds` is true.
void Registry::Impl::warn_of_unknown(const char* variable, const char* kind,
                                     bool (*holds)(const Candidate&)) const {
  for (auto& name : names_in(variable))
    if (std::none_of(candidates.begin(), candidates.end(),
                     [&](const Candidate& c) { return c.manifest.name == name && holds(c); }))
      log_message(TN_LOG_WARNING, "tenon",
                  fmt::format("{} names \"{}\", and no {} of that name was found", variable,
                              printable(name), kind));
}

void Registry::Impl::disable() {
  if (!options.environment) return;
  const auto names = names_in(kDisableVariable);
  for (auto& c : candidates)
    if (c.status != Status::loaded &&
        std::find(names.begin(), names.end(), c.manifest.name) != names.end()) {
      c.status = Status::disabled;
      c.reason = "switched off by TENON_DISABLE";
    }
}

// Whether a device plugin of that name can be used, as far as is known without loading it.
bool Registry::Impl::has_backend(const std::string& name) const {
  return std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& c) {
    return c.manifest.kind == TN_PLUGIN_DEVICE && c.manifest.name == name &&
           (c.status == Status::available || c.status == Status::loaded);
  });
}

// Decides which candidate of each name is used. One that was loaded stays in use.
void Registry::Impl::rank() {
  std::sort(candidates.begin(), candidates.end(), goes_before);
  auto may_win = [](const Candidate& c) {
    return c.status == Status::available || c.status == Status::loaded ||
           c.status == Status::superseded;
  };
  auto same = [](const Candidate& a, const Candidate& b) {
    return a.manifest.kind == b.manifest.kind && a.manifest.name == b.manifest.name;
  };
  for (auto& c : candidates) {
    if (!may_win(c) || c.status == Status::loaded) continue;
    const Candidate* winner = nullptr;
    for (auto& other : candidates) {
      if (!may_win(other) || !same(c, other)) continue;
      if (!winner || other.status == Status::loaded) winner = &other;
    }
    bool wins = winner == &c;
    c.status = wins ? Status::available : Status::superseded;
    c.reason = wins ? "" : fmt::format("a better one goes first: {}", winner->manifest.path);
  }
}

// Returns NULL if no candidate is left. Refusals are logged, unless the caller throws them.
Backend* Registry::Impl::load_best(tn_plugin_kind kind, const std::string& name) {
  std::vector<std::string> refused;
  auto warn = [&] {
    for (auto& text : refused) log_message(TN_LOG_WARNING, "tenon", text);
  };
  for (;;) {
    auto it = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
      return c.manifest.kind == kind && c.manifest.name == name &&
             (c.status == Status::available || c.status == Status::loaded);
    });
    if (it == candidates.end()) {
      if (kind == TN_PLUGIN_OVERLAY) warn();
      return nullptr;
    }
    if (it->status == Status::loaded) return it->backend;
    loaded.reserve(loaded.size() + 1);
    try {
      auto* backend = it->backend = &load_plugin(it->manifest);
      it->status = Status::loaded;
      if (std::find(loaded.begin(), loaded.end(), backend) == loaded.end())
        loaded.push_back(backend);
      warn();
      for (auto& remark : it->manifest.remarks)
        log_message(TN_LOG_WARNING, "tenon",
                    fmt::format("manifest {}: {}", it->manifest.path, printable(remark)));
      log_message(TN_LOG_INFO, "tenon",
                  fmt::format("loaded plugin {} {} from {}", name, it->manifest.variant,
                              it->manifest.library));
      rank();
      return backend;
    } catch (const Refused& e) {
      it->status = Status::refused;
      it->reason = e.what();
      refused.push_back(fmt::format("plugin {} is refused: {}", it->manifest.path, it->reason));
      rank();
    }
  }
}

LoadReport Registry::Impl::report() const {
  LoadReport report;
  report.searched = options.paths;
  if (options.environment)
    for (auto& place : environment_places())
      report.searched.push_back(fmt::format("{}  (TENON_PLUGIN_PATH)", place));
  if (options.install_folder)
    report.searched.push_back(fmt::format("{}  (beside libtenon)", install_place()));
  for (auto& c : candidates) {
    auto& m = c.manifest;
    report.entries.push_back({m.path, m.name, kind_name(m), m.variant, m.version, m.overlays,
                              c.status, c.reason, m.remarks});
    if (c.status == Status::available && m.kind == TN_PLUGIN_OVERLAY && !has_backend(m.overlays)) {
      report.entries.back().status = Status::unused;
      report.entries.back().reason =
          fmt::format("no plugin \"{}\", over which it lies, can be used", m.overlays);
    }
  }
  return report;
}

// Returns a hint for a name such as "cpu0", if there is a backend "cpu": "; did you mean "cpu:0"?".
std::string Registry::Impl::suggestion(const std::string& name) const {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits == 0 || digits == name.size()) return "";
  const std::string type = name.substr(0, digits), index = name.substr(digits);
  for (auto& c : candidates)
    if (c.manifest.kind == TN_PLUGIN_DEVICE && c.manifest.name == type)
      return fmt::format("; did you mean \"{}:{}\"?", type, index);
  return "";
}

std::string Registry::Impl::explain(const std::string& name) const {
  std::string text = fmt::format("backend \"{}\" cannot be used: ", name);
  bool refused = false, overlay = false, disabled = false;
  for (auto& c : candidates) {
    if (c.manifest.name != name) continue;
    if (c.manifest.kind == TN_PLUGIN_OVERLAY) overlay = true;
    if (c.status == Status::refused || c.status == Status::unsuitable) refused = true;
    if (c.status == Status::disabled) disabled = true;
  }
  if (disabled)
    text += "TENON_DISABLE switches it off; take its name out of that variable";
  else if (refused)
    text += "every plugin of that name is refused; the list gives the reasons";
  else if (overlay)
    text +=
        "it is an overlay, which makes the operators of another backend faster and has no devices "
        "of its own";
  else
    text += fmt::format("no plugin of that name was found{}", suggestion(name));
  return fmt::format(
      "{}\n{}To add a backend, set TENON_PLUGIN_PATH to the absolute path of the folder that holds "
      "its *.tenon.json, or install it into {}.",
      text, report().to_string(), printable(install_place()));
}

Registry::Registry(SearchOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
}
Registry::~Registry() = default;

void Registry::add_path(const std::string& path) {
  std::lock_guard lock(impl_->mutex);
  auto& paths = impl_->options.paths;
  if (impl_->scanned) {
    auto found = impl_->candidates;
    scan(path, paths.size(), found);
    paths.push_back(path);
    impl_->candidates = std::move(found);
    impl_->disable();
    impl_->rank();
  } else {
    paths.push_back(path);
  }
}

LoadReport Registry::report() {
  std::lock_guard lock(impl_->mutex);
  impl_->scan_once();
  return impl_->report();
}

Backend& Registry::load(std::string_view name) {
  std::lock_guard lock(impl_->mutex);
  impl_->scan_once();
  std::string wanted(name);
  if (impl_->closed) {
    for (auto* backend : impl_->loaded)
      if (backend->name() == wanted && backend->info().kind == TN_PLUGIN_DEVICE &&
          !backend->closed())
        return *backend;
    throw PluginError(
        fmt::format("backend \"{}\" was asked for after the plugins were closed at exit", wanted));
  }
  if (auto* backend = impl_->load_best(TN_PLUGIN_DEVICE, wanted)) return *backend;
  throw PluginError(impl_->explain(wanted));
}

std::vector<Backend*> Registry::overlays(std::string_view name) {
  std::lock_guard lock(impl_->mutex);
  impl_->scan_once();
  std::vector<Backend*> found;
  if (impl_->closed) return found;
  std::vector<std::string> names;
  for (auto& c : impl_->candidates)
    if (c.manifest.kind == TN_PLUGIN_OVERLAY && c.manifest.overlays == name)
      names.push_back(c.manifest.name);
  for (auto& overlay : names) {
    auto* backend = impl_->load_best(TN_PLUGIN_OVERLAY, overlay);
    if (backend && backend->info().overlays == name &&
        std::find(found.begin(), found.end(), backend) == found.end())
      found.push_back(backend);
  }
  const auto rank = [&](Backend* b) { return std::pair(prefers(*b), b->info().priority); };
  std::stable_sort(found.begin(), found.end(),
                   [&](Backend* a, Backend* b) { return rank(a) > rank(b); });
  return found;
}

bool Registry::prefers(const Backend& overlay) const {
  if (overlay.info().kind != TN_PLUGIN_OVERLAY) return false;
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), overlay.name()) != names.end();
  };
  return has(impl_->options.preferred) ||
         (impl_->options.environment && has(names_in(kPreferVariable)));
}

std::vector<Backend*> Registry::loaded() {
  std::lock_guard lock(impl_->mutex);
  return impl_->loaded;
}

void Registry::drain(std::span<const Backend* const> used) noexcept {
  std::lock_guard lock(impl_->mutex);
  impl_->closed = true;
  impl_->each_but(used, &Backend::drain);
}

void Registry::close(std::span<const Backend* const> used) noexcept {
  std::lock_guard lock(impl_->mutex);
  impl_->closed = true;
  impl_->each_but(used, &Backend::close_devices);
  impl_->each_but(used, &Backend::shutdown);
}

namespace {
std::atomic<Registry*> replacement{nullptr};
}

Registry& registry() {
  static constinit NeverDestroyed<Registry> standard;
  auto* other = replacement.load(std::memory_order_acquire);
  return other ? *other : standard.get();
}

Registry* replace_registry(Registry* other) {
  auto* before = &registry();
  replacement.store(other, std::memory_order_release);
  return before;
}

}  // namespace tenon::plugins
