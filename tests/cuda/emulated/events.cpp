// The CUDA runtime's functions about streams, events and graphs. With
// TENON_EMULATED_REFUSE_GRAPHS=instantiate, or launch, there is no memory for that.
#include <cstdlib>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include "calls.h"
#include "counters.h"
#include "scheduler.h"

extern "C" {
extern tenon::emulated::CudaCounters tenon_emulated_cuda_counters;
}

using namespace tenon::emulated;

struct CUevent_st {
  int device;
  bool timed;
  Readable reached;  // of the last record; null before the first
  std::shared_ptr<const Time> time;
  std::weak_ptr<Capture> capture;
  std::vector<size_t> after;  // in the capture
};
struct CUgraph_st {
  std::shared_ptr<const Nodes> nodes;
};
struct CUgraphExec_st {
  std::shared_ptr<const Nodes> nodes;
  Readable last_launch;
};

namespace {

auto& events = *new std::set<CUevent_st*>;

template <class F>
cudaError_t with_event(cudaEvent_t event, F&& f) {
  std::lock_guard guard(lock());
  start(current_device);
  if (lost) return answer(cudaErrorIllegalAddress);
  if (!events.contains(event)) return answer(cudaErrorInvalidResourceHandle);
  if (auto code = refused_by_capture(event->capture.lock(), cudaErrorCapturedEvent);
      code != cudaSuccess)
    return answer(code);
  return answer(f(event));
}

bool refuses_to(std::string_view what) {
  const char* refused = std::getenv("TENON_EMULATED_REFUSE_GRAPHS");
  return refused && what == refused;
}

}  // namespace

extern "C" {

// Makes only streams that do not join the default one, because the default stream has an order of
// its own here.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  std::lock_guard guard(lock());
  if (flags != cudaStreamNonBlocking) return answer(cudaErrorNotSupported);
  start(current_device);
  return *stream = make_stream(current_device), cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  std::lock_guard guard(lock());
  start(current_device);
  Stream* stream = handle ? find_stream(handle, 0) : nullptr;
  if (!stream) return answer(cudaErrorInvalidResourceHandle);
  return destroy_stream(stream), cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return with_stream(handle, [&](Stream* stream) {
    if (stream->capture)
      return refused_by_capture(stream->capture, cudaErrorStreamCaptureUnsupported);
    auto reached = std::make_shared<bool>(false);
    queue_flag(stream, reached);
    run_until([&] { return *reached; });
    return lost ? cudaErrorIllegalAddress : cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return with_stream(handle, [&](Stream* stream) {
    if (stream->capture)
      return refused_by_capture(stream->capture, cudaErrorStreamCaptureUnsupported);
    run_a_little();
    if (lost) return cudaErrorIllegalAddress;
    return stream->operations.empty() ? cudaSuccess : cudaErrorNotReady;
  });
}

// By waiting for an event of a capture a stream joins it; a captured stream waits for nothing
// outside.
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  return with_stream(handle, [&](Stream* stream) {
    if (!events.contains(event)) return cudaErrorInvalidResourceHandle;
    const auto capture = event->capture.lock();
    if (!capture) {
      if (stream->capture && event->reached)
        return refused_by_capture(stream->capture, cudaErrorStreamCaptureIsolation);
      if (event->reached) queue_wait(stream, event->reached);
      return cudaSuccess;
    }
    if (stream->capture && stream->capture != capture) {
      refused_by_capture(stream->capture, cudaSuccess);
      return refused_by_capture(capture, cudaErrorStreamCaptureMerge);
    }
    if (!stream->capture) stream->last.clear();
    stream->capture = capture;
    stream->last.insert(stream->last.end(), event->after.begin(), event->after.end());
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  std::lock_guard guard(lock());
  start(current_device);
  *event = new CUevent_st{
      current_device, (flags & cudaEventDisableTiming) == 0, nullptr, nullptr, {}, {}};
  events.insert(*event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::lock_guard guard(lock());
  start(current_device);
  if (events.erase(event) == 0) return answer(cudaErrorInvalidResourceHandle);
  return delete event, cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  return with_stream(handle, [&](Stream* stream) {
    if (!events.contains(event) || event->device != stream->device)
      return cudaErrorInvalidResourceHandle;
    event->capture = stream->capture;
    event->after = stream->last;
    if (stream->capture) return cudaSuccess;
    auto reached = std::make_shared<bool>(false);
    auto time = event->timed ? std::make_shared<Time>() : nullptr;
    queue_flag(stream, reached, time);
    event->reached = reached;
    event->time = time;
    return cudaSuccess;
  });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  std::lock_guard guard(lock());
  start(current_device);
  for (auto* event : {begin, end}) {
    if (!events.contains(event) || !event->time || event->device != begin->device)
      return answer(cudaErrorInvalidResourceHandle);
    if (!*event->reached) return answer(cudaErrorNotReady);
  }
  *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return with_event(handle, [](cudaEvent_t event) {
    if (event->reached && !*event->reached) run_a_little();
    if (lost) return cudaErrorIllegalAddress;
    return !event->reached || *event->reached ? cudaSuccess : cudaErrorNotReady;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return with_event(handle, [](cudaEvent_t event) {
    const Readable reached = event->reached;
    run_until([&] { return !reached || *reached; });
    return lost ? cudaErrorIllegalAddress : cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return with_stream(handle, [&](Stream* stream) { return begin_capture(stream, mode); });
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  *graph = nullptr;
  return with_stream(handle, [&](Stream* stream) {
    Nodes nodes;
    const cudaError_t code = end_capture(stream, nodes);
    if (code == cudaSuccess)
      *graph = new CUgraph_st{std::make_shared<const Nodes>(std::move(nodes))};
    return code;
  });
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long) {
  if (refuses_to("instantiate")) return answer(cudaErrorMemoryAllocation);
  return *exec = new CUgraphExec_st{graph->nodes, nullptr}, cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  return with_stream(handle, [&](Stream* stream) {
    if (stream->capture)
      return refused_by_capture(stream->capture, cudaErrorStreamCaptureUnsupported);
    if (refuses_to("launch")) return cudaErrorMemoryAllocation;
    ++tenon_emulated_cuda_counters.graph_launches;
    auto done = std::make_shared<bool>(false);
    queue_graph(stream, exec->nodes, std::exchange(exec->last_launch, done), done);
    return cudaSuccess;
  });
}
// What of its launches has not run yet still does.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return delete exec, cudaSuccess; }

}  // extern "C"
