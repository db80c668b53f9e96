// Asks the plugins of a device for a plan.
#pragma once

#include <string>

namespace tenon {

class DeviceContext;
struct PlanEntry;

// What is said of the plugins whose plans are not used.
struct Reasons {
  std::string text;      // a line each, "\n  cpu: …"
  bool refused = false;  // one of them made no plan; others only cost more, or were not asked
};

// Asks the overlays and then the plugin of the device, and adds to `reasons`. The plan stays null
// if all refuse. Of several plans, that of a preferred overlay is used, else the one of the lowest
// cost; nobody is asked once it cannot be beaten. With `contiguous`, inputs that are not contiguous
// will be copied first.
void ask_planners(DeviceContext& context, PlanEntry& entry, bool contiguous, Reasons& reasons);

}  // namespace tenon
