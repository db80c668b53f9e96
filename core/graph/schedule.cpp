#include <algorithm>

#include <tenon/core/graph/schedule.h>
#include <tenon/core/runtime/context.h>

namespace tenon::graph {

uint32_t Schedule::device_of(const DeviceContext& context) const {
  return static_cast<uint32_t>(std::find(devices.begin(), devices.end(), &context) -
                               devices.begin());
}

namespace {

std::vector<DeviceContext*> devices_of(const Trace& trace) {
  std::vector<DeviceContext*> all;
  const auto add = [&](DeviceContext& context) {
    if (std::find(all.begin(), all.end(), &context) == all.end()) all.push_back(&context);
  };
  for (auto& node : trace.nodes) {
    if (node.plan) add(*node.plan->context);
    if (!node.work) continue;
    for (auto& form : node.work->forms) add(context_of(form.device));
  }
  for (auto& value : trace.values) add(context_of(value.device));
  return all;
}

void add_plan(Group& group, uint32_t device, uint32_t node) {
  for (auto& known : group.devices)
    if (known.device == device) return known.nodes.push_back(node);
  group.devices.push_back({device, {node}});
}

std::vector<Group> groups_of(const Trace& trace, const Part& part, const Schedule& schedule) {
  std::vector<Group> groups(1);
  for (uint32_t i = part.first_node; i < part.end_node; ++i) {
    const TraceNode& node = trace.nodes[i];
    if (!node.work) {
      add_plan(groups.back(), schedule.device_of(*node.plan->context), i);
    } else if (!node.work->queues) {
      groups.back().first_works.push_back(i);
    } else {
      groups.back().work = static_cast<int32_t>(i);
      groups.emplace_back();
    }
  }
  return groups;
}

// A caller that waits for a result need not wait for what is computed after the last of them, such
// as a backward pass after a loss: that is a piece of its own.
void cut_after_results(const Trace& trace, std::vector<std::vector<Group>>& parts) {
  std::vector<bool> is_result(trace.values.size());
  for (size_t i = 0; i < trace.num_results(); ++i)
    if (const int32_t kept = trace.results[i].kept; kept >= 0)
      is_result[trace.kept[static_cast<size_t>(kept)].value] = true;
  const auto makes_result = [&](uint32_t i) {
    const Access* outputs = trace.outputs_of(trace.nodes[i]);
    return std::any_of(outputs, outputs + trace.nodes[i].num_outputs, [&](const Access& output) {
      return output.value != kAbsent && is_result[output.value];
    });
  };
  for (auto& part : parts)
    for (auto& group : part)
      for (size_t d = 0, end = group.devices.size(); d < end; ++d) {
        auto& nodes = group.devices[d].nodes;
        const auto last = std::find_if(nodes.rbegin(), nodes.rend(), makes_result).base();
        if (last == nodes.begin() || last == nodes.end()) continue;
        DeviceNodes rest{group.devices[d].device, {last, nodes.end()}};
        nodes.erase(last, nodes.end());
        group.devices.push_back(std::move(rest));
      }
}

}  // namespace

Schedule make_schedule(const Trace& trace) {
  Schedule schedule;
  schedule.devices = devices_of(trace);
  for (auto& part : trace.parts) schedule.parts.push_back(groups_of(trace, part, schedule));
  cut_after_results(trace, schedule.parts);
  return schedule;
}

}  // namespace tenon::graph
