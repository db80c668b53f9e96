#include <tenon/core/base/per_thread.h>
#include <tenon/data/reading.h>

namespace tenon::data {
namespace {
constinit thread_local const Reading* current TENON_FAST_TLS = nullptr;
}

Reading reading() { return current ? *current : Reading{}; }

ReadingScope::ReadingScope(const Reading& now) : now_(now), before_(current) { current = &now_; }
ReadingScope::~ReadingScope() { current = before_; }

}  // namespace tenon::data
