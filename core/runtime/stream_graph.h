// The work of a device, recorded once and replayed with one call: for steps whose operators are
// many and small.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <tenon/core/device.h>

namespace tenon {

class Recording;

// Records what `body` queues on a device; `replay` queues all of it again, with the same memory,
// shapes and numbers. It queues and returns like any operator. A training step, captured whole:
//
//   Tensor x = zeros({256, 1, 28, 28}, {.device = "cuda:0"}), y = zeros({256}, {.dtype = i64,
//   .device = "cuda:0"}), loss; auto step = [&] {
//     optimizer.zero_grad();              // first: gradients are then made anew in the graph's own
//     memory loss = cross_entropy(model(x), y); loss.backward(); optimizer.step();
//   };
//   step();                               // once as usual: makes the optimizer's state and the
//   plans auto graph = StreamGraph::capture("cuda:0", step); for (auto& [images, labels] : batches)
//   {
//     x.copy_(images);                    // before each replay, new values into the same tensors
//     y.copy_(labels);
//     graph.replay();
//   }                                     // `loss` and the gradients hold the last replay's values
//
// Memory. What is allocated on the device while capturing is private to the graph: blocks that are
// freed inside may be used again inside, never outside. Tensors that outlive the body (`loss`,
// gradients) stay valid, even longer than the graph; each replay overwrites them, and before the
// first one reading them is a ValueError. Tensors from before that the body uses are kept alive.
//
// Numbers. Scalars are part of the recording: learning rate, Adam's step count, the seed of dropout
// are those of the capture in every replay. So are the decisions of C++ code: the body runs once,
// when it is captured, and changes the state of this program then (an optimizer counts a step),
// though nothing of it is computed.
//
// Versions. Each replay raises the version of every tensor that it writes, as a mutator would:
// autograd refuses to use values that it saved before, and replicas are refreshed.
//
// Not possible in the body, each an error that says so and leaves the capture as it was: reading a
// value, copies to or from the host and other devices, waiting, for this device or for another.
// Meanwhile other threads can queue nothing on the device. What the body throws ends the capture
// and comes out of it; the device works on.
class TENON_API StreamGraph {
 public:
  // Waits for all devices first. UnsupportedError where the device's plugin does not offer it;
  // DeviceError where an operator cannot be recorded.
  static StreamGraph capture(Device device, const std::function<void()>& body);
  StreamGraph(StreamGraph&&) noexcept;
  StreamGraph& operator=(StreamGraph&&) noexcept;
  ~StreamGraph();

  // From any thread, one at a time in the order of the calls. Late errors reach the next wait, as
  // with any operator.
  void replay();
  Device device() const;
  uint64_t num_operators() const;

 private:
  explicit StreamGraph(std::unique_ptr<Recording> recording);
  Recording& recording() const;
  std::unique_ptr<Recording> recording_;
};

}  // namespace tenon
