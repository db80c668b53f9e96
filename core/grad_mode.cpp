#include <tenon/core/base/per_thread.h>
#include <tenon/core/grad_mode.h>

namespace tenon {

namespace {
constinit thread_local GradSettings settings TENON_FAST_TLS;
}

GradSettings& grad_settings() { return settings; }
bool grad_enabled() { return settings.enabled; }
GradMode::GradMode(bool value) : before_(settings.enabled) { settings.enabled = value; }
GradMode::~GradMode() { settings.enabled = before_; }

}  // namespace tenon
