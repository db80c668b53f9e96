#include <algorithm>
#include <cstdio>
#include <iostream>

#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/serialization/checkpoint.h>

#include "checkpoint_commands.h"
#include "commands.h"
#include "errors.h"

namespace tenon::tools {
namespace {

using nlohmann::json;

// Tensors of a hostile file may be larger together than any number: their elements need no memory
// of their own.
void add_to(uint64_t& sum, uint64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) sum = UINT64_MAX;
}

// Prints a line of the table. The key is printable: its escape sequences and line ends must not
// reach the terminal.
void print_line(const std::string& key, size_t width, const std::string& dtype,
                const std::string& rest) {
  std::cout << key << std::string(width + 2 - key.size(), ' ') << dtype
            << std::string(6 - std::min<size_t>(5, dtype.size()), ' ') << rest << "\n";
}

std::string in_shards(const CheckpointInfo& info) {
  return info.shards.empty() ? "" : fmt::format(" in {} shards", info.shards.size());
}

json described(const std::vector<NamedShape>& tensors) {
  json list = json::array();
  for (const NamedShape& tensor : tensors)
    list.push_back({{"key", tensor.key},
                    {"dtype", name_of(tensor.dtype)},
                    {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())}});
  return list;
}

json described(const CheckpointValues& values) {
  json object = json::object();
  for (const auto& [name, value] : values) object[name] = json_value(value);
  return object;
}

json described(const CheckpointInfo& info) {
  json parts = json::array(), unreadable = json::array();
  for (const CheckpointPartInfo& part : info.parts)
    parts.push_back({{"name", part.name},
                     {"known", part.known},
                     {"values", described(part.values)},
                     {"tensors", described(part.tensors)}});
  for (const auto& [key, why] : info.unreadable) unreadable.push_back({{"key", key}, {"why", why}});
  return {{"format", name_of(info.format)},
          {"format_version", info.format_version},
          {"bytes", info.file_bytes},
          {"unverified", info.unverified},
          {"shards", info.shards},
          {"wrappers", info.wrappers ? json(*info.wrappers) : json()},
          {"tensors", described(info.tensors)},
          {"parts", std::move(parts)},
          {"unreadable", std::move(unreadable)}};
}

}  // namespace

void show_checkpoint(const FileChoice& file, bool as_json) {
  require_no_run(file.path);
  CheckpointInfo info = inspect(file.path, file.section, file.verify);
  if (as_json) return print_json(described(info));
  size_t width = 0;
  uint64_t elements = 0, bytes = 0;
  for (auto& t : info.tensors) {
    t.key = printable(t.key);
    width = std::max(width, t.key.size());
    const auto numel = static_cast<uint64_t>(t.shape.numel());
    add_to(elements, numel);
    add_to(bytes, numel * size_of(t.dtype));
  }
  std::cout << printable(file.path) << ": ";
  if (info.unverified)
    std::cout << name_of(info.format) << " file, " << human_bytes(info.file_bytes)
              << ", unverified: it has no checksums of Tenon's\n";
  else
    std::cout << "format " << info.format_version << ", " << human_bytes(info.file_bytes)
              << in_shards(info) << ", all checksums right\n";
  std::cout << info.tensors.size() << (info.tensors.size() == 1 ? " tensor, " : " tensors, ")
            << elements << " elements, " << human_bytes(bytes) << "\n";
  if (!info.wrappers) {
    std::cout << "wrappers: not recorded\n";
  } else if (info.wrappers->empty()) {
    std::cout << "wrappers: none\n";
  } else {
    std::cout << "wrappers:";
    for (auto& wrapper : *info.wrappers) std::cout << " " << printable(wrapper);
    std::cout << "\n";
  }
  show_checkpoint_parts(info);
  for (auto& t : info.tensors)
    print_line(t.key, width, std::string(name_of(t.dtype)), t.shape.str());
  for (auto& t : info.unreadable)
    std::cout << printable(t.key) << "  cannot be loaded: " << printable(t.why) << "\n";
}

void verify_checkpoint(const FileChoice& file, bool as_json) {
  CheckpointInfo info;
  try {
    require_no_run(file.path);
    info = inspect(file.path, file.section);
  } catch (const Error& error) {
    if (as_json) print_json({{"right", false}, {"error", text_of(error)}});
    throw;
  }
  if (as_json) {
    json parts = json::array();
    for (const CheckpointPartInfo& part : info.parts) parts.push_back(part.name);
    return print_json({{"right", true},
                       {"unverified", info.unverified},
                       {"format", name_of(info.format)},
                       {"bytes", info.file_bytes},
                       {"tensors", info.tensors.size()},
                       {"parts", std::move(parts)},
                       {"shards", info.shards}});
  }
  std::cout << printable(file.path)
            << (info.unverified ? ": a whole " + std::string(name_of(info.format)) +
                                      " file, whose values have no checksums of Tenon's; "
                                : ": right; ")
            << info.tensors.size() << " tensors, " << human_bytes(info.file_bytes)
            << in_shards(info);
  for (size_t i = 0; i < info.parts.size(); ++i)
    std::cout << (i ? ", " : "; with ") << printable(info.parts[i].name);
  std::cout << "\n";
}

}  // namespace tenon::tools
