#include <algorithm>
#include <cstdio>
#include <iostream>

#include <tenon/core/base/printable.h>
#include <tenon/serialization/checkpoint.h>

#include "commands.h"

namespace tenon::tools {
namespace {

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

}  // namespace

void show_checkpoint(const std::string& path, const std::string& section) {
  CheckpointInfo info = inspect(path, section);
  size_t width = 0;
  uint64_t elements = 0, bytes = 0;
  for (auto& t : info.tensors) {
    t.key = printable(t.key);
    width = std::max(width, t.key.size());
    const auto numel = static_cast<uint64_t>(t.shape.numel());
    add_to(elements, numel);
    add_to(bytes, numel * size_of(t.dtype));
  }
  std::cout << printable(path) << ": ";
  if (info.unverified)
    std::cout << name_of(info.format) << " file, " << human_bytes(info.file_bytes)
              << ", unverified: it has no checksums of Tenon's\n";
  else
    std::cout << "format " << info.format_version << ", " << human_bytes(info.file_bytes)
              << ", all checksums right\n";
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

void verify_checkpoint(const std::string& path) {
  CheckpointInfo info = inspect(path);
  std::cout << printable(path)
            << (info.unverified ? ": a whole " + std::string(name_of(info.format)) +
                                      " file, whose values have no checksums of Tenon's; "
                                : ": right; ")
            << info.tensors.size() << " tensors, " << human_bytes(info.file_bytes);
  for (size_t i = 0; i < info.parts.size(); ++i)
    std::cout << (i ? ", " : "; with ") << printable(info.parts[i].name);
  std::cout << "\n";
}

}  // namespace tenon::tools
