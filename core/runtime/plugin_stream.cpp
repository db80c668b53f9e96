#include <algorithm>
#include <cstring>
#include <utility>

#include <tenon/core/error.h>
#include <tenon/core/runtime/capture.h>
#include <tenon/core/runtime/plugin_stream.h>

namespace tenon {

PluginStream::PluginStream(const tn_backend_api& api, tn_device* device, const std::string& name)
    : Stream(name), ForkMember(ForkOrder::streams), api_(api), device_(device) {
  join();
  check(api_.stream_create(device_, &stream_), "cannot create a stream: ");
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
  retired_.wait(lock, [&] { return !awaited_; });
  for (auto& m : marks_) api_.event_destroy(m.event);
  for (auto* e : spare_) api_.event_destroy(e);
  marks_.clear();
  spare_.clear();
  api_.stream_destroy(stream_);
  completed_.store(submitted_);
}

// A device's driver does not survive a fork, and its plugin must not be called in the child, not
// even to clean up. Its locks may belong to threads that are not here; what the destructors of the
// old ones would wait for never comes.
void PluginStream::after_fork(bool in_child) {
  if (!in_child) return;
  new (&mutex_) std::mutex;
  new (&retired_) std::condition_variable;
  new (&sources_) std::vector<Source>;  // a thread that is not here may have been changing it
  capturing_thread_ = std::thread::id();
  capture_ = nullptr;
  closed_ =
      "the process that this one was forked from had opened it; open devices after the fork, or "
      "start a new program (exec)";
  completed_.store(submitted_);
  forget_failures();
}

// ---- queueing ----

// Once a device is lost, nothing goes there any more: every call fails with what happened first.
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
  std::lock_guard lock(mutex_);
  if (capturing()) return record(l);
  require_usable();
  const uint64_t ticket = next_ticket(&l, nullptr);
  run_and_file(failures, l, current_path(), ticket, stream_);
  return ticket;
}

uint64_t PluginStream::copy(const CopyTask& task) {
  std::lock_guard lock(mutex_);
  refuse_while_capturing("a copy between devices is not possible");
  require_usable();
  const uint64_t ticket = next_ticket(nullptr, "copy between devices");
  copy_and_file(failures, task, ticket, stream_);
  return ticket;
}

void PluginStream::wait_for(Stream& other, uint64_t ticket, const void* data, uint64_t) {
  if (&other == this) return;
  // What its device has reported so far is of work that is read here from now on. Who only waits to
  // overwrite reads nothing.
  auto hear = [&] {
    if (data && other.failures.any()) other.failures.hand_on_late(ticket, failures, last() + 1);
  };
  if (other.reached(ticket)) return hear();
  refuse_while_capturing("waiting for another device is not possible");
  auto* peer = dynamic_cast<PluginStream*>(&other);
  // Only streams of one plugin can wait for each other on the device. For any other the host has
  // to, and where the device has no memory for an event.
  const bool on_device =
      peer && peer->api_.backend == api_.backend && peer->api_.stream_wait == api_.stream_wait;
  if (on_device && queue_wait(*peer, ticket, data != nullptr)) return;
  other.wait(ticket);
  hear();
}

// False where nothing was queued although there is something to wait for.
bool PluginStream::queue_wait(PluginStream& peer, uint64_t ticket, bool reads) {
  std::scoped_lock lock(mutex_, peer.mutex_);
  peer.refuse_while_capturing("waiting for the device is not possible");
  if (closed() || peer.closed()) return true;
  if (reads) {
    std::erase_if(sources_, [&](const Source& s) {
      return s.first <= completed_ && s.stream->completed_ >= s.ticket && !s.stream->failures.any();
    });
    sources_.push_back({&peer, ticket, submitted_ + 1});
  }
  tn_event* event = peer.mark_covering(ticket);
  if (!event) return peer.completed_ >= ticket;
  tn_error* error = api_.stream_wait(stream_, event);
  if (error && error->code == TN_CODE_OUT_OF_MEMORY) return error->destroy(error), false;
  file(error, submitted_);
  return true;
}

PluginStream::Together::Together(std::span<PluginStream* const> streams)
    : streams_(streams), locked_(streams.begin(), streams.end()) {
  std::sort(locked_.begin(), locked_.end(), std::less<>());
  for (auto* s : locked_) s->mutex_.lock();
}

