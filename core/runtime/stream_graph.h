// Records the work of a device once and replays it with one call. This helps if a step has many
// small operators.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <tenon/core/device.h>

namespace tenon {

class Recording;

// Records what `body` queues on a device. `replay` queues all of it again, with the same memory,
// shapes and numbers, and returns at once like any operator. To capture a whole training step:
//
//   Tensor x = zeros({256, 1, 28, 28}, {.device = "cuda:0"});
//   Tensor y = zeros({256}, {.dtype = i64, .device = "cuda:0"}), loss;
//   auto step = [&] {
//     optimizer.zero_grad();  // first, so that the gradients are made in the memory of the graph
//     loss = cross_entropy(model(x), y);
//     loss.backward();
//     optimizer.step();
//   };
//   step();  // runs once as usual, which makes the plans and the state of the optimizer
//   auto graph = StreamGraph::capture("cuda:0", step);
//   for (auto& [images, labels] : batches) {
//     x.copy_(images);  // writes new values into the same tensors before each replay
//     y.copy_(labels);
//     graph.replay();
//   }  // now `loss` and the gradients have the values of the last replay
//
// Memory. Memory that is allocated on the device during the capture belongs to the graph: blocks
// that are freed in the body may be reused in the body, but nowhere else. Tensors that outlive the
// body (`loss`, gradients) stay valid, even longer than the graph. Each replay overwrites them, and
// reading them before the first replay is a ValueError. Older tensors that the body uses are kept
// alive.
//
// Numbers. Scalars are part of the recording: the learning rate, the step count of Adam and the
// seed of dropout are the same in every replay. So are the decisions of C++ code: the body runs
// once, during the capture. It then changes the state of the program, for example the step count of
// an optimizer, although nothing is computed.
//
// Versions. Like a mutator, each replay increments the version of every tensor that it writes:
// autograd refuses to use values that it saved before, and replicas are refreshed.
//
// Not possible in the body are reading a value, copies to or from the host and other devices, and
// waiting for any device. Each is an error that says so and does not affect the capture. During the
// capture, other threads cannot queue work on the device. An exception of the body ends the capture
// and is thrown by it; the device can be used afterwards.
class TENON_API StreamGraph {
 public:
  // Waits for all devices, calls `body` and returns the graph of what it queued on `device`. Throws
  // an UnsupportedError if the plugin of the device does not offer this, a DeviceError if an
  // operator cannot be recorded, and what `body` throws.
  static StreamGraph capture(Device device, const std::function<void()>& body);
  StreamGraph(StreamGraph&&) noexcept;
  StreamGraph& operator=(StreamGraph&&) noexcept;
  ~StreamGraph();

  // Queues the recorded work again. Any thread may call this; replays run in the order of the
  // calls. Late errors are thrown by the next wait, as for any operator. Throws a ValueError if the
  // graph was moved from.
  void replay();
  // Returns the device whose work was recorded.
  Device device() const;
  // Returns how many operators were recorded.
  uint64_t num_operators() const;

 private:
  explicit StreamGraph(std::unique_ptr<Recording> recording);
  Recording& recording() const;
  std::unique_ptr<Recording> recording_;
};

}  // namespace tenon
