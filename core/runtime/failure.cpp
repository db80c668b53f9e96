#include <tenon/core/error.h>
#include <tenon/core/runtime/failure.h>

#include <algorithm>

namespace tenon {

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
  Failure f{error->code, prefix + (error->message ? error->message : "the plugin gave no message")};
  for (size_t i = 0; i < error->num_details; ++i)
    f.message += (i ? ", " : " [") + std::string(error->details[i].key) + " " + error->details[i].value;
  if (error->num_details) f.message += "]";
  f.message += suffix;
  error->destroy(error);
  return f;
}

void check(tn_error* error, const std::string& prefix) {
  if (error) throw_failure(take_failure(error, prefix));
}

void FailureLog::update_any() { any_.store(lost_ || !unseen_.empty() || !ranges_.empty(), std::memory_order_release); }

void FailureLog::add_unseen(uint64_t ticket, Pointer failure) {
  std::lock_guard lock(mutex_);
  if (failure->code == TN_CODE_DEVICE_LOST) {
    if (lost_) return;  // all that follows is of the first
    lost_ = failure;
  }
  unseen_.push_back({ticket, std::move(failure)});
  update_any();
}

void FailureLog::poison(const void* data, uint64_t bytes, Pointer failure) {
  if (!data || !bytes) return;
  std::lock_guard lock(mutex_);
  auto* begin = static_cast<const char*>(data);
  ranges_.push_back({begin, begin + bytes, std::move(failure)});
  update_any();
}

void FailureLog::heal(const void* data, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto* begin = static_cast<const char*>(data);
  std::erase_if(ranges_, [&](const Range& r) { return r.begin < begin + bytes && begin < r.end; });
  update_any();
}

FailureLog::Pointer FailureLog::lost() const {
  std::lock_guard lock(mutex_);
  return lost_;
}

FailureLog::Pointer FailureLog::poisoned(const void* data, uint64_t bytes) const {
  std::lock_guard lock(mutex_);
  if (lost_) return lost_;
  auto* p = static_cast<const char*>(data);
  for (auto& r : ranges_)
    if (p < r.end && r.begin < p + bytes) return r.failure;
  return nullptr;
}

FailureLog::Pointer FailureLog::take_unseen(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  // Followers of one failure, and the same one in other logs, are one event for the user.
  std::erase_if(unseen_, [](const Unseen& u) { return u.failure->seen.load(); });
  Pointer found;
  for (auto& u : unseen_)
    if (u.ticket <= ticket && !u.failure->seen.exchange(true)) {
      found = u.failure;
      break;
    }
  if (found) std::erase_if(unseen_, [&](const Unseen& u) { return u.failure == found; });
  update_any();
  return found;
}

void FailureLog::tell(uint64_t ticket, FailureLog& other, uint64_t reached, const void* data, uint64_t bytes) const {
  std::vector<Pointer> told;
  Pointer lost;
  {
    std::lock_guard lock(mutex_);
    for (auto& u : unseen_)
      if (u.ticket <= ticket && !u.failure->seen) told.push_back(u.failure);
    lost = lost_;
  }
  for (auto& failure : told) other.add_told(reached, std::move(failure));
  if (lost) other.poison(data, bytes, lost);
}

// The device that is lost is another's.
void FailureLog::add_told(uint64_t ticket, Pointer failure) {
  std::lock_guard lock(mutex_);
  for (auto& u : unseen_)
    if (u.failure == failure) return;
  unseen_.push_back({ticket, std::move(failure)});
  update_any();
}

}  // namespace tenon
