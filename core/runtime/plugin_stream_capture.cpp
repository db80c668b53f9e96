// The part of PluginStream that records and replays work.
#include <mutex>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/error.h>
#include <tenon/core/runtime/capture.h>
#include <tenon/core/runtime/check/graph.h>
#include <tenon/core/runtime/check/work.h>
#include <tenon/core/runtime/observe.h>
#include <tenon/core/runtime/plugin_stream.h>

namespace tenon {

void PluginStream::begin_capture(const plugins::CheckedCapture& api, Capture& capture) {
  std::unique_lock lock(mutex_);
  refuse_while_capturing("a stream graph cannot be captured");
  require_usable();
  wait_until_idle(lock);
  refuse_while_capturing("a stream graph cannot be captured");
  require_usable();
  require(api.begin(stream_), fmt::format("stream graph of {}: ", name_));
  capture_ = &capture;
  capturing_thread_.store(std::this_thread::get_id(), std::memory_order_release);
}

// A failure here makes the whole capture fail, so it is thrown at once.
uint64_t PluginStream::record(const Launch& l) {
  Capture* capture = own_capture();
  if (!capture) refuse((l.plan->describe(l.shape) + " cannot be queued").c_str());
  if (failures.any())
    if (auto f = poisoned_input(failures, l)) {
      f->seen = true;
      throw_failure(*f);
    }
  if (tn_error* e = observe::run_plan(l, current_path(), stream_)) {
    auto failure =
        take_failure(e, "",
                     fmt::format("\n  in {}, while it was captured into a stream graph{}",
                                 l.plan->describe(l.shape), path_suffix()));
    capture->failure = std::make_shared<const Failure>(std::move(failure));
    if (capture->failure->code == TN_CODE_DEVICE_LOST) failures.lose(capture->failure);
    throw_error(capture->failure->code, capture->failure->message);
  }
  capture->operators++;
  return next_ticket(nullptr, "recorded");
}

tn_error* PluginStream::end_capture(const plugins::CheckedCapture& api, tn_graph** graph) {
  std::lock_guard lock(mutex_);
  if (closed()) return nullptr;  // a fork inside the capture
  tn_error* error = api.end(stream_, graph);
  capturing_thread_.store(std::thread::id(), std::memory_order_release);
  capture_ = nullptr;
  completed_.store(submitted_);  // what was recorded is not in the queue
  return error;
}

tn_error* PluginStream::launch(const plugins::CheckedCapture& api, tn_graph* graph,
                               checked::GraphCheck* check) {
  if (!check) return api.launch(graph, stream_);
  const checked::Work work(api_.name(), "the replay of a stream graph on " + name_);
  if (tn_error* lost = check->before(stream_)) return lost;
  return check->after(api.launch(graph, stream_), stream_);
}

FailureLog::Pointer PluginStream::replay(const plugins::CheckedCapture& api, tn_graph* graph,
                                         uint64_t& ticket, checked::GraphCheck* check) {
  std::lock_guard lock(mutex_);
  refuse_while_capturing("a stream graph cannot be replayed");
  require_usable();
  ticket = next_ticket(nullptr, "replay of a stream graph");
  tn_error* error = launch(api, graph, check);
  if (!error) return nullptr;
  auto failure = failure_of(
      error, [&] { return std::pair(fmt::format("replay of a stream graph on {}: ", name_), ""); });
  failures.add_unseen(ticket, failure);
  return failure;
}

}  // namespace tenon
