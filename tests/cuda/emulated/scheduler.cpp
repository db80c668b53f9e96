#include "scheduler.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <utility>

namespace tenon::emulated {

bool lost = false;

namespace {

constexpr size_t kMax = 256;  // operations on one stream; then some run

uint64_t first_seed() {
  const char* text = std::getenv("TENON_EMULATED_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 1;
}

// Never destroyed: threads of the host may still wait while the process ends.
struct State {
  std::recursive_mutex mutex;
  std::mt19937_64 chance{first_seed()};
  std::vector<std::unique_ptr<Stream>> streams;  // in the order they were made
  std::map<int, Stream*> default_streams;
  std::set<Capture*> captures;
  Stream* favourite = nullptr;
};
State& state() {
  static auto& s = *new State;
  return s;
}

size_t below(size_t n) { return state().chance() % n; }

bool can_step(const Stream& s) {
  return !s.operations.empty() && (!s.operations.front().ready || s.operations.front().ready());
}

void forget_if_done(Stream* stream) {
  if (!stream->destroyed || !stream->operations.empty()) return;
  auto& s = state();
  if (s.favourite == stream) s.favourite = nullptr;
  std::erase_if(s.streams, [&](auto& each) { return each.get() == stream; });
}

// One stream runs on for a while, then another overtakes: evenly mixed, streams would seldom show
// an order that was left out.
bool step_once() {
  auto& s = state();
  std::vector<Stream*> able;
  for (auto& stream : s.streams)
    if (can_step(*stream)) able.push_back(stream.get());
  if (able.empty()) return false;
  if (std::find(able.begin(), able.end(), s.favourite) == able.end() || below(8) == 0)
    s.favourite = able[below(able.size())];
  Stream* chosen = s.favourite;
  if (chosen->operations.front().step()) {
    chosen->operations.pop_front();
    forget_if_done(chosen);
  }
  return true;
}

void add(Stream* stream, Operation operation) {
  stream->operations.push_back(std::move(operation));
  if (stream->operations.size() <= kMax) return;
  while (stream->operations.size() > kMax / 2 && !lost && step_once()) {
  }
}

Stream* own(CUstream_st* handle) { return static_cast<Stream*>(handle); }

}  // namespace

std::recursive_mutex& lock() { return state().mutex; }

void reseed(uint64_t seed) {
  std::lock_guard guard(lock());
  state().chance.seed(seed);
  state().favourite = nullptr;
}

Stream* make_stream(int device) {
  auto stream = std::make_unique<Stream>();
  stream->device = device;
  stream->is_capturing = [](CUstream_st* s) { return own(s)->capture != nullptr; };
  stream->queue = [](CUstream_st* s, Task task) {
    std::lock_guard guard(lock());
    return queue_task(own(s), std::move(task));
  };
  stream->wait_for = [](CUstream_st* s, Readable flag) {
    std::lock_guard guard(lock());
    queue_wait(own(s), std::move(flag));
    return cudaSuccess;
  };
  return state().streams.emplace_back(std::move(stream)).get();
}

Stream* find_stream(cudaStream_t handle, int device) {
  auto& s = state();
  if (!handle) {
    auto& stream = s.default_streams[device];
    if (!stream) stream = make_stream(device);
    return stream;
  }
  for (auto& stream : s.streams)
    if (stream.get() == handle && !stream->destroyed) return stream.get();
  return nullptr;
}

void destroy_stream(Stream* stream) {
  stream->destroyed = true;
  if (stream->capture) stream->capture->invalid = true;
  forget_if_done(stream);
}

cudaError_t queue_task(Stream* stream, Task task) {
  if (lost) return cudaErrorIllegalAddress;
  if (stream->capture) {
    if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    stream->capture->nodes.push_back({std::move(task), stream->last});
    stream->last = {stream->capture->nodes.size() - 1};
    return cudaSuccess;
  }
  add(stream, {{}, [task = std::move(task)] {
                 if (!lost) task();
                 return true;
               }});
  return cudaSuccess;
}

void queue_wait(Stream* stream, Readable flag) {
  add(stream, {[flag = std::move(flag)] { return *flag; }, [] { return true; }});
}

void queue_flag(Stream* stream, Flag flag, std::shared_ptr<Time> time) {
  add(stream, {{}, [flag = std::move(flag), time = std::move(time)] {
                 if (time) *time = std::chrono::steady_clock::now();
                 return *flag = true;
               }});
}

void queue_graph(Stream* stream, std::shared_ptr<const Nodes> nodes, Readable previous, Flag done) {
  auto ready = [previous = std::move(previous)] { return !previous || *previous; };
  auto ran = std::make_shared<std::vector<bool>>(nodes->size(), false);
  auto step = [nodes = std::move(nodes), ran = std::move(ran), done = std::move(done)] {
    std::vector<size_t> able;
    for (size_t i = 0; i < nodes->size(); ++i) {
      auto& after = (*nodes)[i].after;
      if (!(*ran)[i] &&
          std::all_of(after.begin(), after.end(), [&](size_t a) { return (*ran)[a]; }))
        able.push_back(i);
    }
    if (!able.empty()) {
      const size_t i = able[below(able.size())];
      (*ran)[i] = true;
      if (!lost) (*nodes)[i].task();
    }
    if (std::find(ran->begin(), ran->end(), false) != ran->end()) return false;
    return *done = true;
  };
  add(stream, {std::move(ready), std::move(step)});
}

void run_until(const std::function<bool()>& is_true) {
  while (!lost && !is_true()) {
    if (step_once()) continue;
    std::fprintf(stderr, "emulated device: a wait for what no queued work brings about\n");
    std::abort();
  }
}

void run_a_little() {
  for (size_t n = below(4) + 1; n > 0 && !lost && step_once(); --n) {
  }
}

cudaError_t refused_by_capture(const std::shared_ptr<Capture>& capture, cudaError_t code) {
  if (!capture) return cudaSuccess;
  capture->invalid = true;
  return code;
}

cudaError_t refused_as_unsafe() {
  for (auto* c : state().captures) {
    const bool here = c->thread == std::this_thread::get_id();
    if (c->mode == cudaStreamCaptureModeGlobal ||
        (c->mode == cudaStreamCaptureModeThreadLocal && here)) {
      c->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
  }
  return cudaSuccess;
}

cudaError_t begin_capture(Stream* stream, cudaStreamCaptureMode mode) {
  if (lost) return cudaErrorIllegalAddress;
  if (stream->capture) return cudaErrorIllegalState;
  for (auto& [device, legacy] : state().default_streams)
    if (legacy == stream) return cudaErrorStreamCaptureUnsupported;
  stream->capture = std::make_shared<Capture>(stream, mode, std::this_thread::get_id());
  stream->last.clear();
  state().captures.insert(stream->capture.get());
  return cudaSuccess;
}

cudaError_t end_capture(Stream* stream, Nodes& nodes) {
  auto capture = stream->capture;
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != stream)
    return refused_by_capture(capture, cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id())
    return cudaErrorStreamCaptureWrongThread;
  // All that was recorded has to lie before the end of the stream that began.
  std::vector<bool> joined(capture->nodes.size(), false);
  for (size_t i : stream->last) joined[i] = true;
  for (size_t i = capture->nodes.size(); i-- > 0;)
    if (joined[i])
      for (size_t before : capture->nodes[i].after) joined[before] = true;
  for (auto& each : state().streams)
    if (each->capture == capture) each->capture = nullptr;
  state().captures.erase(capture.get());
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (std::find(joined.begin(), joined.end(), false) != joined.end())
    return cudaErrorStreamCaptureUnjoined;
  nodes = std::move(capture->nodes);
  return cudaSuccess;
}

}  // namespace tenon::emulated
