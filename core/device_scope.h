// Where the work of a thread goes: what guards of devices and of streams have said.
#pragma once

#include <tenon/core/base/per_thread.h>
#include <tenon/core/device.h>

namespace tenon {

// The innermost scope of this thread, or null. All of them are one list, because libraries get
// little static thread-local storage.
extern constinit thread_local const detail::DeviceScope* innermost_scope TENON_FAST_TLS;

// A scope ends on the thread that entered it.
void enter_scope(detail::DeviceScope& scope);
void leave_scope(const detail::DeviceScope& scope);
// Lets this thread work on the device of `callers`, the innermost scope of another thread, which
// waits until this one is done.
void continue_scopes(const detail::DeviceScope* callers);

}  // namespace tenon
