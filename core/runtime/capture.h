// A recording while it is made, and the part of it that remains.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/runtime/failure.h>
#include <tenon/core/storage.h>
#include <tenon/core/tensor.h>
#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/host/checked_extensions.h>

namespace tenon {

class Allocator;
class DeviceContext;
class PluginStream;
struct TensorImpl;
namespace checked {
class GraphCheck;
}

// A recording in progress. Only the capturing thread uses it.
class Capture {
 public:
  Capture(Allocator& memory, std::string device, bool creates_plans)
      : device(std::move(device)), creates_plans(creates_plans), memory_(memory) {}

  // The allocator for everything that is allocated on the device during the capture.
  Allocator& memory() { return memory_; }
  // Notes the tensors of an operator that was recorded.
  void note(std::span<const Tensor* const> inputs, std::span<TensorImpl* const> outputs);

  const std::string device;
  const bool creates_plans;  // the plugin can make plans during a capture
  // Memory from before the capture that the recording uses, and whether the recording writes it.
  std::unordered_map<Storage*, std::pair<Ref<Storage>, bool>> outside;
  uint64_t operators = 0;
  FailureLog::Pointer failure;  // why an operator could not be recorded

 private:
  void touch(Storage& storage, bool written);
  Allocator& memory_;
};

// A finished recording. It keeps everything alive that it uses: the plans, its own memory, and
// tensors from before the capture.
class Recording {
 public:
  Recording(DeviceContext& context, const plugins::CheckedCapture& api, tn_graph* graph,
            Allocator& memory, const Capture& capture);
  ~Recording();
  Recording(const Recording&) = delete;

  void replay();
  // Waits for the last replay and destroys the graph. At exit this happens before the device is
  // closed; later replays are refused.
  void close();

  DeviceContext& context;
  const uint64_t operators;

 private:
  void poison_results(const FailureLog::Pointer& failure);

  PluginStream& stream_;
  const plugins::CheckedCapture api_;
  ForkMutex mutex_{ForkOrder::backends};
  tn_graph* graph_;
  Allocator& memory_;
  std::vector<Ref<Storage>> read_;  // from before the capture
  std::vector<Ref<Storage>>
      written_;  // of these, and of the recording's own memory, what outlived the capture
  uint64_t last_replay_ = 0;
  std::unique_ptr<checked::GraphCheck> check_;  // in checked mode
};

}  // namespace tenon
