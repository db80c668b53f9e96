// The order in which a program queues what the nodes of a trace do.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/core/graph/trace.h>

namespace tenon {
class DeviceContext;
}

namespace tenon::graph {

// The plans of one device, which are queued at once.
struct DeviceNodes {
  uint32_t device = 0;
  std::vector<uint32_t> nodes;
};

// Nodes up to a work that queues. Plans of different devices have no memory in common, so each
// device may get all of its plans before the next one gets any: they compute at the same time.
struct Group {
  std::vector<uint32_t> first_works;  // that queue nothing: done before
  std::vector<DeviceNodes> devices;   // in the order of their first nodes
  int32_t work = -1;                  // the node that ends it; -1 at the end of a part
};

// The groups of all parts, and the devices, which the groups name by their places.
struct Schedule {
  std::vector<DeviceContext*> devices;
  std::vector<std::vector<Group>> parts;
  uint32_t device_of(const DeviceContext& context) const;
};
Schedule make_schedule(const Trace& trace);

}  // namespace tenon::graph
