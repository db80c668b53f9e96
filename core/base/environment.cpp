#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fmt/core.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>

namespace tenon {

std::optional<uint32_t> count_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (!text || !*text) return std::nullopt;
  uint32_t n = 0;
  auto [end, error] = std::from_chars(text, text + std::strlen(text), n);
  if (error != std::errc() || *end || n < 1 || n > 1024)
    throw ValueError(
        fmt::format("{} is \"{}\"; it must be a number from 1 to 1024", name, excerpt(text)));
  return n;
}

bool flag_from_environment(const char* name) {
  const char* text = std::getenv(name);
  const std::string_view value = text ? text : "";
  if (value != "" && value != "0" && value != "1")
    throw ValueError(
        fmt::format("{} is \"{}\"; it must be 1 for yes, or 0 for no", name, excerpt(value)));
  return value == "1";
}

CpuFallback cpu_fallback_from_environment() {
  const char* text = std::getenv("TENON_CPU_FALLBACK");
  const std::string_view value = text ? text : "";
  if (value == "report") return CpuFallback::report;
  if (value != "" && value != "0" && value != "1")
    throw ValueError(
        fmt::format("TENON_CPU_FALLBACK is \"{}\"; it must be 1 for yes, 0 for no, or "
                    "report for yes and a list at the end",
                    excerpt(value)));
  return value == "1" ? CpuFallback::on : CpuFallback::off;
}

TraceSettings trace_from_environment() {
  const char* text = std::getenv("TENON_TRACE");
  TraceSettings settings;
  std::string_view rest = text ? text : "";
  for (bool more = !rest.empty(); more;) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    more = comma != rest.npos;
    if (more) rest.remove_prefix(comma + 1);
    if (part == "ops") {
      settings.ops = true;
    } else if (part == "plans") {
      settings.plans = true;
    } else if (part.ends_with(".json") && settings.file.empty()) {
      settings.file = part;
    } else {
      throw ValueError(fmt::format(
          "TENON_TRACE is \"{}\"; it must be ops, plans or the name of a file that ends in .json, "
          "or several of these with commas between them, but of files only one",
          excerpt(text)));
    }
  }
  return settings;
}

namespace {
CheckSettings read_check_settings() {
  const char* text = std::getenv("TENON_CHECK");
  const std::string_view value = text ? text : "";
  if (value != "" && value != "0" && value != "1" && value != "nan" && value != "1,nan")
    throw ValueError(fmt::format(
        "TENON_CHECK is \"{}\"; it must be 1 to check memory and runs, nan (or 1,nan) to look for "
        "the first NaN too, or 0 for neither",
        excerpt(value)));
  CheckSettings settings;
  settings.nan = value.ends_with("nan");
  settings.on = settings.nan || value == "1";
  settings.seconds = count_from_environment("TENON_CHECK_TIMEOUT").value_or(settings.seconds);
  return settings;
}
}  // namespace

const CheckSettings& check_settings() {
  struct Read : CheckSettings {
    Read() : CheckSettings(read_check_settings()) {}
  };
  static constinit NeverDestroyed<Read> settings;
  return settings.get();
}

void check_environment() {
  for (auto* name : {"TENON_NUM_THREADS", "TENON_CPU_DEVICES", "TENON_HDF5_TIMEOUT"})
    count_from_environment(name);
  flag_from_environment("TENON_SYNC");
  cpu_fallback_from_environment();
  trace_from_environment();
  check_settings();
}

}  // namespace tenon
