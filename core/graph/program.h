// A program: what two calls of a function did in the same way, ready to run without the function.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/core/graph/compile.h>
#include <tenon/core/graph/constants.h>
#include <tenon/core/graph/match.h>
#include <tenon/core/graph/replay.h>
#include <tenon/core/graph/schedule.h>
#include <tenon/core/graph/segment_graphs.h>
#include <tenon/core/graph/trace.h>
#include <tenon/core/random.h>

namespace tenon::graph {

// Memory for what is only needed inside of programs that never run at the same time: the largest
// piece that one of them needed, on each device.
class SharedArenas {
 public:
  // Returns memory of at least so many bytes.
  Ref<Storage> take(DeviceContext& context, uint64_t bytes);

 private:
  std::vector<Ref<Storage>> largest_;
};

class Program {
 public:
  // Makes a program of a trace that agrees with an earlier one. Returns null, and the reason in
  // `why`, for what this first form of programs cannot do.
  static std::unique_ptr<Program> make(Trace trace, Wiring wiring, const CompilePasses& passes,
                                       std::string& why, SharedArenas* arenas = nullptr);
  // Waits until the last replay is done, or, where a stream cannot wait, until nothing reads what
  // this has on the host.
  ~Program();
  Program(const Program&) = delete;

  // Returns why the program must not run with these arguments and with the gradients that leaves
  // have now; null if it may. The signature of the arguments is the same as in the trace.
  const char* obstacle(std::span<const Tensor* const> arguments) const;
  // Does all that the function did. Throws before anything has been done, except in two cases: what
  // the host does itself throws, or memory runs out. Where several devices or the host take part,
  // each group takes its memory as it begins, when others have been queued.
  void run(std::span<const Tensor* const> arguments, std::vector<Tensor>& results);
  // Returns two arguments that share memory in each call; nothing if none do.
  std::optional<std::pair<int32_t, int32_t>> arguments_that_share() const;
  // Compares a later call of the function.
  Match compare(const Trace& now) const { return match(recorded_, &recorded_wiring_, now); }
  // Whether the arguments of a later call that does not differ share memory so that obstacle() lets
  // the program run: comparisons do not tell.
  bool lies_as(const Trace& call) const;

  // What is replayed, and what was recorded.
  const Trace& trace() const { return trace_; }
  const Trace& recorded() const { return recorded_; }
  // What the passes did, a line each.
  const std::vector<std::string>& notes() const { return notes_; }
  const Wiring& recorded_wiring() const { return recorded_wiring_; }
  // The recorded trace with handles of the memory from outside that it uses.
  Trace recorded_with_memory() const;
  // Takes from a later trace that agrees what a host part did, which a stored program needs.
  void take_host_work(Trace later) { take_host_work(recorded_, std::move(later)); }
  static void take_host_work(Trace& into, Trace later);
  // What is queued by graphs of devices, a line each; nothing where no device has any.
  std::vector<std::string> graph_notes() const;
  // On all devices.
  uint64_t arena_bytes() const;
  const std::vector<DeviceContext*>& devices() const { return schedule_.devices; }
  // Storages that each call makes for itself.
  uint64_t fresh_bytes() const;
  uint64_t replays = 0;
  // Gives up the memory of a call's arguments, which is not needed once its wiring is known, unless
  // a program is pinned to it.
  static void forget_arguments(Trace& trace, const Wiring& wiring);
  // What the next run uses, for LivingNumber.
  std::vector<tn_scalar> numbers;
  // Where random numbers come from, if not from the generator of the process.
  std::optional<RandomState> generator;

 private:
  // A storage that is another one in each call: of a result or a gradient, or of a value that work
  // of the host reads or makes.
  struct Fresh {
    uint32_t value = 0;
    uint64_t bytes = 0;
    uint32_t device = 0;
    bool lasts = false;    // a result or a gradient; else it ends with the last group that uses it
    bool is_made = false;  // by work of the host
    int32_t leaf = -1;     // whose gradient alone it is: the old one may be overwritten, if nobody
                           // has it
    int32_t kept = -1;     // that gradient
  };
  // Two inputs that were in one memory when the program was made, and have to stay so: where they
  // have bytes in common, at the same distance, and else anywhere without any.
  struct Neighbors {
    size_t a, b;
    int64_t distance;  // from the first byte of a to that of b
    bool overlap;
  };
  // What plans of a group change, and how often.
  struct Change {
    Storage* fixed = nullptr;  // or the storage of an input
    size_t input = 0;
    uint32_t device = 0;
    uint64_t count = 0;
  };
  // The plans of one device in a group. Storages from outside are those of `fixed_`, or ~input.
  struct RunSegment {
    Segment segment;
    DeviceContext* context = nullptr;
    uint32_t device = 0;
    size_t place = 0;                      // in Frame::segments
    std::vector<int32_t> outside;          // that it uses
    std::vector<uint32_t> fresh, written;  // new storages that it uses, and changes
    std::vector<uint32_t> changes;         // of the group
    // Null where the device has none. They go before the plans and the memory that they use.
    std::unique_ptr<SegmentGraphs> graphs;
  };
  struct RunGroup {
    std::vector<uint32_t> first_works;
    std::vector<RunSegment> segments;
    std::vector<Change> changes;
    int32_t work = -1;
    bool awaits = false;                 // others may have changed something since the call began
    std::vector<uint32_t> begins, ends;  // new storages that do not last
  };
  struct RunPart {
    std::vector<RunGroup> groups;
  };

