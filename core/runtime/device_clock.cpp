#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/log.h>
#include <tenon/core/runtime/device_clock.h>
#include <tenon/core/runtime/failure.h>

namespace tenon {

namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Drivers give the time between two events as a float, which tells no microseconds apart after some
// seconds.
constexpr int64_t kAnchorHolds = 1'000'000'000;
constexpr double kLongest = 1e12;  // milliseconds; more is no time

}  // namespace

DeviceClock::DeviceClock(const plugins::CheckedProfiling& api, tn_event* anchor)
    : api_(api), anchor_(anchor), anchored_(now_ns()), last_(0) {}

// In nanoseconds. After a failure, which is logged, it is 0.
int64_t DeviceClock::since_anchor(tn_event* event) {
  if (!works_) return 0;
  double milliseconds = 0;
  tn_error* error = api_.elapsed(anchor_, event, &milliseconds);
  works_ = !error && std::abs(milliseconds) < kLongest;
  if (works_) return std::llround(milliseconds * 1e6);
  const std::string reason =
      error ? take_failure(error).message
            : fmt::format("elapsed says that it is {} ms from one event to another", milliseconds);
  log_message(TN_LOG_WARNING, api_.name(),
              reason +
                  "; traces and profilers show when work was queued on this device instead of "
                  "when it ran");
  return 0;
}

std::optional<DeviceClock::Times> DeviceClock::times_of(tn_event* begin, tn_event*& end,
                                                        int64_t queued_ns) {
  const int64_t until_begin = since_anchor(begin), until_end = since_anchor(end);
  if (!works_) return std::nullopt;
  const int64_t now = now_ns();
  anchored_ -= std::max<int64_t>(anchored_ + until_end - now, 0);
  anchored_ += std::max<int64_t>(queued_ns - (anchored_ + until_begin), 0);
  Times times;
  times.began = std::min(std::max(anchored_ + until_begin, last_), now);
  times.ended = std::clamp(anchored_ + until_end, times.began, now);
  last_ = times.ended;
  if (std::abs(until_end) > kAnchorHolds) {
    anchored_ += until_end;
    std::swap(anchor_, end);
  }
  return times;
}

}  // namespace tenon
