#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/error.h>
#include <tenon/core/runtime/capture.h>
#include <tenon/core/runtime/plugin_stream.h>

namespace tenon {

PluginStream::PluginStream(const plugins::CheckedApi& api, tn_device* device,
                           const std::string& name, uint32_t number, FailureLog* shared)
    : DeviceStream(name, number, shared),
      ForkMember(ForkOrder::streams),
      api_(api),
      device_(device),
      submitted_(origin()),
      completed_(origin()) {
  join();
  check(api_.stream_create(device_, &stream_), name + ": cannot create a stream: ");
}

PluginStream::~PluginStream() {
  leave();
  close();
}

void PluginStream::close() {
  std::unique_lock lock(mutex_);
  if (closed()) return;
  wait_until_idle(lock);
  closed_ = "the program is ending";
  retired_.wait(lock, [&] { return !awaited_ && !draining_; });
  completed_.store(submitted_);
  if (api_.hangs()) return;  // its work may still use them
  destroy_graphs();
  if (recorder_) api_.stream_destroy(recorder_);
  for (auto& m : marks_) {
    api_.event_destroy(m.event);
    if (m.begin) api_.event_destroy(m.begin);
  }
  for (auto* e : spare_) api_.event_destroy(e);
  if (clock_) api_.event_destroy(clock_->anchor());
  marks_.clear();
  spare_.clear();
  api_.stream_destroy(stream_);
}

// The driver of a device does not survive a fork, so the plugin must not be called in the child,
// not even to clean up. Its locks may belong to threads that do not exist there, and destructors
// could wait forever.
void PluginStream::after_fork(bool in_child) {
  if (!in_child) return;
  new (&mutex_) std::mutex;
  new (&retired_) std::condition_variable;
  // A thread of the parent may have been changing these.
  new (&sources_) std::vector<Source>;
  new (&graphs_) std::vector<LaunchGraph*>;
  first_sourced_ = ~uint64_t{0};
  capturing_thread_ = std::thread::id();
  capture_ = nullptr;
  closed_ =
      "it was opened by the process that this one was forked from; open devices after the fork, or "
      "start a new program (exec)";
  completed_.store(submitted_);
  forget_failures();
}

// ---- queueing ----

// After a device was lost, every call fails with the first error.
void PluginStream::require_usable() const {
  require_open();
  require_device();
}

uint64_t PluginStream::next_ticket(const Launch* launch, const char* what) {
  const uint64_t ticket = submitted_.load(std::memory_order_relaxed) + 1;
  auto& queued = ring_[ticket % ring_.size()];
  queued.ticket = ticket;
  queued.plan = launch ? launch->plan : nullptr;
  if (launch && launch->shape) queued.shape = *launch->shape;
  queued.what = what;
  queued.path = current_path();
  submitted_.store(ticket, std::memory_order_release);
  return ticket;
}

uint64_t PluginStream::run(const Launch& l) {
  std::unique_lock lock(mutex_);
  if (observe::watched()) [[unlikely]]
    start_clock(lock);
  if (capturing()) return record(l);
  require_usable();
  auto work = begin_times();
  const uint64_t ticket = next_ticket(&l, nullptr);
  if (!work) [[likely]]
    return run_and_log(failures, l, current_path(), ticket, stream_), ticket;
  Launch watched = l;
  watched.device_work = work.get();
  run_and_log(failures, watched, current_path(), ticket, stream_);
  end_times(ticket, std::move(work));
  return ticket;
}

uint64_t PluginStream::copy(const CopyTask& task) {
  std::unique_lock lock(mutex_);
  if (observe::watched()) [[unlikely]]
    start_clock(lock);
  refuse_while_capturing("a copy between devices is not possible");
  require_usable();
  auto work = begin_times();
  const uint64_t ticket = next_ticket(nullptr, "copy between devices");
  if (!work) [[likely]]
    return copy_and_log(failures, task, ticket, stream_), ticket;
  CopyTask watched = task;
  watched.device_work = work.get();
  copy_and_log(failures, watched, ticket, stream_);
  end_times(ticket, std::move(work));
  return ticket;
}

void PluginStream::wait_for(DeviceStream& other, uint64_t ticket, const void* data, uint64_t) {
  if (&other == this) return;
  // Passes on what the other device has reported so far, because this stream reads its results from
  // now on. A caller that waits only to overwrite memory reads nothing.
  auto pass_on = [&] {
    if (data && other.failures.any()) other.failures.pass_on_late(ticket, failures, last() + 1, 0);
  };
  if (data ? other.settled(ticket) : other.reached(ticket)) return pass_on();
  refuse_while_capturing("waiting for another device is not possible");
  auto* peer = dynamic_cast<PluginStream*>(&other);
  // Only streams of one plugin can wait for each other on the device. Otherwise the host waits; it
  // also does if the device refuses.
  const bool on_device = peer && &peer->api_ == &api_;
  if (on_device && queue_wait(*peer, ticket, data != nullptr)) return;
  other.wait(ticket);
  pass_on();
}

// The wait gets a ticket of its own, because the work before it may be done long before.
uint64_t PluginStream::take_over(DeviceStream& other, uint64_t ticket, const void* data,
                                 uint64_t bytes) {
  wait_for(other, ticket, data, bytes);
  std::lock_guard lock(mutex_);
  return next_ticket(nullptr, "wait for another stream");
}

// Returns false if nothing was queued although there is something to wait for.
bool PluginStream::queue_wait(PluginStream& peer, uint64_t ticket, bool reads) {
  std::scoped_lock lock(mutex_, peer.mutex_);
  peer.refuse_while_capturing("waiting for the device is not possible");
  if (closed() || peer.closed()) return true;
  if (reads) add_source(peer, ticket, submitted_ + 1);
  if (awaited_peer_ == &peer && ticket <= awaited_ticket_) return true;  // it waits already
  tn_event* event = peer.mark_covering(ticket);
  if (!event) return peer.completed_ >= ticket;
  tn_error* error = api_.stream_wait(stream_, event);
  if (!error) return awaited_peer_ = &peer, awaited_ticket_ = ticket, true;
  // If the device has no memory for the wait, that is not reported as an error, because the host
  // can wait. It does so after any error: nothing else keeps later work behind the event.
  if (error->code == TN_CODE_OUT_OF_MEMORY)
    error->destroy(error);
  else
    add_late_error(error, submitted_);
  return false;
}

// Also forgets sources that have finished without a failure, and whose own sources have, too.
void PluginStream::add_source(PluginStream& stream, uint64_t ticket, uint64_t first) {
  std::erase_if(sources_, [&](const Source& s) {
    return s.first <= completed_ && s.stream->completed_ >= s.ticket &&
           s.stream->first_sourced_ > s.ticket && !s.stream->failures.any();
  });
  sources_.push_back({&stream, ticket, first});
  note_first_sourced();
}

// ---- waiting ----

bool PluginStream::reached(uint64_t ticket) {
  if (completed_.load(std::memory_order_acquire) >= ticket) return true;
  // The thread that holds the lock may be waiting for the device. What it has not seen finished
  // counts as not finished.
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || capturing()) return false;
  if (completed_ >= ticket) return true;
  try {
    mark_covering(ticket);
    poll();
  } catch (const std::bad_alloc&) {  // freeing memory calls this and must not fail; a later call
                                     // will know more
  }
  return completed_ >= ticket;
}

