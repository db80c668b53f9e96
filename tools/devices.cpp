#include <cstdio>
#include <iostream>
#include <set>

#include <tenon/core/base/environment.h>
#include <tenon/core/error.h>
#include <tenon/core/runtime/context.h>
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

void print_device(const DeviceDescription& d) {
  std::cout << "  " << d.device.str() << "  " << d.name;
  if (d.memory_total) {
    std::cout << ", " << human_bytes(d.memory_total) << " memory";
    if (d.memory_free) std::cout << " (" << human_bytes(d.memory_free) << " free)";
  }
  if (!d.architecture.empty()) std::cout << ", " << d.architecture;
  if (!d.driver.empty()) std::cout << ", " << d.driver;
  if (d.threads) std::cout << ", " << d.threads << (d.threads == 1 ? " thread" : " threads");
  std::cout << "\n";
}

// Prints the devices of one backend, or why there are none.
bool print_devices(const std::string& name) {
  try {
    auto devices = describe_devices(name);
    for (auto& d : devices) print_device(d);
    if (!devices.empty() && devices.back().logical)
      std::cout << "  more " << name << " devices on request, such as " << name << ":"
                << devices.size() << "\n";
    return !devices.empty();
  } catch (const PluginError&) {
    std::cout << "  " << name << ": cannot be loaded; see its plugins above\n";
  } catch (const Error& e) {
    std::cout << "  " << name << ": " << e.what() << "\n";
  }
  return false;
}

}  // namespace

bool list_devices() {
  check_environment();
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
