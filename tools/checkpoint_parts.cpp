// The parts of a training run in a checkpoint, readably.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/serialization/checkpoint.h>

#include "commands.h"

namespace tenon::tools {
namespace {

// "0.9" for 0.9, "note" in quotes; never a byte that the terminal would take for a command.
std::string shown(const CheckpointValue& value) { return printable(value.str()); }

// Lists values whose names begin with `prefix`, without it, unless `leave_out` says so.
template <class F>
std::string listed(const CheckpointValues& values, const std::string& prefix, F&& leave_out) {
  std::string text;
  for (const auto& [name, value] : values)
    if (name.starts_with(prefix) && !leave_out(name.substr(prefix.size())))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                          printable(name.substr(prefix.size())), shown(value));
  return text;
}
std::string listed(const CheckpointValues& values) {
  return listed(values, "", [](const std::string& name) { return name == "type"; });
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

void show_optimizer(const CheckpointPartInfo& part) {
  int64_t least = 0, most = 0, stepped = 0;
  for (const auto& [name, value] : part.values)
    if (name.starts_with("state.") && name.ends_with(".step") && value.is_number()) {
      constexpr double kMost = 0x1p53;
      const auto step = static_cast<int64_t>(std::fmax(0, std::fmin(value.number(), kMost)));
      least = stepped ? std::min(least, step) : step, most = std::max(most, step), ++stepped;
    }
  std::cout << type_of(part) << ", " << size_of_tensors(part);
  if (stepped)
    std::cout << ", " << (least == most ? "" : fmt::format("{} to ", least)) << most << " steps";
  std::cout << "\n";
  for (int group = 0;; ++group) {
    const std::string prefix = fmt::format("param_groups.{}.", group);
    const auto is_parameter = [](const std::string& name) { return name.starts_with("params."); };
    const std::string options = listed(part.values, prefix, is_parameter);
    if (options.empty()) break;
    size_t parameters = 0;
    for (const auto& [name, value] : part.values)
      parameters += name.starts_with(prefix + "params.");
    std::cout << "  group " << group << ": " << parameters << " parameters, " << options << "\n";
  }
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