void PluginStream::wait(uint64_t ticket) {
  {
    std::unique_lock lock(mutex_);
    wait_locked(lock, ticket);
    if (sources_.empty()) return;
  }
  check_sources(ticket);
}

// Returns the sources of all work up to the ticket.
std::vector<PluginStream::Source> PluginStream::sources_of(uint64_t ticket) {
  std::vector<Source> due;
  std::lock_guard lock(mutex_);
  for (auto& s : sources_)
    if (s.first <= ticket) due.push_back(s);
  return due;
}

// Does the same as check_sources() if there is nothing to wait for, also for the sources of
// sources; otherwise returns false. A source may have finished without being noticed, and its
// device may have much later work: waiting for it could take as long as that work.
bool PluginStream::settle_sources(uint64_t ticket) {
  for (auto& s : sources_of(ticket))
    if (!s.stream->settled(s.ticket)) return false;
  check_sources(ticket);
  return true;
}

// Looks for late failures of other devices whose results this stream has read. They are known by
// now or will be at once. It works without the lock, because each stream takes its own. The sources
// are removed only afterwards, so that no other waiting thread continues without their failures.
void PluginStream::check_sources(uint64_t ticket) {
  const auto due = sources_of(ticket);
  for (auto& s : due) {
    s.stream->wait(s.ticket);
    if (s.stream->failures.any())
      s.stream->failures.pass_on_late(s.ticket, failures, s.first, submitted_);
  }
  std::lock_guard lock(mutex_);
  std::erase_if(sources_,
                [&](const Source& s) { return std::find(due.begin(), due.end(), s) != due.end(); });
  note_first_sourced();
}

void PluginStream::wait_locked(std::unique_lock<std::mutex>& lock, uint64_t ticket) {
  if (completed_ >= ticket) return;
  refuse_while_capturing("waiting for a value is not possible");
  finish_if_lost();
  if (completed_ >= ticket) return;
  mark_covering(ticket);
  // The oldest mark comes first, and only one thread waits at a time, so that the error of each
  // mark is logged once and with its own work.
  while (completed_ < ticket && !closed()) {
    if (awaited_ || draining_)
      retired_.wait(lock);
    else if (!marks_.empty())
      await_front(lock);
    else if (finish_if_lost(); completed_ < ticket)
      drain(lock);
  }
  finish_if_lost();
}

