#include <cstdio>
#include <iostream>
#include <set>

#include <tenon/core/error.h>
#include <tenon/plugins/host/registry.h>

#include "commands.h"

namespace tenon::tools {

std::string human_bytes(uint64_t bytes) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

namespace {

void print_device(plugins::Backend& backend, uint32_t index) {
  tn_device_info info = backend.device_info(backend.open_device(index));
  std::cout << "  " << backend.name() << ":" << index << "  " << info.name;
  if (info.memory_total) {
    std::cout << ", " << human_bytes(info.memory_total) << " memory";
    if (info.memory_free) std::cout << " (" << human_bytes(info.memory_free) << " free)";
  }
  if (info.architecture[0]) std::cout << ", " << info.architecture;
  if (info.driver[0]) std::cout << ", " << info.driver;
  if (info.threads)
    std::cout << ", " << info.threads << (info.threads == 1 ? " thread" : " threads");
  if (info.flags & TN_DEVICE_LOGICAL) std::cout << ", more on request";
  std::cout << "\n";
}

// Prints the devices of one backend, or why there are none.
bool print_devices(const std::string& name) {
  try {
    plugins::Backend& backend = plugins::registry().load(name);
    uint32_t count = backend.device_count();
    for (uint32_t i = 0; i < count; ++i) print_device(backend, i);
    return count > 0;
  } catch (const PluginError&) {
    std::cout << "  " << name << ": cannot be loaded; see its plugins above\n";
  } catch (const Error& e) {
    std::cout << "  " << name << ": " << e.what() << "\n";
  }
  return false;
}

}  // namespace

bool list_devices() {
  // The plugins are loaded first, so that the report shows which of them can be.
  std::set<std::string> names;
  for (auto& entry : plugins::registry().report().entries) {
    if (entry.kind == "device" && !entry.name.empty() && entry.status != plugins::Status::refused)
      names.insert(entry.name);
  }
  for (auto& name : names) {
    try {
      plugins::registry().load(name);
      plugins::registry().overlays(name);
    } catch (const Error&) {
      // The report says why.
    }
  }
  std::cout << plugins::registry().report().to_string() << "devices:\n";
  bool any = false;
  for (auto& name : names) any = print_devices(name) || any;
  if (!any) std::cout << "  none\n";
  return any;
}

}  // namespace tenon::tools
