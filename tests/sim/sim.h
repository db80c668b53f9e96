// What the opaque handles of the ABI stand for in `sim`.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <tenon/plugins/sdk/sdk.h>

#include "faults.h"

namespace tenon::sim {

// An error that shows when the work runs.
struct Late {
  tn_code code = 0;  // 0: none
  std::string message, op;
};
using Task = std::function<void(Late&)>;

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

struct tn_event : tenon::sim::Counted {
  explicit tn_event(tn_device* device) : device(device) {}
  tn_device* device;
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t recorded = 0, reached = 0;  // how often
    tenon::sim::Late error;
  };
  // What is queued keeps it: an event may be destroyed before it is reached.
  const std::shared_ptr<State> state = std::make_shared<State>();
};

struct tn_stream : tenon::sim::Counted {
  explicit tn_stream(tn_device* device);
  ~tn_stream();
  // Queues work, or records it while a graph is captured.
  void push(tenon::sim::Task task);

  tn_device* const device;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<tenon::sim::Task> queue;
  bool stopping = false;
  bool capturing = false;
  std::string capture_error;
  std::vector<tenon::sim::Task> recorded;

 private:
  void work();
  tenon::sim::Late error_;  // of work since the last event; only the worker touches it
  std::thread worker_;
};

namespace tenon::sim {

void require_working(const tn_device* device);
void require_not_capturing(const tn_stream* stream, const char* what);

tn_error* stream_create(tn_device* device, tn_stream** stream);
void stream_destroy(tn_stream* stream);
tn_error* event_create(tn_device* device, tn_event** event);
void event_destroy(tn_event* event);
tn_error* event_record(tn_event* event, tn_stream* stream);
tn_error* stream_wait(tn_stream* stream, tn_event* event);
tn_error* event_query(tn_event* event, int32_t* done);
tn_error* event_wait(tn_event* event);

}  // namespace tenon::sim
