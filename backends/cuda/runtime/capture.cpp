// The extension tn.stream_capture: a stream's work as a CUDA graph.
#include <memory>
#include <new>
#include <string>

#include "runtime/check.h"
#include "runtime/device.h"
#include "runtime/runtime.h"

struct tn_graph {
  tn_device* device;
  cudaGraphExec_t exec;
  std::shared_ptr<tenon::cuda::PinnedFault> faults;  // where its kernels file
  std::weak_ptr<tenon::cuda::FaultList> listed;      // of the stream it was last launched on
};

namespace tenon::cuda {

void refuse_while_capturing(const tn_stream* stream, const char* what) {
  if (stream->capturing)
    throw sdk::Error(TN_CODE_INVALID_ARGUMENT,
                     std::string(what) + " cannot be part of a captured stream's work");
}

namespace {

tn_error* begin(tn_stream* stream) {
  return sdk::guard([&] {
    CurrentDevice current(stream->device);
    if (stream->capturing)
      throw sdk::Error(TN_CODE_INVALID_ARGUMENT, "this stream is being captured already");
    auto faults = std::make_shared<PinnedFault>();
    // Relaxed: the stricter modes would forbid other threads, the user's own among them, to
    // allocate.
    // `capturing` is true before the capture begins and until it has ended, because a drain must
    // not wait for a stream that is being captured.
    stream->capturing = true;
    const cudaError_t code = cudaStreamBeginCapture(stream->handle, cudaStreamCaptureModeRelaxed);
    if (code != cudaSuccess) stream->capturing = false;
    check(code, "cudaStreamBeginCapture");
    stream->captured_faults = std::move(faults);
    stream->fault = stream->captured_faults->get();
  });
}

// Ends the capture in every case, so that the stream runs again.
tn_error* end(tn_stream* stream, tn_graph** out) {
  return sdk::guard([&] {
    CurrentDevice current(stream->device);
    if (!stream->capturing)
      throw sdk::Error(TN_CODE_INVALID_ARGUMENT, "this stream is not being captured");
    stream->fault = stream->faults->own();
    auto faults = std::move(stream->captured_faults);
    cudaGraph_t graph = nullptr;
    cudaError_t code = cudaStreamEndCapture(stream->handle, &graph);
    stream->capturing = false;
    check(code, "cudaStreamEndCapture");
    std::unique_ptr<tn_graph> made(new (std::nothrow)
                                       tn_graph{stream->device, nullptr, std::move(faults), {}});
    if (made) code = cudaGraphInstantiateWithFlags(&made->exec, graph, 0);
    cudaGraphDestroy(graph);
    if (!made) throw std::bad_alloc();
    check(code, "cudaGraphInstantiate");
    // The first launch moves the graph to the device. An upload here would be work of this stream,
    // and CUDA does not say that a launch on another one waits for it.
    *out = made.release();
  });
}

tn_error* launch_graph(tn_graph* graph, tn_stream* stream) {
  return sdk::guard([&] {
    CurrentDevice current(graph->device);
    refuse_while_capturing(stream, "the launch of a graph");
    if (graph->listed.lock() != stream->faults) {
      stream->faults->add_graph(graph->faults);
      graph->listed = stream->faults;
    }
    check(cudaGraphLaunch(graph->exec, stream->handle), "cudaGraphLaunch");
  });
}

void destroy(tn_graph* graph) {
  tn_error* error = sdk::guard([&] {
    CurrentDevice current(graph->device);
    if (cudaGraphExecDestroy(graph->exec) != cudaSuccess) cudaGetLastError();
  });
  if (error) error->destroy(error);
  delete graph;
}

}  // namespace

// No TN_CAPTURE_CREATES_PLANS: making a plan may start a library and load code, which not every
// driver can do while it captures.
const tn_stream_capture stream_capture{
    sizeof(tn_stream_capture), begin, end, launch_graph, destroy, 0};

}  // namespace tenon::cuda
