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

// Says what a Profiler keeps of each event.
struct Options {
  // Keeps the types and shapes of each operator's tensors. Their text takes a microsecond or two
  // for each run, which counts for no operator.
  bool record_shapes = false;
  // Keeps how many bytes the tensors of the device take after each run.
  bool profile_memory = false;
  // Limits the events that are kept; those beyond are only counted (`lost`). One takes about 100
  // bytes.
  uint64_t max_events = 1 << 20;
};

// Says what an event is about.
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
  // Says what the event is about.
  Kind kind = Kind::op;
  // The name of what happened: "conv2d", "copy to the host", "all_reduce", "wait for cpu:0", or
  // that of the Range.
  std::string name;
  // The stream that did it: "cpu:0", or a further one of the device, "cpu:0 copies", "cpu:0 sums"
  // for sums of gradients, "cpu:0 stream 1" for a Stream. For what a thread does it is "main" or
  // "thread 7".
  std::string lane;
  // The device of an operator, a copy or a collective; empty for other events.
  std::string device;
  // The plugin that did it, "onednn".
  std::string by;
  // The module that asked for it, "LeNet.fc1"; empty outside of modules.
  std::string module;
  // The operators of which it is a part, such as "softmax (gradient)".
  std::string part_of;
  // With record_shapes, the inputs and outputs: "f32 (2, 3), f32 (3,) -> f32 (2, 3)".
  std::string tensors;
  // Tell when the program asked for it, when it began and when it ended.
  double queued = 0;
  double began = 0, ended = 0;
  // False if the times are those in which a stream of the device took the work, and not those in
  // which the device did it: it does not say when that was, or the recording ended before.
  bool on_device = true;
  // True if the work failed.
  bool failed = false;
  // The bytes of a copy or a collective.
  uint64_t bytes = 0;
  // With profile_memory, the bytes in live tensors of the device when it ended.
  uint64_t allocated = 0;
};

// All events with one name, summed up.
struct Average {
  // The name, and how many events have it.
  std::string key;
  uint64_t count = 0;
  // The time that all of them took, in seconds.
  double total = 0;
  // The seconds between being asked for and the beginning, summed up.
  double queued = 0;
  // The seconds that the longest of them took.
  double longest = 0;
};

// A list of averages.
struct Averages : std::vector<Average> {
  // The title of the first column of the table.
  std::string title;
};
// Prints a table: the name, its share of the time of all, the number of calls, the total, mean and
// longest time, and the mean time in the queue.
TENON_API std::ostream& operator<<(std::ostream& out, const Averages& averages);

// Records all threads and devices of the process from its construction to stop(). Only one may
// record at a time; a child of a fork is not recorded. While none records, this costs nothing.
class TENON_API Profiler {
 public:
  // Begins to record. Throws a ValueError if another one records, or if max_events is 0.
  explicit Profiler(const Options& options = {});
  // Ends the recording as stop() does, but does not wait.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Waits for all queued work of all devices, and ends the recording. Calling it again does
  // nothing. Throws the first error of the work that was not reported yet, as synchronize() does;
  // the recording has ended then, too.
  void stop();

  // Returns what was recorded, in the order in which it began; nothing before stop().
  const std::vector<Event>& events() const { return events_; }
  // Returns how many events there were beyond max_events.
  uint64_t lost() const { return lost_; }
  // Returns the seconds from the beginning to the end of the recording; 0 before stop().
  double seconds() const { return seconds_; }

  // Returns the averages of operators and copies by name, those of the longest total time first.
  Averages key_averages() const;
  // Returns the same by module: a module has the time of all modules in it, so that the model
  // itself has the whole; what runs in no module is "(no module)".
  Averages module_averages() const;
  // Returns the averages of the program's ranges and of its waits.
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

// Names what this thread does as long as the object lives, as torch.profiler.record_function does:
// `profiler::Range range("load a batch");`. It costs nothing while no profiler records.
class TENON_API Range {
 public:
  // Begins the range.
  explicit Range(std::string_view name);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  std::string name_;
  int64_t began_ = 0;  // nanoseconds of the steady clock; 0 if no profiler recorded
};

}  // namespace tenon::profiler
