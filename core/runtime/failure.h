// Errors of queued work. They are kept in the log of the device until they were reported to the
// user, and with the memory that was not written because of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/spin_lock.h>
#include <tenon/core/runtime/poison_map.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

// The number of a stream in its device is in the upper bits of its tickets, so those of one device
// are never equal; 0 is the first stream, and the ticket 0 that of work which nobody queued.
inline constexpr int kTicketBits = 48;

struct Failure {
  Failure(tn_code code, std::string message) : code(code), message(std::move(message)) {}
  Failure(Failure&& other) : code(other.code), message(std::move(other.message)) {}

  // Notes that this thread is told of it. Returns false if it was told before. Call it with the
  // lock of a log.
  bool tell_this_thread() const;

  tn_code code;
  std::string message;
  mutable std::atomic<bool> seen{false};  // it was reported to the user, from whichever log

 private:
  mutable SpinLock lock_;
  mutable std::vector<int> told_;  // threads, by the number that the system gives them
};
// Throws the class of Error that belongs to the code: for a failure of a log, as one of earlier
// work, and for a call that fails now.
[[noreturn]] void throw_failure(const Failure& failure);
[[noreturn]] void throw_error(tn_code code, const std::string& message);
// Converts the error and destroys it. `prefix` comes before its message, and `suffix` after its
// details.
Failure take_failure(tn_error* error, const std::string& prefix = "",
                     const std::string& suffix = "");
// Throws if `error` is not null. Destroys the error.
void check(tn_error* error, const std::string& prefix);

// Each device has a FailureLog, which answers three questions. Which memory was never written? It
// is poisoned, byte by byte, until something writes it, and every read of it throws the reason.
// Which failures are not reported yet? A failure is reported when a read of a value throws it; the
// others are thrown by the next synchronize(), or printed at exit, once. And which failures did the
// device report late, without naming the memory? Such a failure may affect every value that was
// written since the work of the device was last known to be correct, so the first read of such a
// value throws it, in each thread that makes one: what one thread was told does not help another.
class FailureLog {
 public:
  using Pointer = std::shared_ptr<const Failure>;

  // A cheap test for the hot path: false means that there is nothing to look up.
  bool any() const { return any_.load(std::memory_order_acquire); }

  // Work with this ticket failed; the caller also poisons the memory that it did not write. If the
  // device is lost, the log remembers that, and from then on every value of the device counts as
  // poisoned.
  void add_unseen(uint64_t ticket, Pointer failure);
  // Some of the work from ticket `first` on failed, and all up to `last`, of the same stream, may
  // have read its results.
  void add_late(uint64_t first, uint64_t last, Pointer failure);
  // Returns the failure with which the device was lost; null while it works.
  Pointer lost() const;
  // The same, marked as reported.
  Pointer take_lost() const;
  // A call that is no queued work, such as an allocation, lost the device. Returns the failure with
  // which it was lost first, marked as reported.
  Pointer lose(Pointer failure);

  void poison(const void* data, const Footprint& footprint, Pointer failure);
  void clear_poison(const void* data, const Footprint& footprint);
  // From now on, these bytes are poisoned here if one of them is in `other`.
  void take_over(const FailureLog& other, const void* data, uint64_t bytes);
  // Returns why some of these bytes were never written; null if all were.
  Pointer poisoned(const void* data, const Footprint& footprint) const;

  // The next three functions mark the failure that they return as reported. This one is for a read
  // of the value that `ticket` wrote: it returns the reason of its poison, or a failure that was
  // reported late.
  Pointer take_for_value(uint64_t ticket, const void* data, const Footprint& footprint);
  // For the caller that queued the work with this ticket.
  Pointer take_for_call(uint64_t ticket);
  // Whether take_told may return anything. A cheap test for the hot path.
  bool may_be_told(uint64_t ticket) const {
    return ticket - 1 < told_up_to_.load(std::memory_order_acquire);  // 0: nobody wrote it
  }
  // Returns a failure that was reported late and may have affected what `ticket` wrote, if another
  // thread was told of it and this one was not.
  Pointer take_told(uint64_t ticket);
  // Returns a failure that was not reported yet, one at a time.
  Pointer take_unreported();
  // Returns how many failures were dropped because too many were unreported, and resets the number.
  uint64_t take_dropped();

  // Work of this device up to `ticket` wrote the values at `data`, which that of `other` reads from
  // now on. If a failure of that work was reported late, this poisons the values there.
  void pass_on(uint64_t ticket, FailureLog& other, const void* data, uint64_t bytes) const;
  // The same if work of `other` from ticket `first` to `last` may have read what this stream wrote
  // up to `ticket`. The loss of this device becomes a separate failure there, which has to be
  // reported even if the loss itself was reported already.
  void pass_on_late(uint64_t ticket, FailureLog& other, uint64_t first, uint64_t last) const;

 private:
  struct Unreported {
    uint64_t ticket;  // if late: the first ticket to which it may belong
    Pointer failure;
    bool late;
    uint64_t last;  // if late: the last that it may have affected
  };
  // A late failure that some thread was told of.
  struct Told {
    uint64_t first, last;
    Pointer failure;
  };
  void add(const Unreported& entry, bool own);
  void settle();
  Pointer find_told(uint64_t ticket) const;
  Pointer mark_seen(Pointer failure);
  Pointer late_up_to(uint64_t ticket) const;
  void update_any();

  std::atomic<bool> any_{false};
  mutable ForkMutex mutex_{ForkOrder::tables};
  std::vector<Unreported> unreported_;
  std::array<Told, 16> told_{};  // the newest
  size_t next_told_ = 0;
  std::atomic<uint64_t> told_up_to_{0};  // the last ticket of all of them
  uint64_t dropped_ = 0;
  PoisonMap poison_;
  Pointer lost_;
  uint64_t lost_from_ = 0;  // work before this ticket is known to be correct
};

// Returns a prepared failure, marked as not reported, for the case that there is no memory for its
// text. It still tells whether the device is lost.
FailureLog::Pointer failure_without_text(tn_code code) noexcept;

// Converts and destroys an error of the plugin, and puts `texts()` before and after its message. It
// is for callers that cannot throw.
template <class F>
FailureLog::Pointer failure_of(tn_error* error, F&& texts) noexcept {
  const tn_code code = error->code;
  try {
    std::pair<std::string, std::string> around;
    try {
      around = texts();
    } catch (const std::bad_alloc&) {  // the error itself says more
    }
    return std::make_shared<const Failure>(take_failure(error, around.first, around.second));
  } catch (const std::bad_alloc&) {
    return failure_without_text(code);
  }
}

}  // namespace tenon
