// Tells when a device came to the events of one of its streams, by the clock of the host.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/plugins/host/checked_extensions.h>

namespace tenon {

// Plugins say how long it is from one event to another. So one event, the anchor, is waited for by
// itself, and its time is that of the host when it is reached. That is too late by as long as the
// host took to notice. What is impossible corrects it, and what the clocks drift apart: work that
// begins before it was queued, or ends after it was known to be done.
class DeviceClock {
 public:
  // `anchor` has just been reached.
  DeviceClock(const plugins::CheckedProfiling& api, tn_event* anchor);

  struct Times {
    int64_t began, ended;  // nanoseconds of the steady clock
  };
  // Returns the times of work between two events that are reached, which was queued at `queued_ns`
  // and comes after the work of the last call. `end` is another event afterwards if that one became
  // the anchor. Returns nothing if the plugin does not say the times; then the log has the reason.
  std::optional<Times> times_of(tn_event* begin, tn_event*& end, int64_t queued_ns);

  bool works() const { return works_; }
  tn_event* anchor() const { return anchor_; }

 private:
  int64_t since_anchor(tn_event* event);

  plugins::CheckedProfiling api_;
  tn_event* anchor_;
  int64_t anchored_, last_;  // the times of the anchor, and of the last work's end
  bool works_ = true;
};

}  // namespace tenon
