#include <algorithm>

#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/plugins/host/load_report.h>

namespace tenon::plugins {

const char* to_string(Status status) {
  switch (status) {
    case Status::available:
      return "available";
    case Status::loaded:
      return "loaded";
    case Status::refused:
      return "refused";
    case Status::superseded:
      return "superseded";
    case Status::unsuitable:
      return "unsuitable";
    case Status::disabled:
      return "disabled";
    case Status::unused:
      return "unused";
  }
  return "?";
}

namespace {
std::string label(const LoadReport::Entry& e) {
  std::string text = e.name.empty() ? "?" : e.name;
  if (!e.overlays.empty()) text += fmt::format(" over {}", e.overlays);
  if (!e.variant.empty()) text += fmt::format(" ({})", e.variant);
  return text;
}
}  // namespace

std::string LoadReport::to_string() const {
  std::string text = entries.empty() ? "plugins found: none\n" : "plugins found:\n";
  size_t width = 0;
  for (auto& e : entries) width = std::max(width, label(e).size());
  for (auto& e : entries) {
    std::string name = label(e), status = plugins::to_string(e.status);
    text += fmt::format("  {:<{}}{:<12}{}\n", name, width + 2, status, printable(e.path));
    if (!e.reason.empty()) text += fmt::format("      {}\n", printable(e.reason));
    for (auto& remark : e.remarks) text += fmt::format("      manifest: {}\n", printable(remark));
  }
  text += "searched:";
  if (searched.empty()) text += " nothing";
  text += "\n";
  for (auto& place : searched) text += fmt::format("  {}\n", printable(place));
  return text;
}

}  // namespace tenon::plugins
