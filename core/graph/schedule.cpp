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

}  // namespace

Schedule make_schedule(const Trace& trace) {
  Schedule schedule;
  schedule.devices = devices_of(trace);
  for (auto& part : trace.parts) schedule.parts.push_back(groups_of(trace, part, schedule));
  return schedule;
}

}  // namespace tenon::graph
