// The part of PluginStream that records launches apart from what it runs, and replays them.
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <tenon/core/runtime/launch_graph.h>
#include <tenon/core/runtime/observe.h>
#include <tenon/core/runtime/plugin_stream.h>
#include <tenon/core/runtime/retry_until_memory.h>

namespace tenon {

namespace {

// What a plugin says against it. Destroys the error.
void note(tn_error* error, std::string& why) {
  try {
    why = take_failure(error).message;
  } catch (const std::bad_alloc&) {
    why = "no memory";
  }
}

}  // namespace

bool can_record(const DeviceStream& stream) {
  auto* own = dynamic_cast<const PluginStream*>(&stream);
  return own && own->can_record();
}

bool PluginStream::can_record() const { return plugins::CheckedCapture::of(api_).has_value(); }

// Where a graph is not launched, its launches are, and they report what is wrong.
bool PluginStream::takes_graphs() const {
  return !closed() && !graphs_closed_ && !capturing() && !(failures.any() && failures.lost());
}

// Runs of one plan never overlap, and other threads run plans under the lock, so it is held
// meanwhile.
std::unique_ptr<LaunchGraph> LaunchGraph::record(DeviceStream& of, const LaunchSequence& sequence,
                                                 size_t first, size_t end, Refusal& refusal) {
  auto& stream = static_cast<PluginStream&>(of);
  const auto api = plugins::CheckedCapture::of(stream.api_);
  if (!api) return nullptr;
  std::unique_ptr<LaunchGraph> made(new LaunchGraph(stream, *api, first, end));
  std::lock_guard lock(stream.mutex_);
  if (!stream.takes_graphs()) return nullptr;
  stream.graphs_.push_back(made.get());
  if (tn_error* error = made->record_all(sequence, refusal)) note(error, refusal.why);
  return made->graph_ ? std::move(made) : nullptr;
}

// Ends the recording in every case.
tn_error* LaunchGraph::record_all(const LaunchSequence& sequence, Refusal& refusal) {
  tn_stream*& recorder = stream_.recorder_;
  if (!recorder)
    if (tn_error* error = stream_.api_.stream_create(stream_.device_, &recorder)) return error;
  if (tn_error* error = api_.begin(recorder)) return error;
  const auto launches = sequence.launches();
  tn_error* error = nullptr;
  for (size_t i = first_; i < end_ && !error; ++i) {
    const Launch& l = launches[i];
    tn_run args = l.args(recorder);
    const observe::PlanAtWork work(*l.plan, l.shape, sequence.path(i));
    error = l.plan->api->run(l.plan->plan, &args, &work);
    if (error) refusal.launch = i;
  }
  tn_error* at_end = api_.end(recorder, &graph_);
  if (!error) return at_end;
  // The first error names the launch.
  if (at_end) at_end->destroy(at_end);
  if (graph_) api_.destroy(std::exchange(graph_, nullptr));
  return error;
}

// While the stream is captured there is nothing to wait for: a capture begins when it is idle.
LaunchGraph::~LaunchGraph() {
  if (!is_done()) retry_until_memory([&] { stream_.wait(last_); });
  std::lock_guard lock(stream_.mutex_);
  std::erase(stream_.graphs_, this);
  if (!stream_.closed()) destroy();
}

void LaunchGraph::destroy() {
  if (graph_) api_.destroy(std::exchange(graph_, nullptr));
}

// Something on the device has failed: does what run_and_log() does for each launch then. Returns
// false if one of them reads what was never computed. Those before it can still run.
bool LaunchGraph::reads_values(const LaunchSequence& sequence) {
  FailureLog& failures = stream_.failures;
  const auto launches = sequence.launches();
  for (size_t i = first_; i < end_; ++i) {
    const Launch& l = launches[i];
    sequence.forget(failures, i);
    if (poisoned_input(failures, l)) return false;
    for (uint32_t k = 0; k < l.num_outputs; ++k)
      if (l.outputs[k]) failures.clear_poison(l.outputs[k], l.plan->written[k]);
  }
  return true;
}

bool LaunchGraph::launch(const LaunchSequence& sequence, std::string& why) {
  std::lock_guard lock(stream_.mutex_);
  if (!graph_ || !stream_.takes_graphs()) return false;
  if (stream_.failures.any() && !reads_values(sequence)) return false;
  if (tn_error* error = api_.launch(graph_, stream_.stream_)) return note(error, why), false;
  last_ = stream_.take_tickets(sequence, first_, end_);
  return true;
}

bool LaunchGraph::is_done() const { return stream_.reached(last_); }

// Each launch has its own, so that what the device reports late names the same operators as without
// a graph. Of more than the ring has room for, the first would not be in it.
uint64_t PluginStream::take_tickets(const LaunchSequence& sequence, size_t first, size_t end) {
  const auto launches = sequence.launches();
  if (end - first > ring_.size()) {
    const size_t unnamed = end - first - ring_.size();
    submitted_.store(submitted_.load(std::memory_order_relaxed) + unnamed,
                     std::memory_order_release);
    first += unnamed;
  }
  for (size_t i = first; i < end; ++i) {
    const ModulePath queued_by(sequence.path(i));
    next_ticket(&launches[i], nullptr);
  }
  return submitted_.load(std::memory_order_relaxed);
}

void PluginStream::close_graphs() {
  std::unique_lock lock(mutex_);
  if (closed()) return;
  graphs_closed_ = true;
  if (graphs_.empty()) return;
  wait_until_idle(lock);
  destroy_graphs();
}

void PluginStream::destroy_graphs() {
  for (auto* graph : graphs_) graph->destroy();
}

}  // namespace tenon
