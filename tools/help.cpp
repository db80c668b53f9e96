#include "help.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tenon/core/base/edit_distance.h>
#include <tenon/core/base/printable.h>

namespace tenon::tools {

std::string environment_help() {
  return R"(
Environment variables of all programs (README.md says more):
  TENON_PLUGIN_PATH     Absolute paths of folders with backends, with colons between them
  TENON_DISABLE         Names of backends and overlays that are not used, with commas
  TENON_PREFER          Names of overlays whose plans are used whatever they cost, with commas
  TENON_NUM_THREADS     Threads that all backends share, 1 to 1024 (default: one for each core)
  TENON_CPU_DEVICES     How many cpu devices are counted at least, 1 to 1024
  TENON_CPU_FALLBACK    1: the CPU computes what a device lacks; report: and a list at the end
  TENON_SYNC            1: every call waits for its work
  TENON_CHECK           1: checked mode, which finds plugins that spoil memory; nan: and the first NaN
  TENON_CHECK_TIMEOUT   Seconds after which work counts as stuck in checked mode (default: 60)
  TENON_TRACE           What runs: ops, plans, FILE.json, or several of these with commas
  TENON_HDF5_READER     The program that reads HDF5 files of other programs
  TENON_HDF5_TIMEOUT    Seconds that it may take, and one for each MiB (default: 60)
  TENON_LOG             debug, info, warning (default) or error
  TENON_DATA            A folder of data sets
)";
}

std::string unknown_command(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  const auto commands = at->get_subcommands([](const CLI::App*) { return true; });
  const auto words = at->remaining();
  if (commands.empty() || words.empty() || words.front().starts_with("-")) return "";
  const std::string& word = words.front();
  std::vector<std::string> names;
  std::string nearest;
  size_t least = 3;  // changes that are too many to be a slip
  for (auto* command : commands) {
    names.push_back(command->get_name());
    const size_t distance = edit_distance(word, names.back());
    if (distance < least) nearest = names.back(), least = distance;
  }
  return fmt::format("there is no command \"{}\"{}; there {} {}", excerpt(word),
                     nearest.empty() ? "" : fmt::format(": did you mean \"{}\"?", nearest),
                     names.size() == 1 ? "is" : "are", fmt::join(names, ", "));
}

std::string check_whole_number(const std::string& text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end) return "";
  return fmt::format("\"{}\" is not a whole number from 0 to {}", excerpt(text),
                     std::numeric_limits<uint64_t>::max());
}

std::string check_tolerance(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  // What is too large or too small for a double is refused, too.
  if (read.ec == std::errc() && read.ptr == end && std::isfinite(number) && number >= 0) return "";
  return fmt::format("\"{}\" is not a finite number of at least 0, such as 1e-5", excerpt(text));
}

}  // namespace tenon::tools
