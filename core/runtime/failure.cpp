#include <algorithm>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include <tenon/core/error.h>
#include <tenon/core/runtime/failure.h>

namespace tenon {

namespace {
// Made while there is memory, and never ended: streams may outlive static objects.
const FailureLog::Pointer& untold = *new FailureLog::Pointer(std::make_shared<const Failure>(
    TN_CODE_OUT_OF_MEMORY, "queued work failed, and there was no memory left to say how"));
const FailureLog::Pointer& untold_loss = *new FailureLog::Pointer(std::make_shared<const Failure>(
    TN_CODE_DEVICE_LOST, "the device is lost, and there was no memory left to say how"));
}  // namespace

FailureLog::Pointer untold_failure(tn_code code) noexcept {
  auto& ready = code == TN_CODE_DEVICE_LOST ? untold_loss : untold;
  ready->seen = false;
  return ready;
}

void throw_failure(const Failure& f) {
  switch (f.code) {
    case TN_CODE_INVALID_ARGUMENT:
      throw ValueError(f.message);
    case TN_CODE_OUT_OF_RANGE:
      throw IndexError(f.message);
    case TN_CODE_UNSUPPORTED:
      throw UnsupportedError(f.message);
    case TN_CODE_OUT_OF_MEMORY:
      throw OutOfMemoryError(f.message);
    default:
      throw DeviceError(f.message);
  }
}

Failure take_failure(tn_error* error, const std::string& prefix, const std::string& suffix) {
  struct End {
    void operator()(tn_error* e) const { e->destroy(e); }
  };
  const std::unique_ptr<tn_error, End> owned(error);
  Failure f{error->code, prefix + (error->message ? error->message : "the plugin gave no message")};
  for (size_t i = 0; i < error->num_details; ++i)
    f.message +=
        (i ? ", " : " [") + std::string(error->details[i].key) + " " + error->details[i].value;
  if (error->num_details) f.message += "]";
  f.message += suffix;
  return f;
}

void check(tn_error* error, const std::string& prefix) {
  if (error) throw_failure(take_failure(error, prefix));
}

namespace {
constexpr size_t kMaxUntold =
    100;  // a loop that never waits must not fill the memory with what it could have been told

// What failed has to be filed, by threads that have nobody to throw to. Where there is no memory
// for the few bytes that this takes, they wait until somebody has freed some; without a lock, which
// that may need.
template <class F>
void insist(F&& file) {
  for (;;) {
    try {
      return file();
    } catch (const std::bad_alloc&) {
      std::this_thread::yield();
    }
  }
}
}  // namespace

void FailureLog::update_any() {
  any_.store(lost_ || !untold_.empty() || !poison_.empty(), std::memory_order_release);
}

void FailureLog::add(uint64_t ticket, Pointer failure, bool late, bool own) {
  std::lock_guard lock(mutex_);
  const bool loses = own && failure->code == TN_CODE_DEVICE_LOST;
  if (loses && lost_) return;  // all that follows is of the first
  // One failure in several logs, or followed by others of the same origin, is one event for the
  // user.
  std::erase_if(untold_, [](const Untold& u) { return u.failure->seen.load(); });
  // Each wait for a device that has reported it brings the same once more.
  const auto covers = [&](const Untold& u) {
    return u.late && u.failure == failure && u.ticket <= ticket;
  };
  if (late && std::any_of(untold_.begin(), untold_.end(), covers)) return;
  if (untold_.size() < kMaxUntold)
    untold_.push_back({ticket, failure, late});
  else
    ++dropped_;
  if (loses) {  // when it is filed: where there was no memory for that, this is called again
    lost_ = failure;
    lost_from_ = late ? ticket : 0;
  }
  update_any();
}

void FailureLog::add_unseen(uint64_t ticket, Pointer failure) {
  insist([&] { add(ticket, failure, false, true); });
}
void FailureLog::add_late(uint64_t first, Pointer failure) {
  insist([&] { add(first, failure, true, true); });
}

FailureLog::Pointer FailureLog::lost() const {
  std::lock_guard lock(mutex_);
  return lost_;
}

void FailureLog::poison(const void* data, const Footprint& footprint, Pointer failure) {
  insist([&] {
    std::lock_guard lock(mutex_);
    poison_.add(static_cast<const char*>(data), footprint, failure);
    update_any();
  });
}

void FailureLog::heal(const void* data, const Footprint& footprint) {
  insist([&] {
    std::lock_guard lock(mutex_);
    poison_.remove(static_cast<const char*>(data), footprint);
    update_any();
  });
}

FailureLog::Pointer FailureLog::poisoned(const void* data, const Footprint& footprint) const {
  std::lock_guard lock(mutex_);
  return lost_ ? lost_ : poison_.find(static_cast<const char*>(data), footprint);
}

FailureLog::Pointer FailureLog::tell(Pointer failure) {
  if (failure) failure->seen = true;
  std::erase_if(untold_, [](const Untold& u) { return u.failure->seen.load(); });
  update_any();
  return failure;
}

FailureLog::Pointer FailureLog::take_for_value(uint64_t ticket, const void* data,
                                               const Footprint& footprint) {
  std::lock_guard lock(mutex_);
  if (lost_) return tell(lost_);
  if (auto f = poison_.find(static_cast<const char*>(data), footprint)) return tell(std::move(f));
  for (auto& u : untold_)
    if (u.late && u.ticket <= ticket && !u.failure->seen.exchange(true))
      return tell(Pointer(u.failure));
  return tell(nullptr);
}

FailureLog::Pointer FailureLog::take_for_call(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  for (auto& u : untold_)
    if ((u.late ? u.ticket <= ticket : u.ticket == ticket) && !u.failure->seen.exchange(true))
      return tell(Pointer(u.failure));
  return tell(nullptr);
}

FailureLog::Pointer FailureLog::take_untold() {
  std::lock_guard lock(mutex_);
  for (auto& u : untold_)
    if (!u.failure->seen.exchange(true)) return tell(Pointer(u.failure));
  return tell(nullptr);
}

uint64_t FailureLog::take_dropped() {
  std::lock_guard lock(mutex_);
  return std::exchange(dropped_, 0);
}

FailureLog::Pointer FailureLog::late_up_to(uint64_t ticket) const {
  std::lock_guard lock(mutex_);
  if (lost_ && lost_from_ <= ticket) return lost_;
  for (auto& u : untold_)
    if (u.late && u.ticket <= ticket && !u.failure->seen) return u.failure;
  return nullptr;
}

void FailureLog::hand_on(uint64_t ticket, FailureLog& other, const void* data,
                         uint64_t bytes) const {
  if (auto failure = late_up_to(ticket)) other.poison(data, bytes, failure);
}

void FailureLog::hand_on_late(uint64_t ticket, FailureLog& other, uint64_t first) const {
  auto failure = late_up_to(ticket);
  if (!failure) return;
  // That this stream's device is lost is no reason to give the other's up.
  const bool is_loss = failure == lost();
  insist([&] {
    other.add(first,
              is_loss ? std::make_shared<const Failure>(failure->code, failure->message) : failure,
              true, false);
  });
}

}  // namespace tenon
