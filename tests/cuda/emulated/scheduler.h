// The emulated devices' work: queued on streams, run late, in an order that streams and events
// allow and that is drawn by chance. The seed is TENON_EMULATED_SEED (1): the same program queues
// and runs the same, as long as one thread alone queues.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

#include "stream.h"

namespace tenon::emulated {

using Task = std::function<void()>;
using Time = std::chrono::steady_clock::time_point;
using Flag = std::shared_ptr<bool>;
using Readable = std::shared_ptr<const bool>;

struct Node {
  Task task;
  std::vector<size_t> after;  // earlier nodes
};
using Nodes = std::vector<Node>;

// A recording that goes on. Streams join it by waiting for its events.
struct Capture {
  Capture(CUstream_st* stream, cudaStreamCaptureMode m, std::thread::id by)
      : origin(stream), mode(m), thread(by) {}
  CUstream_st* origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool invalid = false;  // something was asked that no recording can hold
  Nodes nodes;
};

struct Operation {
  std::function<bool()> ready;  // empty: always
  std::function<bool()> step;   // runs a part; true where it was the last
};

struct Stream : CUstream_st {
  std::deque<Operation> operations;
  bool destroyed = false;  // it goes once its work is done
  std::shared_ptr<Capture> capture;
  std::vector<size_t> last;  // the captured nodes that the next one follows
};

// One lock over everything: the emulated devices take turns.
std::recursive_mutex& lock();
extern bool lost;  // a kernel met an illegal address: nothing works any more

Stream* make_stream(int device);
// The stream behind a handle, the device's default stream for null; null where there is no such
// stream.
Stream* find_stream(cudaStream_t handle, int device);
void destroy_stream(Stream* stream);

cudaError_t queue_task(Stream* stream, Task task);
void queue_wait(Stream* stream, Readable flag);
// Sets the flag when the stream comes to it.
void queue_flag(Stream* stream, Flag flag, std::shared_ptr<Time> time = nullptr);
// Launches of one graph never overlap: `previous` is the flag of the last one. The flag is set when
// all nodes have run.
void queue_graph(Stream* stream, std::shared_ptr<const Nodes> nodes, Readable previous, Flag done);

// Runs queued work until it is true, or the device lost. A wait that nothing can end ends the
// process.
void run_until(const std::function<bool()>& is_true);
// As a host that looks again and again: some work goes on in the meantime.
void run_a_little();

// What the capture says of a call that it forbids; success where none goes on.
cudaError_t refused_by_capture(const std::shared_ptr<Capture>& capture, cudaError_t code);
// For calls that modes other than the relaxed one forbid while any stream captures.
cudaError_t refused_as_unsafe();
cudaError_t begin_capture(Stream* stream, cudaStreamCaptureMode mode);
// Ends it in every case but where the wrong stream or thread asks.
cudaError_t end_capture(Stream* stream, Nodes& nodes);

// The order of everything queued from here on.
void reseed(uint64_t seed);

}  // namespace tenon::emulated
