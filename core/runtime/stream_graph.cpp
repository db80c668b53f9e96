#include <fmt/core.h>

#include <tenon/core/base/recording.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/capture.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/plugin_stream.h>
#include <tenon/core/runtime/stream_graph.h>

namespace tenon {

namespace {

plugins::CheckedCapture capture_of(const DeviceContext& context) {
  const auto api = plugins::CheckedCapture::of(context.backend.api());
  if (!api || !dynamic_cast<PluginStream*>(context.stream.get()))
    throw UnsupportedError(
        fmt::format("StreamGraph: {} cannot record its work: the plugin \"{}\" does not "
                    "offer " TN_EXT_STREAM_CAPTURE "; run the work itself instead",
                    context.device, context.backend.name()));
  return *api;
}

// Waits, because tensors that the body changes in place may still be in use on other devices, and
// nothing can be waited for during the capture.
void wait_for_all_devices() {
  for (auto* c : open_contexts())
    for (auto* stream : c->streams())
      if (!stream->capturing()) stream->wait(stream->last());
}

// Ends the recording in every case. Returns null if there is nothing to replay.
tn_graph* end(PluginStream& stream, const plugins::CheckedCapture& api, const Capture& capture) {
  tn_graph* graph = nullptr;
  tn_error* error = stream.end_capture(api, &graph);
  if (capture.failure) {
    // Where there are two errors, only this one names the operator.
    if (error) error->destroy(error);
    if (graph) api.destroy(graph);
    throw_failure(*capture.failure);
  }
  stream.require(error, fmt::format("StreamGraph: {}: ", capture.device));
  return graph;
}

// Poisons the tensors of a capture that failed.
void give_up(PluginStream& stream, Allocator& memory, Device device) {
  auto failure = std::make_shared<const Failure>(Failure{
      TN_CODE_INVALID_ARGUMENT,
      fmt::format("this tensor was made during the capture of a stream graph of {}, which failed",
                  device)});
  for (auto& s : memory.live_storages()) stream.failures.poison(s->data, s->bytes, failure);
  memory.release();
}

}  // namespace

StreamGraph StreamGraph::capture(Device device, const std::function<void()>& body) {
  recording::refuse("a stream graph is captured");
  auto& context = context_of(device);
  const auto api = capture_of(context);
  auto& stream = static_cast<PluginStream&>(*context.stream);
  stream.refuse_while_capturing("a stream graph cannot be captured");
  wait_for_all_devices();
  // From the first recorded call on, no plan may be destroyed that the recording runs. A finished
  // recording pins the plans itself.
  struct Pin {
    PlanStore& plans;
    explicit Pin(PlanStore& plans) : plans(plans) { plans.pin(); }
    ~Pin() { plans.unpin(); }
  } pin(*context.plans);
  auto& memory = *Allocator::make_private(*context.memory);
  Capture capture(memory, device.str(), api.flags() & TN_CAPTURE_CREATES_PLANS);
  try {
    stream.begin_capture(api, capture);
  } catch (...) {
    memory.release();
    throw;
  }
  try {
    body();
  } catch (...) {
    tn_graph* graph = nullptr;
    if (tn_error* error = stream.end_capture(api, &graph)) error->destroy(error);
    if (graph) api.destroy(graph);
    give_up(stream, memory, device);
    throw;
  }
  try {
    tn_graph* graph = end(stream, api, capture);
    return StreamGraph(std::make_unique<Recording>(context, api, graph, memory, capture));
  } catch (...) {
    give_up(stream, memory, device);
    throw;
  }
}

StreamGraph::StreamGraph(std::unique_ptr<Recording> recording) : recording_(std::move(recording)) {}
StreamGraph::StreamGraph(StreamGraph&&) noexcept = default;
StreamGraph& StreamGraph::operator=(StreamGraph&&) noexcept = default;
StreamGraph::~StreamGraph() = default;

Recording& StreamGraph::recording() const {
  if (!recording_) throw ValueError("StreamGraph: this object was moved from");
  return *recording_;
}
void StreamGraph::replay() {
  recording::refuse("a stream graph is replayed");
  recording().replay();
}
Device StreamGraph::device() const { return recording().context.device; }
uint64_t StreamGraph::num_operators() const { return recording().operators; }

}  // namespace tenon
