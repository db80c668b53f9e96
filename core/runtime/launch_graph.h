// Launches that a device records once and then queues by one call, as long as they are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <tenon/core/runtime/stream.h>
#include <tenon/plugins/host/checked_extensions.h>

namespace tenon {

class PluginStream;

// Whether the plugin of a stream can record launches.
bool can_record(const DeviceStream& stream);

// A graph of a plugin (tn.stream_capture) for a part of a sequence of launches. It is recorded on a
// stream that runs nothing else, so nobody waits for the device and other threads go on. Pointers
// and numbers are those of the recording: whoever launches it sees to it that they are still right,
// that none of the memory was returned to the system since, and that plans live longer than this.
// One thread at a time uses it.
class LaunchGraph {
 public:
  // Why there is none. Without a text there is none at present: the device is lost, closed, or
  // captured by another thread.
  struct Refusal {
    std::string why;
    std::optional<size_t> launch;  // the one that alone cannot be recorded
  };
  // Records the launches from `first` up to `end` of a sequence that was prepared. Returns null,
  // and why, if that is not possible; nothing was queued in any case.
  static std::unique_ptr<LaunchGraph> record(DeviceStream& stream, const LaunchSequence& sequence,
                                             size_t first, size_t end, Refusal& refusal);
  // Waits for its last launch.
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph&) = delete;

  // Queues the launches, each of which gets a ticket. Returns false if nothing was queued, and why,
  // as in Refusal. Nothing is queued, either, if one of them reads what was never computed.
  bool launch(const LaunchSequence& sequence, std::string& why);
  // Whether the device is done with all of its launches. It waits for nothing.
  bool is_done() const;

 private:
  friend class PluginStream;
  LaunchGraph(PluginStream& stream, const plugins::CheckedCapture& api, size_t first, size_t end)
      : stream_(stream), api_(api), first_(first), end_(end) {}
  tn_error* record_all(const LaunchSequence& sequence, Refusal& refusal);
  bool reads_values(const LaunchSequence& sequence);
  void destroy();

  PluginStream& stream_;  // its lock protects the rest
  const plugins::CheckedCapture api_;
  const size_t first_, end_;
  tn_graph* graph_ = nullptr;  // null after the device was closed
  uint64_t last_ = 0;          // the ticket of the last launch
};

}  // namespace tenon
