// Errors of queued work: kept with the stream until somebody was told, and with the memory that was
// never written.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/runtime/poison_map.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

struct Failure {
  Failure(tn_code code, std::string message) : code(code), message(std::move(message)) {}
  Failure(Failure&& other) : code(other.code), message(std::move(other.message)) {}

  tn_code code;
  std::string message;
  mutable std::atomic<bool> seen{false};  // somebody was told, whichever log it came from
};
// Throws the class of Error that the code stands for.
[[noreturn]] void throw_failure(const Failure& failure);
// Takes the error over and destroys it. `prefix` comes before its message, `suffix` after its
// details.
Failure take_failure(tn_error* error, const std::string& prefix = "",
                     const std::string& suffix = "");
// Throws where `error` is not null; takes it over.
void check(tn_error* error, const std::string& prefix);

// One a stream. Three questions are kept apart. What was never written: poisoned memory, byte by
// byte, until it is written; whoever reads it is told why, each time. Who was told: a failure that
// somebody has read from a value is over; the others reach the next synchronize(), or the end of
// the program, once. And what a device reports late, which names no memory: it may be in any value
// written since its work was last known to be sound, so the first reader of such a value is told.
class FailureLog {
 public:
  using Pointer = std::shared_ptr<const Failure>;

  // Cheap guard for the hot path: false means that there is nothing to look up.
  bool any() const { return any_.load(std::memory_order_acquire); }

  // Work with this ticket failed; what it did not write is poisoned besides. A lost device is
  // remembered: from then on every value of the stream counts as poisoned.
  void add_unseen(uint64_t ticket, Pointer failure);
  // Some work from this ticket on failed.
  void add_late(uint64_t first, Pointer failure);
  // The failure with which the device was lost; null while it works.
  Pointer lost() const;

  void poison(const void* data, const Footprint& footprint, Pointer failure);
  void heal(const void* data, const Footprint& footprint);
  // Why some of these bytes were never written; null where all are sound.
  Pointer poisoned(const void* data, const Footprint& footprint) const;

  // Each marks what it returns as told. For the reader of a value that `ticket` wrote: its poison,
  // or what was reported late.
  Pointer take_for_value(uint64_t ticket, const void* data, const Footprint& footprint);
  // For who made the call with this ticket.
  Pointer take_for_call(uint64_t ticket);
  // Whatever nobody was told of yet, one at a time.
  Pointer take_untold();
  // How many failures were not kept, because nobody asked for a long time. Starts again at 0.
  uint64_t take_dropped();

  // The values at `data` came from work of this stream up to `ticket` and are read on the stream of
  // `other` from now on: what was reported late poisons them there.
  void hand_on(uint64_t ticket, FailureLog& other, const void* data, uint64_t bytes) const;
  // The same where work of `other` from ticket `first` on may have read what this stream made up to
  // `ticket`. A loss is a failure of its own there: it is not over because somebody was told who
  // read from the lost device.
  void hand_on_late(uint64_t ticket, FailureLog& other, uint64_t first) const;

 private:
  struct Untold {
    uint64_t ticket;  // `late`: the first that it may be of
    Pointer failure;
    bool late;
  };
  void add(uint64_t ticket, Pointer failure, bool late, bool own);
  Pointer tell(Pointer failure);
  Pointer late_up_to(uint64_t ticket) const;
  void update_any();

  std::atomic<bool> any_{false};
  mutable ForkMutex mutex_{ForkOrder::tables};
  std::vector<Untold> untold_;
  uint64_t dropped_ = 0;
  PoisonMap poison_;
  Pointer lost_;
  uint64_t lost_from_ = 0;  // work before this ticket is known to be sound
};

// What there is no memory to tell of; not seen yet. That a device is lost is known all the same.
FailureLog::Pointer untold_failure(tn_code code) noexcept;

// The plugin's error, which is taken over, with `texts()` before and after it: for whoever has
// nobody to throw to.
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
    return untold_failure(code);
  }
}

}  // namespace tenon
