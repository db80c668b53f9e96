#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tenon/conformance/subject.h>
#include <tenon/core/error.h>
#include <tenon/core/tensor.h>
#include <tenon/plugins/host/registry.h>

namespace tenon::conformance {

namespace {

namespace fs = std::filesystem;
using plugins::Registry;

constexpr const char* kEnding = ".tenon.json";

nlohmann::json read_manifest(const fs::path& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto manifest = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return manifest.is_object() ? manifest : nlohmann::json::object();
}

std::string text_in(const nlohmann::json& manifest, const char* key) {
  const auto found = manifest.find(key);
  return found != manifest.end() && found->is_string() ? found->get<std::string>() : "";
}

// The manifest of a library: the one in its folder that names it.
fs::path manifest_of(const std::string& file) {
  std::error_code error;
  const fs::path path = fs::canonical(file, error);
  if (error) throw PluginError(fmt::format("{}: {}", file, error.message()));
  if (path.string().ends_with(kEnding)) return path;
  for (fs::directory_iterator it(path.parent_path(), error), end; !error && it != end;
       it.increment(error))
    if (it->path().string().ends_with(kEnding) &&
        text_in(read_manifest(it->path()), "library") == path.filename())
      return it->path();
  throw PluginError(fmt::format("{}: no manifest (*{}) in its folder names it as its \"library\"",
                                path.string(), kEnding));
}

// The manifests of the device plugins called `name`, without any overlay.
std::vector<std::string> manifests_of_device(const std::string& name, bool environment) {
  Registry all({.paths = {}, .environment = environment, .install_folder = true});
  std::vector<std::string> paths;
  for (auto& entry : all.report().entries)
    if (entry.kind == "device" && entry.name == name) paths.push_back(entry.path);
  return paths;
}

// A registry that has these manifests and no others. It exists as long as the process.
Registry& registry_of(std::vector<std::string> manifests, bool first_plan_wins = false) {
  static auto& kept = *new std::vector<Registry*>;  // never freed: devices refer to them
  kept.push_back(new Registry({.paths = std::move(manifests),
                               .environment = false,
                               .install_folder = false,
                               .first_plan_wins = first_plan_wins}));
  return *kept.back();
}

void open(Device device) { empty({1}, {.device = device}).fill_(0).wait(); }

// "cpu 0.1.0 (/usr/lib/…/libtenon_cpu_v3.so) with the overlay onednn 1.0 (…)"
std::string describe(Registry& registry, const std::string& type) {
  const auto text = [](plugins::Backend& b) {
    return fmt::format("{} {} ({})", b.name(), b.info().version, b.info().library);
  };
  std::string result = text(registry.load(type));
  for (auto* overlay : registry.overlays(type)) result += " with the overlay " + text(*overlay);
  return result;
}

// A plugin that is checked alone, as its manifest tells.
struct Alone {
  fs::path manifest;
  std::string device;   // the one that it has, or that it is an overlay of
  std::string overlay;  // its name if it is one
};

Alone alone(const std::string& file) {
  const fs::path manifest = manifest_of(file);
  const auto content = read_manifest(manifest);
  const bool overlay = text_in(content, "kind") == "overlay";
  Alone result{manifest, text_in(content, overlay ? "overlays" : "name"),
               overlay ? text_in(content, "name") : ""};
  if (result.device.empty()) throw PluginError(file + ": its manifest does not name a device");
  return result;
}

// The registry that has it, the device below it, and the cpu to compare with.
Registry& registry_with(const Alone& plugin, const std::string& file) {
  std::vector<std::string> paths = {plugin.manifest};
  const auto add = [&](const std::string& device, bool environment) {
    const auto below = manifests_of_device(device, environment);
    paths.insert(paths.end(), below.begin(), below.end());
  };
  const bool overlay = !plugin.overlay.empty();
  if (overlay && plugin.device != "cpu") add(plugin.device, /*environment=*/true);
  if (overlay || plugin.device != "cpu") add("cpu", /*environment=*/false);
  // The overlay is asked first. Where its plan is not the cheapest, it would not be tried.
  auto& registry = registry_of(paths, /*first_plan_wins=*/overlay);
  if (!overlay) return registry;
  for (auto* loaded : registry.overlays(plugin.device))
    if (loaded->name() == plugin.overlay) return registry;
  throw PluginError(
      fmt::format("{}: the overlay cannot be used:\n{}", file, registry.report().to_string()));
}

}  // namespace

Opened open_subject(const Options& options) {
  const bool named = options.plugin.empty();
  const Alone plugin = named ? Alone() : alone(options.plugin);
  auto& stock = registry_of(manifests_of_device("cpu", named));
  auto& installed = plugins::registry();
  plugins::replace_registry(&stock);
  Subject subject;
  if (named) subject.device = Device(options.device);
  // Another device of the cpu than the one that is checked: overlays are chosen when it is opened.
  subject.reference = Device("cpu", subject.device == Device("cpu:1") ? 2 : 1);
  open(subject.reference);

  auto* registry = &installed;
  if (!named) {
    registry = &registry_with(plugin, options.plugin);
    subject.device = Device(plugin.device);
    subject.overlay = plugin.overlay;
  }
  plugins::replace_registry(registry == &installed ? nullptr : registry);
  const std::string type(subject.device.type());
  registry->load(type);  // or the error would speak of the first operator
  return {subject,
          fmt::format("{}: {}\ncompared with {}: {}", subject.device.str(),
                      describe(*registry, type), subject.reference.str(), describe(stock, "cpu"))};
}

}  // namespace tenon::conformance