// There is no event behind the last work, and the reason is in the log. Who waits is going to free
// or read memory that the work uses. Other threads can queue work meanwhile.
void PluginStream::drain(std::unique_lock<std::mutex>& lock) {
  const uint64_t queued = submitted_;
  draining_ = true;
  lock.unlock();
  const bool rests = api_.rests();
  lock.lock();
  draining_ = false;
  if (rests) {
    completed_.store(std::max<uint64_t>(completed_, queued));
  } else {
    add_late_error(api_.without_end(), submitted_);
    completed_.store(submitted_);
  }
  retired_.notify_all();
}

tn_error* PluginStream::await(tn_event* event) const {
  return check_settings().on ? api_.event_wait_at_most(event, check_settings().seconds)
                             : api_.event_wait(event);
}

// Waits without the lock, so that other threads can queue work. Until it ends, no other thread
// retires the first mark.
void PluginStream::await_front(std::unique_lock<std::mutex>& lock) {
  awaited_ = true;
  tn_event* event = marks_.front().event;
  lock.unlock();
  tn_error* error = await(event);
  lock.lock();
  awaited_ = false;
  add_late_error(error, marks_.front().ticket);
  retire_front();
}

// Other threads may queue work meanwhile. It also ends when waiting has no effect any more; the
// reason is in the log then.
void PluginStream::wait_until_idle(std::unique_lock<std::mutex>& lock) {
  for (uint64_t before = ~uint64_t{0};
       !capturing() && completed_ < submitted_ && completed_ != before;) {
    before = completed_;
    wait_locked(lock, submitted_);
  }
}

// Nothing more will be known about the work on a lost device, so all of it counts as finished.
void PluginStream::finish_if_lost() {
  if (!failures.any() || !failures.lost()) return;
  while (marks_.size() > (awaited_ ? 1 : 0)) {
    release(marks_.back());
    marks_.pop_back();
  }
  completed_.store(submitted_);
  retired_.notify_all();
}

// Returns an event that is reached after `ticket`, an existing or a new one. Returns null if the
// ticket is reached already, or if there is no event.
tn_event* PluginStream::mark_covering(uint64_t ticket) {
  if (completed_ >= ticket || closed()) return nullptr;
  auto covering = std::lower_bound(marks_.begin(), marks_.end(), ticket,
                                   [](const Mark& m, uint64_t t) { return m.ticket < t; });
  if (covering != marks_.end()) return covering->event;
  // Reserves memory first: after an event was recorded, moving it to `spare_` must not fail.
  reserve_spare();
  marks_.push_back({submitted_, nullptr});
  tn_event* event = new_mark();
  if (event)
    marks_.back().event = event;
  else
    marks_.pop_back();
  return event;
}

// Returns an event behind all work that is queued. Returns null if the device gives none; the
// reason is in the log then.
tn_event* PluginStream::new_mark() {
  tn_event* event = take_event();
  if (!event || record_event(event)) return event;
  spare_.push_back(event);
  return nullptr;
}

// These two log the reason if they fail.
tn_event* PluginStream::take_event() {
  tn_event* event = nullptr;
  if (spare_.empty()) {
    if (tn_error* error = api_.event_create(device_, &event)) add_mark_error(error);
  } else {
    event = spare_.back();
    spare_.pop_back();
  }
  return event;
}
bool PluginStream::record_event(tn_event* event) {
  tn_error* error = api_.event_record(event, stream_);
  if (error) add_mark_error(error);
  return !error;
}

void PluginStream::release(const Mark& mark) {
  if (mark.event) spare_.push_back(mark.event);
  if (mark.begin) spare_.push_back(mark.begin);
}

void PluginStream::poll() {
  while (!marks_.empty() && !awaited_) {
    int32_t done = 0;
    tn_error* error = api_.event_query(marks_.front().event, &done);
    if (!error && !done) return;
    add_late_error(error, marks_.front().ticket);
    retire_front();
  }
}

void PluginStream::retire_front() {
  if (marks_.front().work) tell_times(marks_.front());
  completed_.store(std::max(completed_.load(), marks_.front().ticket),
                   std::memory_order_release);  // it is higher already if the device is lost
  release(marks_.front());
  marks_.pop_front();
  retired_.notify_all();
}

std::unique_ptr<DeviceStream> make_plugin_stream(const plugins::CheckedApi& api, tn_device* device,
                                                 const std::string& name, uint32_t number,
                                                 FailureLog* shared) {
  return std::make_unique<PluginStream>(api, device, name, number, shared);
}

}  // namespace tenon
