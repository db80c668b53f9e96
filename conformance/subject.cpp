#include <vector>

#include <fmt/format.h>

#include <tenon/conformance/subject.h>
#include <tenon/core/error.h>
#include <tenon/core/tensor.h>
#include <tenon/plugins/host/plugin_check.h>
#include <tenon/plugins/host/registry.h>

namespace tenon::conformance {

namespace {

using plugins::Registry;

// The manifests of the device plugins called `name`, without any overlay.
std::vector<std::string> manifests_of_device(const std::string& name, bool environment) {
  Registry all({.paths = {}, .environment = environment, .install_folder = true});
  std::vector<std::string> paths;
  for (auto& entry : all.report().entries)
    if (entry.kind == "device" && entry.name == name) paths.push_back(entry.path);
  return paths;
}

// A registry that has these manifests and no others. It exists as long as the process.
Registry& registry_of(std::vector<std::string> manifests, std::vector<std::string> preferred = {}) {
  static auto& kept = *new std::vector<Registry*>;  // never freed: devices refer to them
  kept.push_back(new Registry({.paths = std::move(manifests),
                               .environment = false,
                               .install_folder = false,
                               .preferred = std::move(preferred)}));
  return *kept.back();
}

void use(Device device) { empty({1}, {.device = device}).fill_(0).wait(); }

// "cpu 0.1.0 (/usr/lib/…/libtenon_cpu_v3.so) with the overlay onednn 1.0 (…)"
std::string describe(Registry& registry, const std::string& type) {
  const auto text = [](plugins::Backend& b) {
    return fmt::format("{} {} ({})", b.name(), b.info().version, b.info().library);
  };
  std::string result = text(registry.load(type));
  for (auto* overlay : registry.overlays(type)) result += " with the overlay " + text(*overlay);
  return result;
}

// The registry that has it, the device below it, and the cpu to compare with.
Registry& registry_with(const plugins::PluginFile& plugin, const std::string& file) {
  std::vector<std::string> paths = {plugin.manifest};
  const auto add = [&](const std::string& device, bool environment) {
    const auto below = manifests_of_device(device, environment);
    paths.insert(paths.end(), below.begin(), below.end());
  };
  const bool overlay = !plugin.overlay.empty();
  if (overlay && plugin.device != "cpu") add(plugin.device, /*environment=*/true);
  if (overlay || plugin.device != "cpu") add("cpu", /*environment=*/false);
  if (!overlay) return registry_of(paths);
  // Where its plan is not the cheapest, it would not be tried.
  auto& registry = registry_of(paths, {plugin.overlay});
  for (auto* loaded : registry.overlays(plugin.device))
    if (loaded->name() == plugin.overlay) return registry;
  throw PluginError(
      fmt::format("{}: the overlay cannot be used:\n{}", file, registry.report().to_string()));
}

}  // namespace

Opened open_subject(const Options& options) {
  const bool named = options.plugin.empty();
  const auto plugin = named ? plugins::PluginFile() : plugins::read_plugin_file(options.plugin);
  auto& stock = registry_of(manifests_of_device("cpu", named));
  auto& installed = plugins::registry();
  plugins::replace_registry(&stock);
  Subject subject;
  if (named) subject.device = Device(options.device);
  // Another device of the cpu than the one that is checked: overlays are chosen when it is opened.
  subject.reference = Device("cpu", subject.device == Device("cpu:1") ? 2 : 1);
  use(subject.reference);

  auto* registry = &installed;
  if (!named) {
    registry = &registry_with(plugin, options.plugin);
    subject.device = Device(plugin.device);
    subject.overlay = plugin.overlay;
  }
  subject.tried = options.tried;
  plugins::replace_registry(registry == &installed ? nullptr : registry);
  const std::string type(subject.device.type());
  registry->load(type);          // or the error would speak of the first operator
  memory_stats(subject.device);  // which opens it
  return {subject,
          fmt::format("{}: {}\ncompared with {}: {}", subject.device.str(),
                      describe(*registry, type), subject.reference.str(), describe(stock, "cpu"))};
}

}  // namespace tenon::conformance
