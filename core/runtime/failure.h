// Errors of queued work: kept with the stream until somebody waits, and with the memory that was never written.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

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
// Takes the error over and destroys it. `prefix` comes before its message, `suffix` after its details.
Failure take_failure(tn_error* error, const std::string& prefix = "", const std::string& suffix = "");
// Throws where `error` is not null; takes it over.
void check(tn_error* error, const std::string& prefix);

// One a stream. `unseen` reaches the next wait that covers it; memory that failed work should have written stays poisoned until it
// is written, so its values can never be read as if they were there.
class FailureLog {
 public:
  using Pointer = std::shared_ptr<const Failure>;

  // Cheap guard for the hot path: false means that there is nothing to look up.
  bool any() const { return any_.load(std::memory_order_acquire); }

  // A lost device is remembered: from then on every value of the stream counts as poisoned.
  void add_unseen(uint64_t ticket, Pointer failure);
  // The failure with which the device was lost; null while it works.
  Pointer lost() const;
  void poison(const void* data, uint64_t bytes, Pointer failure);
  void heal(const void* data, uint64_t bytes);
  // Why the value at `data` was never made; null where it is sound.
  Pointer poisoned(const void* data, uint64_t bytes = 1) const;
  // The first failure at or before `ticket` that nobody has seen, once.
  Pointer take_unseen(uint64_t ticket);
  // Another stream has waited for `ticket`, and its work up to `reached` relies on that: who waits there is told what nobody has
  // seen here. Memory that the work here should have written, and the lost device did not, is poisoned there.
  void tell(uint64_t ticket, FailureLog& other, uint64_t reached, const void* data, uint64_t bytes) const;

 private:
  struct Unseen {
    uint64_t ticket;
    Pointer failure;
  };
  void add_told(uint64_t ticket, Pointer failure);
  struct Range {
    const char* begin;
    const char* end;
    Pointer failure;
  };
  void update_any();

  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::vector<Unseen> unseen_;
  std::vector<Range> ranges_;
  Pointer lost_;
};

}  // namespace tenon
