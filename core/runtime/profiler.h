// What a part of a program does and how long it takes: the runs of operators, copies, waits and the
// program's own ranges, on which device, for which module.
//
//   profiler::Profiler profiler({.record_shapes = true});
//   train(model);
//   profiler.stop();
//   std::cout << profiler.key_averages() << profiler.module_averages();
//   profiler.export_chrome_trace("trace.json");  // for https://ui.perfetto.dev
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/api.h>
#include <tenon/core/device.h>

namespace tenon::profiler {

struct Options {
  // Keep the types and shapes of each operator's tensors. Their text takes a microsecond or two for
  // each run, which counts for no operator.
  bool record_shapes = false;
  // Keep how many bytes the tensors of the device take after each run.
  bool profile_memory = false;
  // Events beyond these are only counted (`lost`). One takes about 100 bytes.
  uint64_t max_events = 1 << 20;
};

enum class Kind {
  op,          // a run of an operator's plan
  copy,        // between devices, or a device and the host
  collective,  // one device's part of a sum or broadcast over several, which a plugin makes
  wait,        // a thread of the program waited for a device
  gradient,    // the gradient rule of an operator queued its work
  range,       // a Range of the program
};

// One thing that happened. Times are seconds since the profiler began.
struct Event {
  Kind kind = Kind::op;
  // "conv2d", "copy to the host", "all_reduce", "wait for cpu:0", or that of the Range.
  std::string name;
  // The stream that did it, "cpu:0", or a further one of the device: "cpu:0 copies", "cpu:0 sums"
  // of gradients, "cpu:0 stream 1" of a Stream; for what a thread does, "main", "thread 7".
  std::string lane;
  std::string device;   // of an operator, a copy or a collective; else empty
  std::string by;       // the plugin, "onednn"
  std::string module;   // "LeNet.fc1"; empty outside of modules
  std::string part_of;  // "softmax (gradient)": the operators of which it is a part
  std::string tensors;  // with record_shapes: "f32 (2, 3), f32 (3,) -> f32 (2, 3)"
  double queued = 0;    // when the program asked for it
  double began = 0, ended = 0;
  // False if the times are those in which a stream of the device took the work, and not those in
  // which the device did it: it does not say when that was, or the recording ended before.
  bool on_device = true;
  bool failed = false;
  uint64_t bytes = 0;      // of a copy or a collective
  uint64_t allocated = 0;  // with profile_memory: bytes in live tensors of the device when it ended
};

// Everything with one name, summed up.
struct Average {
  std::string key;
  uint64_t count = 0;
  double total = 0;   // seconds
  double queued = 0;  // seconds between being asked for and the beginning, summed up
  double longest = 0;
};

// Prints as a table: the name, its share of the time of all, calls, total, mean and longest time,
// and the mean time in the queue.
struct Averages : std::vector<Average> {
  std::string title;  // of the first column
};
TENON_API std::ostream& operator<<(std::ostream& out, const Averages& averages);

// Records all threads and devices of the process from its construction to stop(). One at a time may
// record; a child of a fork is not recorded. While none records, this costs nothing.
class TENON_API Profiler {
 public:
  // Throws a ValueError if another one records, or for max_events of 0.
  explicit Profiler(const Options& options = {});
  // Ends the recording as stop() does, but does not wait.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Waits for all queued work of all devices, and ends the recording. Calling it again does
  // nothing. Throws the first error of the work that was not reported yet, as synchronize() does;
  // the recording has ended then, too.
  void stop();

  // What was recorded, by the time it began. Empty before stop().
  const std::vector<Event>& events() const { return events_; }
  // How many events there were beyond max_events.
  uint64_t lost() const { return lost_; }
  // The seconds from the beginning to the end of the recording; 0 before stop().
  double seconds() const { return seconds_; }

  // Operators and copies by name, the longest total time first.
  Averages key_averages() const;
  // The same by module: a module has the time of all modules in it, so the model itself has the
  // whole; what runs in no module is "(no module)".
  Averages module_averages() const;
  // The ranges of the program and its waits.
  Averages range_averages() const;

  // Writes the events for chrome://tracing and Perfetto: a lane for each device and each thread,
  // and with profile_memory a curve for each device. Replaces the file. Throws an Error that names
  // the file if it cannot be written, and a ValueError before stop().
  void export_chrome_trace(const std::string& path) const;

 private:
  void finish();
  std::vector<Event> events_;
  uint64_t lost_ = 0;
  double seconds_ = 0;
  bool recording_ = true;
};

// Names what this thread does as long as it lives, `profiler::Range range("load a batch");`, as
// torch.profiler.record_function does. Costs nothing while no profiler records.
class TENON_API Range {
 public:
  explicit Range(std::string_view name);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  std::string name_;
  int64_t began_ = 0;  // nanoseconds of the steady clock; 0 if no profiler recorded
};

}  // namespace tenon::profiler
