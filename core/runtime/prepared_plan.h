// Work that a plugin has prepared and a stream can run any number of times. Streams know nothing
// more of an operator than this.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/core/runtime/poison_map.h>
#include <tenon/core/shape.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

class DeviceContext;

struct PreparedPlan {
  tn_plan* plan = nullptr;
  uint64_t cost_ns = 0;
  uint64_t workspace_bytes = 0;
  bool flattened = false;  // made for a number of elements: each call says what shape they have
  std::vector<Footprint> read, written;  // of inputs and outputs, as the plan addresses them
  std::vector<bool> in_place;            // whether an output is an input that is changed

  // What error texts call it: "conv2d" and "conv2d: (1, 3, 8, 8), (4, 3, 3, 3) on cpu:0". `shape`
  // is the call's where the plan is flattened.
  virtual const char* name() const = 0;
  virtual std::string describe(const Shape* shape = nullptr) const = 0;

 protected:
  ~PreparedPlan() = default;
};

// The plans of one device. A recording runs plans that nobody looks up any more: while the store is
// pinned, none of them ends.
class PlanStore {
 public:
  virtual ~PlanStore() = default;
  virtual void pin() = 0;
  virtual void unpin() = 0;
};
// Defined where plans are made, in core/dispatch.
std::unique_ptr<PlanStore> make_plan_store(DeviceContext& context);

}  // namespace tenon