PluginStream::Together::~Together() {
  for (auto* s : locked_) s->mutex_.unlock();
}

void PluginStream::Together::prepare(const char* what) {
  for (auto* s : streams_) {
    if (s->capturing()) s->refuse((std::string(what) + " is not possible").c_str());
    s->require_usable();
    handles.push_back(s->stream_);
  }
  for (auto* s : streams_) s->next_ticket(nullptr, what);
}

FailureLog::Pointer PluginStream::Together::finish(tn_error* error, const char* what) {
  if (!error) return nullptr;
  auto failure = failure_of(error, [&] {
    std::string devices;
    for (auto* s : streams_) devices += (devices.empty() ? "" : ", ") + s->name_;
    return std::pair(std::string(what) + " over " + devices + ": ", "");
  });
  for (auto* s : streams_) s->failures.add_unseen(s->submitted_, failure);
  return failure;
}

// ---- waiting ----

bool PluginStream::reached(uint64_t ticket) {
  if (completed_.load(std::memory_order_acquire) >= ticket) return true;
  // Whoever holds the lock may be waiting for the device. What it has not seen done counts as not
  // done.
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || capturing()) return false;
  if (completed_ >= ticket) return true;
  try {
    mark_covering(ticket);
    poll();
  } catch (const std::bad_alloc&) {  // memory that is freed asks this, and must not fail; the next
                                     // one to ask learns more
  }
  return completed_ >= ticket;
}

void PluginStream::wait(uint64_t ticket) {
  {
    std::unique_lock lock(mutex_);
    wait_locked(lock, ticket);
    if (sources_.empty()) return;
  }
  hear_of_sources(ticket);
}

// What another device's work did that was read here is known by now, or will be at once. Without
// the lock: each stream takes its own. What was heard is struck out afterwards, so that no other
// waiter goes on without it.
void PluginStream::hear_of_sources(uint64_t ticket) {
  std::vector<Source> heard;
  {
    std::lock_guard lock(mutex_);
    for (auto& s : sources_)
      if (s.first <= ticket) heard.push_back(s);
  }
  for (auto& s : heard) {
    s.stream->wait(s.ticket);
    if (s.stream->failures.any()) s.stream->failures.hand_on_late(s.ticket, failures, s.first);
  }
  std::lock_guard lock(mutex_);
  std::erase_if(sources_, [&](const Source& s) {
    return std::find(heard.begin(), heard.end(), s) != heard.end();
  });
}

void PluginStream::wait_locked(std::unique_lock<std::mutex>& lock, uint64_t ticket) {
  if (completed_ >= ticket) return;
  refuse_while_capturing("waiting for a value is not possible");
  give_up_if_lost();
  if (completed_ >= ticket) return;
  mark_covering(ticket);
  // Oldest first, and by one thread at a time, so that each mark's error is filed once and with its
  // own work.
  while (completed_ < ticket && !marks_.empty()) {
    if (awaited_)
      retired_.wait(lock);
    else
      await_front(lock);
  }
  give_up_if_lost();
}

// Without the lock, or nobody could queue while somebody waits. Until this ends, nobody else
// retires the front mark.
void PluginStream::await_front(std::unique_lock<std::mutex>& lock) {
  awaited_ = true;
  tn_event* event = marks_.front().event;
  lock.unlock();
  tn_error* error = api_.event_wait(event);
  lock.lock();
  awaited_ = false;
  file(error, marks_.front().ticket);
  retire_front();
}

// Others may queue meanwhile. Ends where waiting leads no further, too: why is filed.
void PluginStream::wait_until_idle(std::unique_lock<std::mutex>& lock) {
  for (uint64_t before = ~uint64_t{0};
       !capturing() && completed_ < submitted_ && completed_ != before;) {
    before = completed_;
    wait_locked(lock, submitted_);
  }
}

// Nothing more can be learned of the work on a lost device.
void PluginStream::give_up_if_lost() {
  if (!failures.any() || !failures.lost()) return;
  while (marks_.size() > (awaited_ ? 1 : 0)) {
    spare_.push_back(marks_.back().event);
    marks_.pop_back();
  }
  completed_.store(submitted_);
  retired_.notify_all();
}

