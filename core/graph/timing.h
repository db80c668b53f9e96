// Compares the time of replays with that of the function itself. Either may be faster, and both
// give the same bits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <tenon/core/runtime/context.h>

namespace tenon::graph {

// Whether nothing is queued on the devices.
inline bool are_idle(const std::vector<DeviceContext*>& devices) noexcept {
  for (auto* device : devices) {
    DeviceStream& stream = *device->stream;
    if (stream.closed() || stream.capturing() || !stream.reached(stream.last())) return false;
  }
  return true;
}

// Waits until what was queued on the devices is done. Returns false if that cannot be.
inline bool wait_for_devices(const std::vector<DeviceContext*>& devices) noexcept {
  try {
    for (auto* device : devices) {
      if (device->stream->closed() || device->stream->capturing()) return false;
      device->stream->wait(device->stream->last());
    }
    return true;
  } catch (...) {
    return false;
  }
}

// Measures a call from idle devices to the end of its work. Where something is queued, nothing is
// measured: a caller that does not wait must not be made to wait for earlier work.
class StopWatch {
 public:
  explicit StopWatch(const std::vector<DeviceContext*>& devices)
      : devices_(devices), idle_(are_idle(devices)), began_(Clock::now()) {}
  // Returns the seconds; nothing if the call could not be measured.
  std::optional<double> stop() const {
    if (!idle_ || !wait_for_devices(devices_)) return std::nullopt;
    return std::chrono::duration<double>(Clock::now() - began_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  const std::vector<DeviceContext*>& devices_;
  const bool idle_;
  const Clock::time_point began_;
};

// The times of one program. In a look, the function runs and is measured, and so are some replays
// soon after it; the first replays are not, because they may have to renew what depends on the
// addresses of gradients. If all measured replays took longer than the function by a margin, in
// several looks in a row, the program is set aside: the function runs itself for a while, and then
// there is another look. A machine that is busy for long makes both slower. A short disturbance of
// replays is not in the least of their times, and one of the function only keeps its program.
class Timing {
 public:
  // Notes how long the function took in a look.
  void note_look(std::optional<double> seconds) {
    if (!seconds) return;
    function_ = *seconds;
    replay_ = kNever;
    awaited_ = kSettling + kReplays;
  }
  // Counts a replay that is about to run. Returns whether it is to be measured.
  bool awaits_replay() {
    if (awaited_ > kReplays) return --awaited_, false;
    return awaited_ > 0;
  }
  // Takes the time of a measured replay. Returns whether the program is set aside because of it.
  bool note_replay(std::optional<double> seconds) {
    if (!seconds) return awaited_ = 0, false;
    replay_ = std::min(replay_, *seconds);
    if (--awaited_ > 0) return false;
    slower_ = replay_ > kMargin * function_ ? slower_ + 1 : 0;
    if (slower_ < kLooks) return false;
    slower_ = kLooks - 1;
    aside_ = next_aside_;
    next_aside_ = std::min(4 * next_aside_, kLongestAside);
    return true;
  }

  // Returns how many further calls the function itself runs.
  uint64_t aside() const { return aside_; }
  // Counts one of them. Returns whether it was the last.
  bool pass() {
    if (--aside_ > 0) return false;
    function_ = kNever;
    return true;
  }
  bool is_known() const { return function_ < kNever && replay_ < kNever; }
  double function() const { return function_; }
  double replay() const { return replay_; }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity(), kMargin = 1.1;
  static constexpr int kSettling = 16, kReplays = 3, kLooks = 3;
  static constexpr uint64_t kLongestAside = 65536;

  double function_ = kNever, replay_ = kNever;  // at the last look, and the least since then
  int awaited_ = 0;                             // replays until all are measured
  int slower_ = 0;                              // looks in a row after which replays were slower
  uint64_t aside_ = 0, next_aside_ = 1024;      // calls
};

}  // namespace tenon::graph
