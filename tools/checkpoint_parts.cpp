// The parts of a training run in a checkpoint, readably.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/serialization/checkpoint.h>

#include "commands.h"

namespace tenon::tools {
namespace {

// "0.9" for 0.9, "96" for 96.0, "note" in quotes; never a byte that the terminal would take for a
// command.
std::string shown(const CheckpointValue& value) {
  std::string text = value.str();
  if (value.is_number() && text.ends_with(".0")) text.resize(text.size() - 2);
  return printable(text);
}

// Adds "name value" to a list.
void add_to(std::string& list, std::string_view name, const CheckpointValue& value) {
  list += fmt::format("{}{} {}", list.empty() ? "" : ", ", printable(name), shown(value));
}

std::string listed(const CheckpointValues& values) {
  std::string text;
  for (const auto& [name, value] : values)
    if (name != "type") add_to(text, name, value);
  return text;
}

std::string type_of(const CheckpointPartInfo& part) {
  const CheckpointValue* type = part.values.find("type");
  return type && type->is_text() ? printable(type->text()) : "of no known type";
}

std::string size_of_tensors(const CheckpointPartInfo& part) {
  uint64_t bytes = 0;
  for (const NamedShape& tensor : part.tensors)
    bytes += static_cast<uint64_t>(tensor.shape.numel()) * size_of(tensor.dtype);
  return fmt::format("{} tensors, {}", part.tensors.size(), human_bytes(bytes));
}

// A group of parameters of an optimizer.
struct Group {
  size_t parameters = 0;
  std::string options;
};

// The groups by number, from "param_groups.0.lr" and "param_groups.0.params.0".
std::map<uint64_t, Group> groups_of(const CheckpointValues& values) {
  constexpr std::string_view kGroups = "param_groups.";
  std::map<uint64_t, Group> groups;
  for (const auto& [name, value] : values) {
    if (!name.starts_with(kGroups)) continue;
    const std::string_view rest = std::string_view(name).substr(kGroups.size());
    uint64_t number = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    const auto digits = static_cast<size_t>(read.ptr - rest.data());
    if (read.ec != std::errc() || !rest.substr(digits).starts_with('.')) continue;
    const std::string_view option = rest.substr(digits + 1);
    if (option.starts_with("params."))
      ++groups[number].parameters;
    else
      add_to(groups[number].options, option, value);
  }
  return groups;
}

void show_optimizer(const CheckpointPartInfo& part) {
  int64_t least = 0, most = 0, stepped = 0;
  for (const auto& [name, value] : part.values)
    if (name.starts_with("state.") && name.ends_with(".step") && value.is_number()) {
      constexpr double kMax = 0x1p53;
      const auto step = static_cast<int64_t>(std::fmax(0, std::fmin(value.number(), kMax)));
      least = stepped ? std::min(least, step) : step, most = std::max(most, step), ++stepped;
    }
  std::cout << type_of(part) << ", " << size_of_tensors(part);
  if (stepped)
    std::cout << ", " << (least == most ? "" : fmt::format("{} to ", least)) << most << " steps";
  std::cout << "\n";
  for (const auto& [number, group] : groups_of(part.values))
    if (!group.options.empty())
      std::cout << "  group " << number << ": " << group.parameters << " parameters, "
                << group.options << "\n";
}

void show_part(const CheckpointPartInfo& part) {
  const std::string kind = part.name.substr(0, part.name.find('.'));
  std::cout << printable(part.name) << ": ";
  if (part.name == "program")
    std::cout << "what uses the tensors; `tenon program show` describes it\n";
  else if (!part.known)
    std::cout << "a part that this version of Tenon does not know\n";
  else if (kind == "optimizer")
    show_optimizer(part);
  else if (kind == "average")
    std::cout << size_of_tensors(part) << "\n";
  else if (kind == "scheduler")
    std::cout << type_of(part) << ", " << listed(part.values) << "\n";
  else
    std::cout << listed(part.values) << "\n";
  if (kind == "user")
    for (const NamedShape& tensor : part.tensors)
      std::cout << "  " << printable(tensor.key) << " " << name_of(tensor.dtype) << " "
                << tensor.shape.str() << "\n";
}

}  // namespace

void show_checkpoint_parts(const CheckpointInfo& info) {
  for (const CheckpointPartInfo& part : info.parts) show_part(part);
}

}  // namespace tenon::tools
