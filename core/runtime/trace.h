// The trace of a program, which TENON_TRACE asks for.
#pragma once

#include <tenon/core/base/environment.h>
#include <tenon/core/runtime/observe.h>

namespace tenon::trace {

// Begins the trace. Throws an Error that names the file if it cannot be written.
void start(const TraceSettings& settings);

// What this thread does belongs to the worker of a device.
void name_this_thread(const std::string& device);

// A run of a plan ended.
void add_run(const observe::Run& run, bool failed) noexcept;

}  // namespace tenon::trace
