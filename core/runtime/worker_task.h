// What waits in the queue of a worker stream (core/runtime/worker_stream.cpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>

#include <tenon/core/runtime/profile_log.h>
#include <tenon/core/runtime/stream.h>
#include <tenon/core/shape.h>

namespace tenon {

struct WorkerTask {
  enum Kind : uint8_t { run, sequence, copy, wait_for, take_over, forget, stop } kind = run;
  bool outputs_hold_values = false;
  bool has_versions = false;
  bool spoils_in_place = false;
  uint32_t num_inputs = 0, num_outputs = 0, num_scalars = 0;
  const PreparedPlan* plan = nullptr;
  const PathNode* path = nullptr;
  void* workspace = nullptr;
  LaunchSequence* launches = nullptr;  // of a sequence
  DeviceStream* other = nullptr;       // the arguments of wait_for and take_over
  uint64_t other_ticket = 0;
  const void* memory = nullptr;
  uint64_t bytes = 0;
  int64_t queued_ns = 0;
  uint64_t cost_ns = 0;  // as the plan's; 0 if unknown
  static constexpr uint32_t kPointersInPlace = 10, kScalarsInPlace = 6, kVersionsInPlace = 3;
  void* pointers[kPointersInPlace];
  tn_scalar scalars[kScalarsInPlace];
  uint64_t versions[kVersionsInPlace];  // of the inputs, if the plan wants them
  Shape shape;                          // if the plan is flattened
  // For more pointers, scalars or versions, as optimizers have them; the worker frees it. It also
  // holds a CopyTask.
  std::unique_ptr<std::byte[]> heap;

  // Keeps what is to be run, with pointers and numbers.
  void fill(const Launch& l) {
    kind = run;
    plan = l.plan;
    cost_ns = l.plan->cost_ns;
    path = current_path();
    workspace = l.workspace;
    outputs_hold_values = l.outputs_hold_values;
    spoils_in_place = l.spoils_in_place;
    queued_ns = profiling::queued_now();
    if (l.shape) shape = *l.shape;
    num_inputs = l.num_inputs;
    num_outputs = l.num_outputs;
    num_scalars = l.num_scalars;
    has_versions = l.input_versions != nullptr;
    if (!fits_in_place()) heap.reset(new std::byte[bytes_on_heap()]);
    const Arguments to = arguments();
    std::copy_n(l.inputs, l.num_inputs, to.pointers);
    std::copy_n(l.outputs, l.num_outputs, to.pointers + l.num_inputs);
    std::copy_n(l.scalars, l.num_scalars, to.scalars);
    if (has_versions) std::copy_n(l.input_versions, num_versions(), to.versions);
  }

  // What `fill` was given; it points into this task.
  Launch launch() {
    const Arguments from = arguments();
    return {plan,
            from.pointers,
            num_inputs,
            from.pointers + num_inputs,
            num_outputs,
            from.scalars,
            num_scalars,
            workspace,
            outputs_hold_values,
            plan->flattened ? &shape : nullptr,
            has_versions ? from.versions : nullptr,
            queued_ns,
            spoils_in_place};
  }

  // A device that has no memory for an event is asked again, because the worker can neither throw
  // nor continue.
  void wait_for_other() const {
    for (;;) {
      try {
        return other->wait(other_ticket);
      } catch (const std::bad_alloc&) {
        std::this_thread::yield();
      }
    }
  }

 private:
  struct Arguments {
    void** pointers;
    tn_scalar* scalars;
    uint64_t* versions;
  };
  size_t num_pointers() const { return num_inputs + num_outputs; }
  size_t num_versions() const { return has_versions ? num_inputs : 0; }
  bool fits_in_place() const {
    return num_pointers() <= kPointersInPlace && num_scalars <= kScalarsInPlace &&
           num_versions() <= kVersionsInPlace;
  }
  size_t bytes_on_heap() const {
    return num_pointers() * sizeof(void*) + num_scalars * sizeof(tn_scalar) +
           num_versions() * sizeof(uint64_t);
  }
  Arguments arguments() {
    if (!heap) return {pointers, scalars, versions};
    const auto p = reinterpret_cast<void**>(heap.get());
    const auto s = reinterpret_cast<tn_scalar*>(p + num_pointers());
    return {p, s, reinterpret_cast<uint64_t*>(s + num_scalars)};
  }
};

}  // namespace tenon
