// What checked mode (TENON_CHECK) looks at before and after each copy between devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/core/runtime/check/memory.h>

namespace tenon {
struct CopyTask;
}

namespace tenon::checked {

// One copy on the thread that makes it. As for a run, a device with streams has nothing to do
// meanwhile.
class CopyCheck {
 public:
  CopyCheck(const CopyTask& task, tn_stream* stream);

  // Returns the error with which the device is lost.
  tn_error* before();
  // `error` is that of the copy, or null. Returns it, or what is wrong with what the plugin did.
  tn_error* after(tn_error* error);

 private:
  template <class F>
  void each_spoilt(F&& visit);
  // The first byte of the destination that is not that of the source, and how many are not.
  struct Difference {
    uint64_t at = 0, bytes = 0;
  };
  std::optional<Difference> find_difference();
  // What is wrong with the copy; empty if nothing is.
  std::string difference();
  std::string values_at(uint64_t byte);
  // Returns where the host can read part of a side, which may be in `room`; null if it cannot.
  static const unsigned char* fetch(Memory* memory, const void* data, uint64_t bytes,
                                    std::vector<unsigned char>& room);

  const CopyTask& task_;
  tn_stream* const stream_;
  Memory* const memory_;  // of the device that makes the copy
};

}  // namespace tenon::checked
