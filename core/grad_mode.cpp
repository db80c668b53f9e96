#include <tenon/core/base/per_thread.h>
#include <tenon/core/grad_mode.h>

namespace tenon {

namespace {
thread_local bool enabled TENON_FAST_TLS = true;
}

bool grad_enabled() { return enabled; }
GradMode::GradMode(bool value) : before_(enabled) { enabled = value; }
GradMode::~GradMode() { enabled = before_; }

}  // namespace tenon
