// Work that a plugin has prepared and that a stream can run any number of times. This is all that
// streams know about an operator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/core/device.h>
#include <tenon/core/dtype.h>
#include <tenon/core/runtime/poison_map.h>
#include <tenon/core/shape.h>
#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/host/checked_api.h>

namespace tenon {

class DeviceContext;

struct PreparedPlan {
  tn_plan* plan = nullptr;
  Device device;
  DeviceContext* context = nullptr;          // of that device
  const plugins::CheckedApi* api = nullptr;  // of the plugin that made it
  uint64_t cost_ns = 0;
  uint64_t workspace_bytes = 0;
  bool wants_versions = false;  // of its inputs, with each run
  bool flattened = false;       // made for a number of elements; each call gives their shape
  std::vector<Footprint> read, written;  // the bytes of inputs and outputs that the plan uses
  std::vector<DType> read_types, written_types;  // undefined where they are absent
  std::vector<bool> in_place;  // true for an output that is an input changed in place

  // The names in error texts: "conv2d", and "conv2d: (1, 3, 8, 8), (4, 3, 3, 3) on cpu:0". `shape`
  // is that of the call if the plan is flattened.
  virtual const char* name() const = 0;
  virtual std::string describe(const Shape* shape = nullptr) const = 0;
  // The types and shapes of inputs and outputs, "f32 (1, 3, 8, 8), f32 (4, 3, 3, 3) -> f32 (1, 4,
  // 6, 6)". What is absent is left out.
  virtual std::string signature(const Shape* shape = nullptr) const = 0;

 protected:
  ~PreparedPlan() = default;
};

// The plans of one device. A recording runs plans that are not looked up again, so while the store
// is pinned, none of them is destroyed.
class PlanStore {
 public:
  virtual ~PlanStore() = default;
  virtual void pin() = 0;
  virtual void unpin() = 0;
};
// Defined in core/dispatch, where plans are made.
std::unique_ptr<PlanStore> make_plan_store(DeviceContext& context);

}  // namespace tenon
