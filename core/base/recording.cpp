#include <tenon/core/base/recording.h>

namespace tenon::recording {

constinit std::atomic<pthread_t> recorded_thread{0};
constinit std::atomic<Listener*> listener{nullptr};
constinit std::atomic<uint64_t> changes{0};

}  // namespace tenon::recording