  Program(Trace trace, Wiring wiring, const CompilePasses& passes);
  bool build(std::string& why, SharedArenas* shared);
  void find_written();
  void find_devices();
  bool find_changes(std::string& why);
  bool find_change(const VersionChange& change, RunGroup& group, std::string& why);
  void find_fresh();
  void find_overwritten();
  bool find_places(std::string& why, SharedArenas* shared);
  void find_places_on(uint32_t device, SharedArenas* shared);
  void build_segments();
  void build_segment(const DeviceNodes& nodes, RunSegment& run, std::vector<bool>& known,
                     std::vector<bool>& changed);
  void list_storages(const DeviceNodes& nodes, RunSegment& run) const;
  void find_lifetimes();
  void make_graphs();

  Segment::Place place_of(size_t access) const;
  int32_t outside_of(size_t access) const;
  uint32_t fresh_of(uint32_t value) const { return static_cast<uint32_t>(fresh_of_value_[value]); }
  void add_node(Segment& segment, uint32_t node, uint32_t device) const;
  void want_versions(Segment& segment, const TraceNode& node, const std::vector<bool>& changed);

  void find_neighbors();
  const char* obstacle_of_leaf(const Leaf& leaf) const;
  const char* obstacle_of_input(size_t k, Storage& storage, uint64_t offset) const;
  const char* obstacle_of_sharing() const;
  const TensorImpl* tensor_of(const Input& input, std::span<const Tensor* const> arguments) const;

  void take_inputs(std::span<const Tensor* const> arguments);
  void take_fresh();
  bool may_overwrite(const Fresh& fresh, const TensorImpl* gradient) const;
  Frame& free_frame();
  void fill(Frame& frame);
  void forget_call();
  void set_versions();
  Storage& outside(int32_t place) const;
  Storage& storage_of(const Change& change) const;
  void run_part(size_t i, Frame& frame);
  void run_group(RunGroup& group, Frame& frame);
  void run_segment(RunSegment& run, const RunGroup& group, Frame& frame);
  void run_work(uint32_t node, Frame& frame);
  Tensor tensor_at(size_t access, const HostWork::Form& form) const;
  void take(uint32_t fresh, Ref<Storage> storage, Frame& frame);
  void set_base(uint32_t fresh, Frame& frame) const;
  void bind(const Part& part);
  Tensor tensor_for(int32_t kept);
  void return_results(std::span<const Tensor* const> arguments, std::vector<Tensor>& results);

  Trace recorded_;  // of memory from outside it holds what `trace_` does not use any more
  Wiring recorded_wiring_;
  Trace trace_;
  Wiring wiring_;
  std::vector<std::string> notes_;
  Schedule schedule_;
  Constants constants_;
  std::vector<Ref<Storage>> arenas_;  // of the devices
  bool wants_graphs_ = true;
  std::vector<GraphRefusals> graph_refusals_;  // of the devices
  std::vector<RunPart> parts_;
  size_t num_segments_ = 0;
  std::vector<Fresh> fresh_;
  std::vector<int32_t> fresh_of_value_;
  std::vector<uint32_t> device_of_value_;
  std::vector<uint64_t> arena_offset_;  // of values and then workspaces; for those in an arena
  std::vector<Storage*> fixed_;         // storages from outside that are used in place
  std::vector<bool> fixed_written_, input_written_;
  std::vector<Neighbors> neighbors_;
  std::vector<int32_t> versioned_;  // of Frame::versions: fixed storages, or ~input
  std::vector<std::unique_ptr<Frame>> frames_;
  size_t next_frame_ = 0;

  // What the present call works with.
  std::vector<Ref<Storage>> input_storages_;
  std::vector<char*> input_data_;
  std::vector<Ref<Storage>> fresh_storages_;
  std::vector<Tensor> kept_tensors_;
  std::vector<InPlaceChange> changing_, overwritten_;
  mutable std::vector<std::pair<const Storage*, uint64_t>> places_;  // of inputs, with offsets
};

}  // namespace tenon::graph
