// What `sim` adds to the SDK's streams: a gate, devices that are lost, and recordings, which are
// lists of tasks.
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "sim.h"

using tenon::sdk::Error;
using tenon::sdk::guard;
using tenon::sim::Task;

struct tn_graph : tenon::sim::Counted {
  tn_device* device;
  std::vector<Task> tasks;
};

namespace tenon::sim {

namespace {
std::mutex gate_mutex;
std::condition_variable gate_moved;
bool gate_shut = false;
int waiting = 0;

void move_gate(bool shut) {
  {
    std::lock_guard lock(gate_mutex);
    gate_shut = shut;
  }
  gate_moved.notify_all();
}
}  // namespace

const Gate gate{[] { move_gate(true); }, [] { move_gate(false); },
                [] {
                  std::lock_guard lock(gate_mutex);
                  return waiting;
                }};

void pass_gate() {
  std::unique_lock lock(gate_mutex);
  ++waiting;
  gate_moved.wait(lock, [] { return !gate_shut; });
  --waiting;
}

void require_working(const tn_device* device) {
  if (device->lost)
    throw Error(TN_CODE_DEVICE_LOST,
                "device " + std::to_string(device->index) + " has fallen off the bus");
}

void require_not_capturing(const tn_stream* stream, const char* what) {
  if (stream->capturing)
    throw Error(TN_CODE_INVALID_ARGUMENT, std::string(what) + " on a stream that captures");
}

namespace {

tn_error* event_record(tn_event* event, tn_stream* stream) {
  return guard([&] {
    require_not_capturing(stream, "an event");
    event->record(*stream);
  });
}

tn_error* stream_wait(tn_stream* stream, tn_event* event) {
  return guard([&] {
    require_not_capturing(stream, "a wait");
    if (std::getenv("TENON_SIM_NO_WAIT")) throw Error(TN_CODE_INTERNAL, "TENON_SIM_NO_WAIT is set");
    event->delay(*stream);
  });
}

// The error of an event that is reached: that of its device, if that is lost.
tn_error* report(const tn_event* event, tn_error* error) {
  if (!event->device->lost) return error;
  if (error) error->destroy(error);
  return guard([&] { require_working(event->device); });
}

tn_error* event_query(tn_event* event, int32_t* done) {
  tn_error* error = nullptr;
  *done = event->query(error);
  return *done ? report(event, error) : nullptr;
}

tn_error* event_wait(tn_event* event) { return report(event, event->wait()); }

}  // namespace

void fill_streams(tn_backend_api& table) {
  sdk::fill_streams(table);
  table.event_record = event_record;
  table.stream_wait = stream_wait;
  table.event_query = event_query;
  table.event_wait = event_wait;
}

namespace {

// TENON_SIM_NO_GRAPHS names the function that has no memory for them.
void require_graphs(std::string_view function) {
  const char* refused = std::getenv("TENON_SIM_NO_GRAPHS");
  if (refused && function == refused)
    throw Error(TN_CODE_OUT_OF_MEMORY, "TENON_SIM_NO_GRAPHS is " + std::string(function));
}

tn_error* begin(tn_stream* stream) {
  return guard([&] {
    require_graphs("begin");
    require_working(stream->device);
    require_not_capturing(stream, "a capture");
    if (stream->has_queued())
      throw Error(TN_CODE_INVALID_ARGUMENT, "a capture of a stream that is not idle");
    stream->capturing = true;
  });
}

tn_error* end(tn_stream* stream, tn_graph** graph) {
  return guard([&] {
    if (!std::exchange(stream->capturing, false))
      throw Error(TN_CODE_INVALID_ARGUMENT, "the stream does not capture");
    auto tasks = std::exchange(stream->recorded, {});
    auto error = std::exchange(stream->capture_error, {});
    if (!error.empty()) throw Error(TN_CODE_INTERNAL, error);
    require_graphs("end");
    auto made = std::make_unique<tn_graph>();
    made->device = stream->device;
    made->tasks = std::move(tasks);
    *graph = made.release();
  });
}

tn_error* launch(tn_graph* graph, tn_stream* stream) {
  return guard([&] {
    require_working(stream->device);
    require_not_capturing(stream, "a graph");
    require_graphs("launch");
    if (graph->device != stream->device)
      throw Error(TN_CODE_INVALID_ARGUMENT, "the graph is of another device");
    // A list of its own, as a driver makes one: this is what there may be no memory for.
    stream->push([stream, tasks = graph->tasks] {
      for (auto& task : tasks) stream->error().attempt(task);
    });
    ++counters.graph_launches;
  });
}

}  // namespace

const tn_stream_capture stream_capture{
    sizeof(tn_stream_capture), begin, end, launch, [](tn_graph* graph) { delete graph; },
    TN_CAPTURE_CREATES_PLANS};

}  // namespace tenon::sim
