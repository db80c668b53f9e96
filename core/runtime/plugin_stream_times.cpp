// The part of PluginStream that learns when the device did what somebody watches: an event goes
// before and behind each piece of work.
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include <tenon/core/runtime/plugin_stream.h>
#include <tenon/core/runtime/profile_log.h>

namespace tenon {

// Waits until the stream is idle, once, so that the time of an event is known.
void PluginStream::start_clock(std::unique_lock<std::mutex>& lock) {
  if (clock_asked_for_ || capturing() || closed() || !observe::times_wanted()) return;
  clock_asked_for_ = true;
  const auto api = plugins::CheckedProfiling::of(api_);
  if (!api) return;
  wait_until_idle(lock);
  clock_asked_for_ = !capturing() && !closed();
  if (!clock_asked_for_ || (failures.any() && failures.lost())) return;
  for (auto* event : spare_) api_.event_destroy(event);  // they may have no times
  spare_.clear();
  reserve_spare();
  tn_event* anchor = new_mark();
  if (!anchor) return;
  if (tn_error* error = await(anchor)) {
    spare_.push_back(anchor);
    return add_late_error(error, submitted_);
  }
  clock_.emplace(*api, anchor);
}

// Until the work is queued, the event before it is a mark as others are. Whatever can fail is done
// here: where there is no memory for it, times are those of queueing.
std::unique_ptr<observe::DeviceWork> PluginStream::begin_watched() noexcept {
  if (!clock_->works() || !observe::times_wanted()) return nullptr;
  bool added = false;
  try {
    auto work = std::make_unique<observe::DeviceWork>();
    work->queued_ns = profiling::ns_of(profiling::Clock::now());
    reserve_spare();
    marks_.push_back({submitted_, nullptr});
    added = true;
    marks_.back().event = take_event();
    if (tn_event* end = marks_.back().event ? take_event() : nullptr) {
      spare_.push_back(end);
      if (record_event(marks_.back().event)) return work;
    }
  } catch (const std::bad_alloc&) {
  }
  if (added) {
    release(marks_.back());
    marks_.pop_back();
  }
  return nullptr;
}

void PluginStream::end_times(uint64_t ticket, std::unique_ptr<observe::DeviceWork> work) noexcept {
  if (!work->watched()) return;  // it was skipped
  try {
    tn_event* end = spare_.back();
    if (!record_event(end)) return;
    spare_.pop_back();
    Mark& mark = marks_.back();
    mark.begin = std::exchange(mark.event, end);
    mark.ticket = ticket;
    mark.work = std::move(work);
    poll();
  } catch (const std::bad_alloc&) {  // a later call will know more
  }
}

// The event before the work may be the first behind other work that failed.
void PluginStream::tell_times(Mark& mark) {
  int32_t done = 0;
  add_late_error(api_.event_query(mark.begin, &done), mark.ticket);
  if (const auto times = clock_->times_of(mark.begin, mark.event, mark.work->queued_ns))
    observe::add_times(*mark.work, times->began, times->ended);
}

}  // namespace tenon
