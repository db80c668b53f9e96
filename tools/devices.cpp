// `tenon devices`. Each backend is looked at in a process of its own, because it may crash.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <tenon/conformance/levels.h>
#include <tenon/core/base/environment.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/runtime/context.h>
#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/host/checked_api.h>
#include <tenon/plugins/host/registry.h>

#include "child.h"
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

using Json = nlohmann::ordered_json;
using plugins::LoadReport;
using plugins::Status;

// What one backend says of itself.
struct Found {
  std::string name;
  Json devices = Json::array();
  std::string error;  // why there are none, that it crashed, or a line for each that does not open
};

// ---- in the child

Json loaded_plugins(const std::string& name) {
  Json plugins = Json::array();
  for (auto& e : plugins::registry().report().entries)
    if (e.name == name || e.overlays == name)
      plugins.push_back({{"path", printable(e.path)},
                         {"status", static_cast<int>(e.status)},
                         {"reason", printable(e.reason)}});
  return plugins;
}

void leave_out_overlays(const std::string& name) {
  const char* before = std::getenv("TENON_DISABLE");
  std::string names = before ? before : "";
  for (auto& e : plugins::registry().report().entries)
    if (e.overlays == name) names += "," + e.name;
  setenv("TENON_DISABLE", names.c_str(), 1);
  plugins::replace_registry(new plugins::Registry);  // the other one has found them already
}

Json described(const DeviceDescription& d) {
  return {{"device", d.device.str()},       {"name", d.name},
          {"memory_total", d.memory_total}, {"memory_free", d.memory_free},
          {"threads", d.threads},           {"logical", d.logical},
          {"architecture", d.architecture}, {"driver", d.driver}};
}

// The devices that open, and why others do not: one that is broken hides no other.
void take_devices(const std::string& name, Json& devices, std::string& error) {
  constexpr size_t kMax = 8;
  size_t broken = 0;
  for (auto& d : describe_devices(name)) {
    if (d.error.empty())
      devices.push_back(described(d));
    else if (++broken <= kMax)
      error += (error.empty() ? "" : "\n") + printable_lines(d.error);
  }
  if (broken > kMax) error += fmt::format("\nand {} more devices do not open", broken - kMax);
  if (devices.empty() && error.empty()) error = "the plugin finds no device";
}

// Opening a device loads the overlays, too, unless they are left out.
std::string look_at(const std::string& name, bool with_overlays) {
  Json result = {{"devices", Json::array()}, {"error", ""}};
  try {
    if (!with_overlays) leave_out_overlays(name);
    std::string error;
    take_devices(name, result["devices"], error);
    result["error"] = error;
  } catch (const PluginError&) {
    result["error"] = "cannot be loaded; see its plugins above";
  } catch (const std::exception& e) {
    result["error"] = printable_lines(e.what());
  }
  result["plugins"] = loaded_plugins(name);
  return result.dump(-1, ' ', false, Json::error_handler_t::replace);
}

PluginFunction where_it_is() {
  const auto* inside = plugins::InsidePlugin::current();
  return inside ? PluginFunction{inside->function(), inside->name()} : PluginFunction();
}

// ---- in the parent

// The status of a plugin is known only after it was loaded, which happened in the child.
void take_over(LoadReport& report, const Json& plugins, bool with_overlays) {
  for (auto& found : plugins)
    for (auto& e : report.entries)
      if (found["path"] == printable(e.path) && (with_overlays || e.overlays.empty())) {
        e.status = static_cast<Status>(found["status"].get<int>());
        e.reason = found["reason"];
      }
}

// Refuses the plugins that a process which ended may have ended.
void refuse(LoadReport& report, const std::string& reason, const auto& concerns) {
  for (auto& e : report.entries)
    if (concerns(e) && (e.status == Status::available || e.status == Status::loaded)) {
      e.status = Status::refused;
      e.reason = reason;
    }
}

