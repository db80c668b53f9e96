// What the opaque handles of the ABI stand for in `sim`.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tenon/plugins/sdk/sdk.h>
#include <tenon/plugins/sdk/streams.h>

#include "faults.h"

namespace tenon::sim {

using Task = sdk::ThreadStream::Task;

bool is_device_memory(const void* p, uint64_t bytes);

extern const Gate gate;
void pass_gate();  // waits while it is shut

extern const tn_collectives collectives;
extern const tn_stream_capture stream_capture;

struct LiveCounters {
  std::atomic<uint64_t> joint_launches{0}, joint_calls{0}, copies{0}, graph_launches{0}, objects{0},
      blocking_copies{0}, allocations{0};
};
extern LiveCounters counters;

// Counts the objects of a kind that live.
struct Counted {
  Counted() { ++counters.objects; }
  ~Counted() { --counters.objects; }
  Counted(const Counted&) = delete;
};

}  // namespace tenon::sim

struct tn_device {
  uint32_t index;
  tn_device* cpu;
  std::atomic<bool> lost{false};
};

struct tn_event : tenon::sdk::ThreadEvent, tenon::sim::Counted {
  explicit tn_event(tn_device* device) : device(device) {}
  tn_device* const device;
};

struct tn_stream : tenon::sdk::ThreadStream, tenon::sim::Counted {
  explicit tn_stream(tn_device* device) : device(device) {}
  // Queues work, or records it while a graph is captured.
  void push(tenon::sim::Task task) {
    capturing ? recorded.push_back(std::move(task)) : ThreadStream::push(std::move(task));
  }

  tn_device* const device;
  bool capturing = false;
  std::string capture_error;
  std::vector<tenon::sim::Task> recorded;
};

namespace tenon::sim {

void require_working(const tn_device* device);
void require_not_capturing(const tn_stream* stream, const char* what);

// The SDK's streams and events, which refuse what a capture does not allow and know of lost
// devices.
void fill_streams(tn_backend_api& table);

}  // namespace tenon::sim
