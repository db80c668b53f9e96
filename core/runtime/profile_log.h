// What a Profiler is told by those who watch runs (observe.h). All of these do nothing while no
// profiler records, and none of them throws: what there is no memory for is counted as lost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/core/runtime/device_work.h>
#include <tenon/core/runtime/observe.h>
#include <tenon/core/runtime/profiler.h>

namespace tenon::profiling {

using Clock = std::chrono::steady_clock;

// Nanoseconds of the steady clock.
inline int64_t ns_of(Clock::time_point t) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count();
}
// When work is queued now, for Launch::queued_ns; 0 while no profiler records.
inline int64_t queued_now() {
  return observe::watched_by(observe::kProfile) ? ns_of(Clock::now()) : 0;
}

void add_run(const observe::Run& run, bool failed) noexcept;
void add_copy(const CopyTask& task, tn_stream* stream, Clock::time_point began,
              bool failed) noexcept;
void add_collective(const observe::Collective& part, Clock::time_point began, bool failed) noexcept;
// The device did the work between these times, instead of those in which it was queued.
void add_device_work(const observe::DeviceWork& work, int64_t began, int64_t ended) noexcept;
void add_wait(const std::string& device, Clock::time_point began) noexcept;
// The name lives as long as the process.
void add_gradient(const char* name, Clock::time_point began) noexcept;
void add_range(const std::string& name, int64_t began_ns) noexcept;

// Begins to record. Throws a ValueError if another profiler does.
void begin(const profiler::Options& options);
struct Recorded {
  std::vector<profiler::Event> events;  // by the time they began
  uint64_t lost = 0;
  double seconds = 0;
};
// Ends what begin() began; nothing in the child of a fork, where nothing was recorded.
Recorded end();

}  // namespace tenon::profiling
