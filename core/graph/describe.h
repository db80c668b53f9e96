// What describe_program is made of.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <tenon/core/graph/saved.h>
#include <tenon/core/graph/trace.h>

namespace tenon::graph {

// The call of a plan as the plugin sees it; `flat` is the shape of all tensors of a flat call.
CallDesc call_as_seen(const PlanEntry& entry, const Shape* flat);
// What output i of such a plan is.
SavedOutput output_of_plan(const PlanEntry& entry, const CallDesc& as_seen, size_t i);
// A node without its accesses.
SavedNode saved_node(const TraceNode& node, const Scalar* scalars, Device device);

// Keeps of each tensor the part of its memory that nodes and results use, and gives it the dtype
// and shape that a file shows.
void cut_tensors(SavedProgram& program, const SavedNames& names);

// The step of an optimizer, which a stored program takes without it: its numbers become those of
// the program, with their values of now.
class HostPartDescription {
 public:
  // Throws a ValueError if it cannot be done without the optimizer.
  HostPartDescription(const Trace& trace, const Part& part, SavedProgram& program);
  // Throws a ValueError unless the optimizer says at present that the memory is its own.
  void require_own(const Storage* memory) const;
  void add_numbers(const TraceNode& node, SavedNode& saved);

 private:
  const Storage* memory_of(uint32_t at, uint32_t end) const;
  const Storage* target_of(const TraceNode& node, size_t output = 0) const;
  double now(const Storage* memory, std::string_view name) const;
  void require_same_options(const TraceNode& node) const;
  void add_number(const TraceNode& node, SavedNode& saved, uint32_t at, const std::string& name);
  uint32_t living(const std::string& name, bool counts, Scalar value);
  [[noreturn]] void refuse(const std::string& why) const;

  const Trace& trace_;
  const Part& part_;
  SavedProgram& program_;
  std::string prefix_;
  std::set<double> groups_;
};

}  // namespace tenon::graph
