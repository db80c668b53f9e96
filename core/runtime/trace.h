// The trace of a program, which TENON_TRACE asks for: lines on stderr, and a file. Only start() may
// be called before there is a trace, and only it throws.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <tenon/core/base/environment.h>
#include <tenon/core/runtime/device_work.h>
#include <tenon/core/runtime/observe.h>

namespace tenon::tracing {

using Clock = std::chrono::steady_clock;

// Begins the trace. Throws an Error that names the file if it cannot be written.
void start(const TraceSettings& settings);

// What this thread does belongs to the worker of a device. It may be called before start().
void name_this_thread(const std::string& device) noexcept;

// The following happened on this thread between `began` and now, or the times in `run`.
void add_run(const observe::Run& run, bool failed) noexcept;
void add_copy(const CopyTask& task, Clock::time_point began, bool failed) noexcept;
void add_collective(const observe::Collective& part, Clock::time_point began, bool failed) noexcept;
// A device did the work between these times of the steady clock, in nanoseconds. It has a row of
// its own.
void add_device_work(const observe::DeviceWork& work, int64_t began, int64_t ended) noexcept;
bool has_file();
void add_wait(const std::string& device, Clock::time_point began) noexcept;

// The gradient rule of an operator queued its work, in the current module.
void add_gradient(const char* name, Clock::time_point began) noexcept;

// A plan was made, or there is none. `outcome` is "by cpu" or "decomposed"; `passed_over` has
// a line "\n  onednn: only f32" for each plugin that refused, or whose plan is dearer.
void add_plan(const PreparedPlan& plan, std::string_view outcome, std::string_view passed_over,
              Clock::time_point began) noexcept;

// A detour of a call, such as "decomposed". Its line is printed when it begins, before those of the
// runs that it consists of, and its event is written to the file when it ends.
struct Detour {
  const char* op;
  const char* what;
  Device device;
  std::string signature, part_of, reason;
  uint64_t bytes = 0;
};
void announce_detour(const Detour& detour) noexcept;
void add_detour(const Detour& detour, Clock::time_point began) noexcept;

}  // namespace tenon::tracing