// An event that is reached after `ticket`: one recorded before, or a new one; null where it is
// reached already.
tn_event* PluginStream::mark_covering(uint64_t ticket) {
  if (completed_ >= ticket || closed()) return nullptr;
  auto covering = std::lower_bound(marks_.begin(), marks_.end(), ticket,
                                   [](const Mark& m, uint64_t t) { return m.ticket < t; });
  if (covering != marks_.end()) return covering->event;
  // Room first: once an event is recorded, nothing on its way to `spare_` may fail.
  spare_.reserve(marks_.size() + spare_.size() + 1);
  marks_.push_back({submitted_, nullptr});
  tn_event* event = new_mark();
  if (event)
    marks_.back().event = event;
  else
    marks_.pop_back();
  return event;
}

// An event behind all that is queued; null, and why is filed, where the device gives none.
tn_event* PluginStream::new_mark() {
  tn_event* event = nullptr;
  if (spare_.empty()) {
    file(api_.event_create(device_, &event), submitted_);
  } else {
    event = spare_.back();
    spare_.pop_back();
  }
  if (!event) return nullptr;
  if (tn_error* error = api_.event_record(event, stream_)) {
    file(error, submitted_);
    spare_.push_back(event);
    return nullptr;
  }
  return event;
}

void PluginStream::poll() {
  while (!marks_.empty() && !awaited_) {
    int32_t done = 0;
    tn_error* error = api_.event_query(marks_.front().event, &done);
    if (!error && !done) return;
    file(error, marks_.front().ticket);
    retire_front();
  }
}

void PluginStream::retire_front() {
  completed_.store(std::max(completed_.load(), marks_.front().ticket),
                   std::memory_order_release);  // given up: higher already
  spare_.push_back(marks_.front().event);
  marks_.pop_front();
  retired_.notify_all();
}

// ---- late errors ----

// Filed with the oldest work that it may be of, so that whoever waits for any of it is told.
void PluginStream::file(tn_error* error, uint64_t ticket) {
  if (error) failures.add_late(std::min(completed_ + 1, ticket), name_late(error, ticket));
}

FailureLog::Pointer PluginStream::name_late(tn_error* error, uint64_t last) const {
  return failure_of(error, [&] {
    std::string op;
    for (size_t i = 0; i < error->num_details; ++i)
      if (error->details[i].key && std::strcmp(error->details[i].key, "op") == 0 &&
          error->details[i].value)
        op = error->details[i].value;
    const bool lost = error->code == TN_CODE_DEVICE_LOST;
    return std::pair(lost ? name_ + " is lost and cannot be used again in this process: "
                          : "queued work failed: ",
                     in_flight(last, op));
  });
}

// What of the work up to ticket `last` is not known to be done, the newest last. Only of operator
// `op`, where that is given and there.
std::string PluginStream::in_flight(uint64_t last, const std::string& op) const {
  constexpr size_t most = 8;
  std::vector<std::string> names, of_op;
  const uint64_t oldest =
      std::max<uint64_t>(completed_ + 1, last >= ring_.size() ? last - ring_.size() + 1 : 1);
  for (uint64_t t = oldest; t <= last; ++t) {
    auto& q = ring_[t % ring_.size()];
    if (q.ticket != t) continue;
    std::string path = path_string(q.path);
    std::string text = (q.plan ? q.plan->describe(&q.shape) : q.what + (" on " + name_)) +
                       (path.empty() ? "" : ", queued by module " + path);
    if (q.plan && op == q.plan->name()) of_op.push_back(text);
    names.push_back(std::move(text));
  }
  auto& found = of_op.empty() ? names : of_op;
  if (found.empty()) return "";
  if (found.size() == 1) return "\n  in " + found[0];
  std::string text = "\n  in one of the " + std::to_string(found.size()) + " operators in flight:";
  for (size_t i = found.size() - std::min(found.size(), most); i < found.size(); ++i)
    text += "\n    " + found[i];
  return text +
         (found.size() > most ? "\n    and " + std::to_string(found.size() - most) + " before them"
                              : "") +
         "\n  (TENON_SYNC=1 waits after each and tells which)";
}

std::unique_ptr<Stream> make_plugin_stream(const tn_backend_api& api, tn_device* device,
                                           const std::string& name) {
  return std::make_unique<PluginStream>(api, device, name);
}

}  // namespace tenon
