// Streams are threads with a queue; events are counters that a queue raises; a graph is a list of
// tasks.
#include <algorithm>
#include <utility>

#include "sim.h"

using tenon::sdk::Error;
using tenon::sdk::guard;
using tenon::sim::Late;
using tenon::sim::Task;

tn_stream::tn_stream(tn_device* d) : device(d), worker_([this] { work(); }) {}

tn_stream::~tn_stream() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_one();
  worker_.join();
}

void tn_stream::push(Task task) {
  {
    std::lock_guard lock(mutex);
    if (capturing) return recorded.push_back(std::move(task));
    queue.push_back(std::move(task));
  }
  changed.notify_one();
}

void tn_stream::work() {
  for (;;) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stopping || !queue.empty(); });
    if (queue.empty()) return;
    auto task = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    task(error_);
  }
}

struct tn_graph : tenon::sim::Counted {
  tn_device* device;
  std::vector<Task> tasks;
};

namespace tenon::sim {

namespace {
std::mutex gate_mutex;
std::condition_variable gate_moved;
bool gate_shut = false;

void move_gate(bool shut) {
  {
    std::lock_guard lock(gate_mutex);
    gate_shut = shut;
  }
  gate_moved.notify_all();
}
}  // namespace

const Gate gate{[] { move_gate(true); }, [] { move_gate(false); }};

void pass_gate() {
  std::unique_lock lock(gate_mutex);
  gate_moved.wait(lock, [] { return !gate_shut; });
}

void require_working(const tn_device* device) {
  if (device->lost)
    throw Error(TN_CODE_DEVICE_LOST,
                "sim: device " + std::to_string(device->index) + " has fallen off the bus");
}

void require_not_capturing(const tn_stream* stream, const char* what) {
  if (stream->capturing)
    throw Error(TN_CODE_INVALID_ARGUMENT,
                std::string("sim: ") + what + " on a stream that captures");
}

tn_error* stream_create(tn_device* device, tn_stream** stream) {
  return guard([&] { *stream = new tn_stream(device); });
}
void stream_destroy(tn_stream* stream) { delete stream; }
tn_error* event_create(tn_device* device, tn_event** event) {
  return guard([&] { *event = new tn_event(device); });
}
void event_destroy(tn_event* event) { delete event; }

tn_error* event_record(tn_event* event, tn_stream* stream) {
  return guard([&] {
    require_not_capturing(stream, "an event");
    auto state = event->state;
    std::lock_guard lock(state->mutex);
    const uint64_t number = state->recorded + 1;
    stream->push([state, number](Late& error) {
      std::lock_guard lock(state->mutex);
      state->reached = std::max(state->reached, number);
      if (error.code) state->error = std::exchange(error, {});
      state->changed.notify_all();
    });
    state->recorded = number;  // once it is sure to be reached
    state->error = {};
  });
}

namespace {
tn_error* error_of(const tn_event* event) {
  if (event->device->lost) return guard([&] { require_working(event->device); });
  auto& e = event->state->error;
  if (!e.code) return nullptr;
  return guard([&] {
    throw sdk::Error(e.code, e.message, e.op.empty() ? sdk::Details() : sdk::Details{{"op", e.op}});
  });
}
}  // namespace

tn_error* event_wait(tn_event* event) {
  auto& state = event->state;
  std::unique_lock lock(state->mutex);
  state->changed.wait(lock, [&] { return state->reached == state->recorded; });
  return error_of(event);
}

tn_error* event_query(tn_event* event, int32_t* done) {
  auto& state = event->state;
  std::lock_guard lock(state->mutex);
  *done = state->reached == state->recorded;
  return *done ? error_of(event) : nullptr;
}

tn_error* stream_wait(tn_stream* stream, tn_event* event) {
  return guard([&] {
    require_not_capturing(stream, "a wait");
    auto state = event->state;
    uint64_t number;
    {
      std::lock_guard lock(state->mutex);
      number = state->recorded;
    }
    stream->push([state, number](Late&) {
      std::unique_lock lock(state->mutex);
      state->changed.wait(lock, [&] { return state->reached >= number; });
    });
  });
}

namespace {

tn_error* begin(tn_stream* stream) {
  return guard([&] {
    require_working(stream->device);
    require_not_capturing(stream, "a capture");
    std::lock_guard lock(stream->mutex);
    if (!stream->queue.empty())
      throw Error(TN_CODE_INVALID_ARGUMENT, "sim: a capture of a stream that is not idle");
    stream->capturing = true;
  });
}

tn_error* end(tn_stream* stream, tn_graph** graph) {
  return guard([&] {
    std::lock_guard lock(stream->mutex);
    if (!std::exchange(stream->capturing, false))
      throw Error(TN_CODE_INVALID_ARGUMENT, "sim: the stream does not capture");
    auto tasks = std::exchange(stream->recorded, {});
    auto error = std::exchange(stream->capture_error, {});
    if (!error.empty()) throw Error(TN_CODE_INTERNAL, error);
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
    if (graph->device != stream->device)
      throw Error(TN_CODE_INVALID_ARGUMENT, "sim: the graph is of another device");
    // A list of its own, as a driver makes one: this is what there may be no memory for.
    stream->push([tasks = graph->tasks](Late& error) {
      for (auto& task : tasks) task(error);
    });
    ++counters.graph_launches;
  });
}

}  // namespace

const tn_stream_capture stream_capture{
    sizeof(tn_stream_capture), begin, end, launch, [](tn_graph* graph) { delete graph; },
    TN_CAPTURE_CREATES_PLANS};

}  // namespace tenon::sim
