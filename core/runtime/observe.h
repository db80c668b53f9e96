// Where the runs of plans can be looked at: by the trace (TENON_TRACE), by profilers, and by
// checks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <tenon/core/base/module_path.h>
#include <tenon/core/runtime/stream.h>

namespace tenon::observe {

// Those who may look. Each is one bit of `watchers`.
enum Watcher : uint32_t { kTrace = 1, kCount = 2, kCheck = 4, kProfile = 8 };

// Those that the environment asks for are set before the first device is opened. While it is 0, a
// run of a plan costs one more test.
extern constinit std::atomic<uint32_t> watchers;

inline bool watched() { return watchers.load(std::memory_order_relaxed) != 0; }
inline bool watched_by(Watcher w) { return watchers.load(std::memory_order_relaxed) & w; }

// Reads the variables that ask for watchers, and starts these. It is called before a device is
// opened, and does nothing after the first time. Throws a ValueError or an Error if that is not
// possible, such as for a file that cannot be written; then the next call tries again.
void start();

// Tells the watchers that this thread works for the device of this name alone.
void name_this_thread(const std::string& device);

// One run of a plan that is watched, on the thread that runs it. Without `args.stream` the plan
// computes on this thread; with it, the run only queues the work on a device.
struct Run {
  const Launch& launch;
  tn_run& args;
  const PathNode* path;  // the module that queued it; may be null
  std::chrono::steady_clock::time_point began{}, ended{};
};

// Runs the plan with its watchers. Returns the error of the plan, or one that a watcher found.
tn_error* run_watched(const Launch& launch, tn_run& args, const PathNode* path);

// A plan that is made or run, for those who have to say what a plugin was doing.
class PlanAtWork final : public plugins::Asked {
 public:
  PlanAtWork(const PreparedPlan& plan, const Shape* shape, const PathNode* path)
      : plan_(plan), shape_(shape), path_(path) {}
  std::string text() const override;

 private:
  const PreparedPlan& plan_;
  const Shape* const shape_;  // as in Launch
  const PathNode* const path_;
};

// Runs the plan. Everything that a program computes runs here; checked mode runs a plan once more,
// to compare. `stream` is null if the plan computes on this thread.
inline tn_error* run_plan(const Launch& l, const PathNode* path, tn_stream* stream) {
  tn_run args = l.args(stream);
  if (watched()) [[unlikely]]
    return run_watched(l, args, path);
  const PlanAtWork work(*l.plan, l.shape, path);
  return l.plan->api->run(l.plan->plan, &args, &work);
}

// As long as it lives, what this thread queues is a part of the gradient of an operator, for those
// who watch. Without them it costs one test.
class Gradient {
 public:
  explicit Gradient(const char* op) {
    if (watched()) [[unlikely]]
      begin(op);
  }
  ~Gradient() {
    if (part_) [[unlikely]]
      end();
  }
  Gradient(const Gradient&) = delete;
  Gradient& operator=(const Gradient&) = delete;

 private:
  void begin(const char* op);
  void end() noexcept;
  std::optional<PartPath> part_;
  std::chrono::steady_clock::time_point began_{};
};

// A device's part of a sum or a broadcast over several, which is queued on a stream of it.
struct Collective {
  const DeviceContext& by;  // that of the stream
  const char* name;         // "all_reduce"; lives as long as the process
  uint64_t bytes;
  DeviceWork* device_work;  // as in Launch
};
void add_collective(const Collective& part, std::chrono::steady_clock::time_point began,
                    bool failed) noexcept;

// Makes a copy between devices, or queues it. All but those into pinned memory are made here.
tn_error* run_copy_watched(const CopyTask& task, tn_stream* stream);
inline tn_error* run_copy(const CopyTask& t, tn_stream* stream) {
  if (watched()) [[unlikely]]
    return run_copy_watched(t, stream);
  return t.api->copy(t.device, &t.copy, stream);
}

}  // namespace tenon::observe
