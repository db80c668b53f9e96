// Streams and events. An event brings up what its stream's kernels filed: see fault.h.
#include <cstring>
#include <memory>
#include <string>

#include "check.h"
#include "device.h"
#include "runtime.h"
#include "vendor.h"

tn_stream::tn_stream(tn_device* d, cudaStream_t h, tenon::cuda::Fault* f) : device(d), handle(h), fault(f) {}
tn_stream::~tn_stream() = default;

namespace tenon::cuda {

namespace {

void destroy_quietly(tn_stream* s) {
  CurrentDevice current(s->device);
  s->vendor.reset();
  cudaStreamDestroy(s->handle);
  cudaFreeHost(s->fault);
  cudaGetLastError();
}

// What the device says of the work before an event that is reached.
void throw_late_error(const tn_event* event, cudaError_t code) {
  check(code, "queued work");
  if (event->stream) throw_fault(*event->stream->fault);
}

}  // namespace

tn_error* stream_create(tn_device* device, tn_stream** out) {
  return sdk::guard([&] {
    CurrentDevice current(device);
    device->started = true;
    cudaStream_t handle = nullptr;
    // Not joined with the default stream, which the user's own code may use.
    check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreate");
    void* fault = nullptr;
    cudaError_t code = cudaHostAlloc(&fault, sizeof(Fault), cudaHostAllocPortable | cudaHostAllocMapped);
    if (code != cudaSuccess) cudaStreamDestroy(handle);
    check(code, "cudaHostAlloc");
    std::memset(fault, 0, sizeof(Fault));
    *out = new tn_stream(device, handle, static_cast<Fault*>(fault));
  });
}

void stream_destroy(tn_stream* stream) {
  tn_error* error = sdk::guard([&] { destroy_quietly(stream); });
  if (error) error->destroy(error);
  delete stream;
}

tn_error* event_create(tn_device* device, tn_event** out) {
  return sdk::guard([&] {
    CurrentDevice current(device);
    auto event = std::make_unique<tn_event>();
    event->device = device;
    check(cudaEventCreateWithFlags(&event->handle, cudaEventDisableTiming), "cudaEventCreate");
    *out = event.release();
  });
}

void event_destroy(tn_event* event) {
  if (cudaEventDestroy(event->handle) != cudaSuccess) cudaGetLastError();
  delete event;
}

tn_error* event_record(tn_event* event, tn_stream* stream) {
  return sdk::guard([&] {
    refuse_while_capturing(stream, "recording an event");
    CurrentDevice current(stream->device);
    check(cudaEventRecord(event->handle, stream->handle), "cudaEventRecord");
    event->stream = stream;
  });
}

tn_error* stream_wait(tn_stream* stream, tn_event* event) {
  return sdk::guard([&] {
    refuse_while_capturing(stream, "waiting for an event");
    CurrentDevice current(stream->device);
    check(cudaStreamWaitEvent(stream->handle, event->handle, 0), "cudaStreamWaitEvent");
  });
}

tn_error* event_query(tn_event* event, int32_t* done) {
  return sdk::guard([&] {
    cudaError_t code = cudaEventQuery(event->handle);
    *done = code != cudaErrorNotReady;
    if (*done) throw_late_error(event, code);
  });
}

tn_error* event_wait(tn_event* event) {
  return sdk::guard([&] { throw_late_error(event, cudaEventSynchronize(event->handle)); });
}

}  // namespace tenon::cuda
