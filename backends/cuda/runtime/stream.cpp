// Streams and events. An event brings up what its stream's kernels filed: see fault.h. Every call
// is made with the device current, also where CUDA does not ask for that: on a thread that has
// none, the first call starts the device that is current.
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/check.h"
#include "runtime/device.h"
#include "runtime/runtime.h"
#include "vendor/vendor.h"

namespace tenon::cuda {

namespace {

// The streams that exist. Never destroyed, because detached threads may still make and destroy some
// while the process ends.
struct Streams {
  std::mutex mutex;
  std::vector<tn_stream*> all;
};
Streams& streams() {
  static auto& s = *new Streams;
  return s;
}

void list_stream(tn_stream* stream) {
  std::lock_guard lock(streams().mutex);
  streams().all.push_back(stream);
}
void unlist_stream(tn_stream* stream) {
  std::lock_guard lock(streams().mutex);
  std::erase(streams().all, stream);
}

void destroy_quietly(tn_stream* s) {
  CurrentDevice current(s->device);
  forget_stream(s);
  if (cudaStreamDestroy(s->handle) != cudaSuccess) cudaGetLastError();
}

// Waiting for an event that keeps its time takes longer on the device, so the others have none.
std::atomic<bool> times_wanted{false};

// What the device says of the work before an event that is reached.
void throw_late_error(const tn_event* event, cudaError_t code) {
  check(code, "queued work");
  if (event->faults) event->faults->throw_filed();
}

}  // namespace

tn_error* stream_create(tn_device* device, tn_stream** out) {
  return sdk::guard([&] {
    CurrentDevice current(device);
    device->started = true;
    auto stream = std::make_unique<tn_stream>();
    stream->device = device;
    stream->faults = std::make_shared<FaultList>(std::make_shared<PinnedFault>());
    stream->fault = stream->faults->own();
    // Not joined with the default stream, which the user's own code may use.
    check(cudaStreamCreateWithFlags(&stream->handle, cudaStreamNonBlocking), "cudaStreamCreate");
    try {
      list_stream(stream.get());
    } catch (...) {
      destroy_quietly(stream.get());
      throw;
    }
    *out = stream.release();
  });
}

void stream_destroy(tn_stream* stream) {
  unlist_stream(stream);
  tn_error* error = sdk::guard([&] { destroy_quietly(stream); });
  if (error) error->destroy(error);
  delete stream;
}

tn_error* event_create(tn_device* device, tn_event** out) {
  return sdk::guard([&] {
    CurrentDevice current(device);
    auto event = std::make_unique<tn_event>();
    event->device = device;
    check(cudaEventCreateWithFlags(&event->handle,
                                   times_wanted ? cudaEventDefault : cudaEventDisableTiming),
          "cudaEventCreate");
    *out = event.release();
  });
}

void event_destroy(tn_event* event) {
  tn_error* error = sdk::guard([&] {
    CurrentDevice current(event->device);
    if (cudaEventDestroy(event->handle) != cudaSuccess) cudaGetLastError();
  });
  if (error) error->destroy(error);
  delete event;
}

tn_error* event_record(tn_event* event, tn_stream* stream) {
  return sdk::guard([&] {
    refuse_while_capturing(stream, "recording an event");
    CurrentDevice current(stream->device);
    check(cudaEventRecord(event->handle, stream->handle), "cudaEventRecord");
    event->faults = stream->faults;
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
    CurrentDevice current(event->device);
    cudaError_t code = cudaEventQuery(event->handle);
    *done = code != cudaErrorNotReady;
    if (*done) throw_late_error(event, code);
  });
}

tn_error* event_wait(tn_event* event) {
  return sdk::guard([&] {
    CurrentDevice current(event->device);
    throw_late_error(event, cudaEventSynchronize(event->handle));
  });
}

void keep_times() { times_wanted = true; }

namespace {
tn_error* elapsed(tn_event* begin, tn_event* end, double* milliseconds) {
  return sdk::guard([&] {
    CurrentDevice current(begin->device);
    float between = 0;
    check(cudaEventElapsedTime(&between, begin->handle, end->handle), "cudaEventElapsedTime");
    *milliseconds = between;
  });
}
}  // namespace

const tn_profiling profiling{sizeof(tn_profiling), nullptr, nullptr, elapsed};

void wait_for_streams() {
  std::lock_guard lock(streams().mutex);  // none is destroyed meanwhile
  std::exception_ptr first;
  for (auto* stream : streams().all) {
    if (stream->capturing) continue;  // what it records does not run, and waiting would spoil it
    try {
      CurrentDevice current(stream->device);
      check(cudaStreamSynchronize(stream->handle), "cudaStreamSynchronize");
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace tenon::cuda
