// How long replays take beside the function itself. What is faster may be the one or the other, and
// both leave the same bits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <tenon/core/runtime/context.h>

namespace tenon::graph {

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

// Measures a call from an idle device to the end of its work.
class StopWatch {
 public:
  explicit StopWatch(const std::vector<DeviceContext*>& devices)
      : devices_(devices), idle_(wait_for_devices(devices)), began_(Clock::now()) {}
  // Returns the seconds; nothing if they say nothing.
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

// Of a program. A look runs the function, and the replays after it are measured as well. Where all
// of these took longer by a margin than any look so far, several looks in a row, the program is set
// aside: the function runs itself for a while, and then it is looked at again. A machine that is
// busy makes both slower, and the least of several times is nearly what an idle one takes.
class Timing {
 public:
  // The function took so long at a look.
  void note_look(std::optional<double> seconds) {
    if (!seconds) return;
    function_ = std::min(function_, *seconds);
    replay_ = kNever;
    awaited_ = kReplays;
  }
  bool awaits_replay() const { return awaited_ > 0; }
  // Returns whether the program is set aside by this replay.
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

  // How many calls the function still takes itself.
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
  static constexpr int kReplays = 3, kLooks = 3;
  static constexpr uint64_t kLongestAside = 65536;

  double function_ = kNever, replay_ = kNever;  // the least, of all looks and since the last
  int awaited_ = 0;                             // replays that are to be measured
  int slower_ = 0;                              // looks in a row after which replays were slower
  uint64_t aside_ = 0, next_aside_ = 1024;      // calls
};

}  // namespace tenon::graph
