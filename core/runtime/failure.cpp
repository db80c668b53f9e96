#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include <tenon/core/error.h>
#include <tenon/core/runtime/failure.h>
#include <tenon/core/runtime/retry_until_memory.h>
#include <tenon/plugins/host/backend.h>

namespace tenon {

namespace {
// Made while there is memory, and never freed, because streams may outlive static objects.
const FailureLog::Pointer& unknown_failure =
    *new FailureLog::Pointer(std::make_shared<const Failure>(
        TN_CODE_OUT_OF_MEMORY, "queued work failed, and there was no memory left to say how"));
const FailureLog::Pointer& unknown_loss = *new FailureLog::Pointer(std::make_shared<const Failure>(
    TN_CODE_DEVICE_LOST, "the device is lost, and there was no memory left to say how"));
}  // namespace

FailureLog::Pointer failure_without_text(tn_code code) noexcept {
  auto& ready = code == TN_CODE_DEVICE_LOST ? unknown_loss : unknown_failure;
  ready->seen = false;
  return ready;
}

void throw_error(tn_code code, const std::string& message) {
  switch (code) {
    case TN_CODE_INVALID_ARGUMENT:
      throw ValueError(message);
    case TN_CODE_OUT_OF_RANGE:
      throw IndexError(message);
    case TN_CODE_UNSUPPORTED:
      throw UnsupportedError(message);
    case TN_CODE_OUT_OF_MEMORY:
      throw OutOfMemoryError(message);
    default:
      throw DeviceError(message);
  }
}

void throw_failure(const Failure& f) try { throw_error(f.code, f.message); } catch (Error& error) {
  error.of_earlier_work = true;
  throw;
}

Failure take_failure(tn_error* error, const std::string& prefix, const std::string& suffix) {
  struct End {
    void operator()(tn_error* e) const { e->destroy(e); }
  };
  const std::unique_ptr<tn_error, End> owned(error);
  return {error->code, prefix + plugins::text_of(*error) + suffix};
}

void check(tn_error* error, const std::string& prefix) {
  if (!error) return;
  const Failure failure = take_failure(error, prefix);
  throw_error(failure.code, failure.message);
}

namespace {
// Whether `ticket` is `first` or a later one of the same stream.
bool is_from_on(uint64_t ticket, uint64_t first) {
  return first <= ticket && ticket >> kTicketBits == first >> kTicketBits;
}

constexpr size_t kMaxUnreported =
    100;  // so that a loop which never waits does not fill the memory with failures
}  // namespace

void FailureLog::update_any() {
  any_.store(lost_ || !unreported_.empty() || !poison_.empty(), std::memory_order_release);
}

void FailureLog::add(const Unreported& entry, bool own) {
  const auto& [ticket, failure, late, last] = entry;
  std::lock_guard lock(mutex_);
  const bool loses = own && failure->code == TN_CODE_DEVICE_LOST;
  if (loses && lost_) return;  // all later failures follow from the first
  // A failure that is in several logs, or that caused others, is one event for the user.
  settle();
  // Each wait for a device that has reported a failure brings the same failure again.
  for (auto& u : unreported_)
    if (late && u.late && u.failure == failure && is_from_on(ticket, u.ticket)) {
      u.last = std::max(u.last, last);
      return;
    }
  if (unreported_.size() < kMaxUnreported)
    unreported_.push_back(entry);
  else
    ++dropped_;
  if (loses) {  // only after the entry was made; otherwise this function is called again
    lost_ = failure;
    lost_from_ = late ? ticket : 0;
  }
  update_any();
}

void FailureLog::add_unseen(uint64_t ticket, Pointer failure) {
  retry_until_memory([&] { add({ticket, failure, false, 0}, true); });
}
void FailureLog::add_late(uint64_t first, uint64_t last, Pointer failure) {
  retry_until_memory([&] { add({first, failure, true, last}, true); });
}

FailureLog::Pointer FailureLog::lost() const {
  std::lock_guard lock(mutex_);
  return lost_;
}

FailureLog::Pointer FailureLog::take_lost() const {
  std::lock_guard lock(mutex_);
  if (lost_) lost_->seen = true;
  return lost_;
}

FailureLog::Pointer FailureLog::lose(Pointer failure) {
  std::lock_guard lock(mutex_);
  if (!lost_) lost_ = std::move(failure);
  return mark_seen(lost_);
}

void FailureLog::poison(const void* data, const Footprint& footprint, Pointer failure) {
  retry_until_memory([&] {
    std::lock_guard lock(mutex_);
    poison_.add(static_cast<const char*>(data), footprint, failure);
    update_any();
  });
}

void FailureLog::clear_poison(const void* data, const Footprint& footprint) {
  retry_until_memory([&] {
    std::lock_guard lock(mutex_);
    poison_.remove(static_cast<const char*>(data), footprint);
    update_any();
  });
}

FailureLog::Pointer FailureLog::poisoned(const void* data, const Footprint& footprint) const {
  std::lock_guard lock(mutex_);
  return lost_ ? lost_ : poison_.find(static_cast<const char*>(data), footprint);
}

bool Failure::tell_this_thread() const {
  const int thread = gettid();
  std::lock_guard lock(lock_);
  if (std::find(told_.begin(), told_.end(), thread) != told_.end()) return false;
  try {
    told_.push_back(thread);
  } catch (const std::bad_alloc&) {  // it may be told twice
  }
  return true;
}

// Takes out what was reported to the user. Late failures are kept for other threads.
void FailureLog::settle() {
  for (auto& u : unreported_)
    if (u.late && u.failure->seen) {
      told_[next_told_++ % told_.size()] = {u.ticket, u.last, u.failure};
      told_up_to_.store(std::max(told_up_to_.load(), u.last), std::memory_order_release);
    }
  std::erase_if(unreported_, [](const Unreported& u) { return u.failure->seen.load(); });
}

FailureLog::Pointer FailureLog::find_told(uint64_t ticket) const {
  for (auto& t : told_)
    if (t.failure && t.first <= ticket && ticket <= t.last && t.failure->tell_this_thread())
      return t.failure;
  return nullptr;
}

FailureLog::Pointer FailureLog::mark_seen(Pointer failure) {
  if (failure) failure->seen = true;
  if (failure) failure->tell_this_thread();
  settle();
  update_any();
  return failure;
}

FailureLog::Pointer FailureLog::take_for_value(uint64_t ticket, const void* data,
                                               const Footprint& footprint) {
  std::lock_guard lock(mutex_);
  if (lost_) return mark_seen(lost_);
  if (auto f = poison_.find(static_cast<const char*>(data), footprint))
    return mark_seen(std::move(f));
  settle();  // another log may have reported some
  for (auto& u : unreported_)
    if (u.late && is_from_on(ticket, u.ticket) && !u.failure->seen.exchange(true))
      return mark_seen(Pointer(u.failure));
  return mark_seen(find_told(ticket));
}

FailureLog::Pointer FailureLog::take_for_call(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  settle();
  for (auto& u : unreported_)
    if ((u.late ? is_from_on(ticket, u.ticket) : u.ticket == ticket) &&
        !u.failure->seen.exchange(true))
      return mark_seen(Pointer(u.failure));
  return mark_seen(find_told(ticket));
}

FailureLog::Pointer FailureLog::take_told(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  return find_told(ticket);
}

FailureLog::Pointer FailureLog::take_unreported() {
  std::lock_guard lock(mutex_);
  for (auto& u : unreported_)
    if (!u.failure->seen.exchange(true)) return mark_seen(Pointer(u.failure));
  return mark_seen(nullptr);
}

uint64_t FailureLog::take_dropped() {
  std::lock_guard lock(mutex_);
  return std::exchange(dropped_, 0);
}

FailureLog::Pointer FailureLog::late_up_to(uint64_t ticket) const {
  std::lock_guard lock(mutex_);
  // Nobody knows whether work on other streams of the device was done before.
  const bool same_stream = ticket >> kTicketBits == lost_from_ >> kTicketBits;
  if (lost_ && (lost_from_ <= ticket || !same_stream)) return lost_;
  for (auto& u : unreported_)
    if (u.late && is_from_on(ticket, u.ticket) && !u.failure->seen) return u.failure;
  return nullptr;
}

void FailureLog::take_over(const FailureLog& other, const void* data, uint64_t bytes) {
  if (this == &other || (!any() && !other.any())) return;
  clear_poison(data, bytes);
  if (auto failure = other.poisoned(data, bytes)) poison(data, bytes, failure);
}

void FailureLog::pass_on(uint64_t ticket, FailureLog& other, const void* data,
                         uint64_t bytes) const {
  if (auto failure = late_up_to(ticket); failure && data) other.poison(data, bytes, failure);
}

void FailureLog::pass_on_late(uint64_t ticket, FailureLog& other, uint64_t first,
                              uint64_t last) const {
  auto failure = late_up_to(ticket);
  if (!failure) return;
  // The loss of this device does not mean that the other device is lost.
  const bool is_loss = failure == lost();
  if (is_loss && this == &other) return;
  retry_until_memory([&] {
    other.add({first,
               is_loss ? std::make_shared<const Failure>(failure->code, failure->message) : failure,
               true, std::max(first, last)},
              false);
  });
}

}  // namespace tenon
