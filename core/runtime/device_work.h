// Work on a stream of its device, as those who watch call it, until it is known when the device did
// it.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {
class DeviceContext;
}

namespace tenon::observe {

struct DeviceWork {
  int64_t queued_ns = 0;  // of the steady clock: when the program asked for it
  // The event in the file of a trace; without a name there is none.
  const DeviceContext* context = nullptr;  // of the stream
  const char* category = "";
  std::string name, args;
  // The record of a profiler; 0 without one.
  uint64_t recording = 0, record = 0;

  bool watched() const { return !name.empty() || recording; }
};

// Whether anybody wants to know when devices do their work: a profiler, or a trace with a file.
bool times_wanted();
// The device did it between these times of the steady clock, in nanoseconds.
void add_times(const DeviceWork& work, int64_t began, int64_t ended) noexcept;

}  // namespace tenon::observe