Found probe(const std::string& name, LoadReport& report, std::chrono::seconds limit) {
  Found found;
  found.name = name;
  auto look = [&](bool with_overlays) {
    ChildResult child = in_child([&] { return look_at(name, with_overlays); }, limit, where_it_is);
    if (!child.answered) return child;
    try {
      const Json answer = Json::parse(child.text);
      found.devices = answer.at("devices");
      found.error = answer.at("error");
      take_over(report, answer.at("plugins"), with_overlays);
    } catch (const Json::exception&) {  // the plugin has written where it answers
      child.answered = false;
      if (child.ended.empty())
        child.ended =
            fmt::format("gave an answer that cannot be read: \"{}\"", excerpt(child.text));
    }
    return child;
  };
  const ChildResult child = look(true);
  if (child.ended.empty()) return found;
  const std::string reason =
      fmt::format("the process that {} {}",
                  child.answered ? "had opened its devices" : "opened its devices", child.ended);
  const bool lies_over = std::any_of(report.entries.begin(), report.entries.end(), [&](auto& e) {
    return e.overlays == name && e.status == Status::available;
  });
  if (!child.answered && lies_over && look(false).ended.empty()) {
    refuse(report, reason, [&](auto& e) { return e.overlays == name; });
    return found;
  }
  found.error = reason;
  refuse(report, reason, [&](auto& e) { return e.name == name; });
  return found;
}

void print_device(const Json& d) {
  std::cout << "  " << d["device"].get<std::string>() << "  " << d["name"].get<std::string>();
  const auto total = d["memory_total"].get<uint64_t>(), free = d["memory_free"].get<uint64_t>();
  if (total) std::cout << ", " << human_bytes(total) << " memory";
  if (total && free) std::cout << " (" << human_bytes(free) << " free)";
  for (const char* key : {"architecture", "driver"})
    if (const auto text = d[key].get<std::string>(); !text.empty()) std::cout << ", " << text;
  if (const auto threads = d["threads"].get<uint32_t>())
    std::cout << ", " << threads << (threads == 1 ? " thread" : " threads");
  std::cout << "\n";
}

void print_devices(const Found& found) {
  for (auto& d : found.devices) print_device(d);
  if (!found.devices.empty() && found.devices.back()["logical"])
    std::cout << "  more " << found.name << " devices on request, such as " << found.name << ":"
              << found.devices.size() << "\n";
  std::istringstream lines(found.error);
  for (std::string line; std::getline(lines, line);)
    std::cout << "  " << found.name << ": " << line << "\n";
}

void print_report_json(const LoadReport& report, const std::vector<Found>& backends) {
  Json all = {{"tenon", TENON_VERSION},
              {"abi", fmt::format("{}.{}", TN_ABI_MAJOR, TN_ABI_MINOR)},
              {"operator_set", conformance::kOperatorSet},
              {"plugins", Json::array()},
              {"backends", Json::array()},
              {"devices", Json::array()},
              {"searched", report.searched}};
  for (auto& e : report.entries)
    all["plugins"].push_back({{"name", e.name},
                              {"kind", e.kind},
                              {"variant", e.variant},
                              {"version", e.version},
                              {"overlays", e.overlays},
                              {"manifest", printable(e.path)},
                              {"status", plugins::to_string(e.status)},
                              {"reason", printable(e.reason)},
                              {"remarks", e.remarks}});
  for (auto& b : backends) {
    all["backends"].push_back(
        {{"name", b.name}, {"devices", b.devices.size()}, {"error", b.error}});
    for (auto& d : b.devices) all["devices"].push_back(d);
  }
  std::cout << all.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

bool is_flawless(const LoadReport& report, const std::vector<Found>& backends) {
  return std::none_of(report.entries.begin(), report.entries.end(),
                      [](auto& e) {
                        return e.status == Status::refused || e.status == Status::unused ||
                               !e.remarks.empty();
                      }) &&
         std::all_of(backends.begin(), backends.end(), [](auto& b) { return b.error.empty(); });
}

}  // namespace

bool list_devices(const DevicesOptions& options) {
  check_environment();
  LoadReport report = plugins::registry().report();
  std::vector<std::string> names;
  for (auto& e : report.entries)
    if (e.kind == "device" && (e.status == Status::available || e.status == Status::superseded))
      names.push_back(e.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<Found> backends;
  for (auto& name : names)
    backends.push_back(probe(name, report, std::chrono::seconds(options.limit)));
  const bool any =
      std::any_of(backends.begin(), backends.end(), [](auto& b) { return !b.devices.empty(); });
  if (options.as_json) {
    print_report_json(report, backends);
  } else {
    std::cout << report.to_string() << "devices:\n";
    for (auto& b : backends) print_devices(b);
    if (!any) std::cout << "  none\n";
  }
  return any && (!options.strict || is_flawless(report, backends));
}

}  // namespace tenon::tools
