// Which plans of a segment a device queues by one call: those that are the same in each replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/core/graph/replay.h>
#include <tenon/core/runtime/launch_graph.h>

namespace tenon {
class DeviceContext;
}

namespace tenon::graph {

// What a device refused to record for a program.
struct GraphRefusals {
  int failed = 0;                  // recordings, whatever plan it was
  bool for_good = false;           // there are no graphs any more,
  std::string why;                 // because of this
  std::vector<std::string> plans;  // what is queued by itself, and why
};

// A segment on a stream that can record. A plan is steady if the addresses and numbers that it
// takes from the frame have been the same for some replays. Steady plans that follow one another
// are recorded as a graph, which is launched in their place as long as nothing of it has changed;
// everything else is queued plan by plan. What changes after it was recorded has to be the same for
// longer and longer until it is steady again, so a graph that is of no use is soon given up.
class SegmentGraphs {
 public:
  // What is refused for good is so for all segments of a device.
  SegmentGraphs(DeviceContext& context, const Segment& segment, GraphRefusals& refusals);

  // Queues the segment for a replay and returns the ticket of the last plan.
  uint64_t run(QueuedSegment& queued);

  size_t num_graphs() const;
  size_t num_plans() const;  // in graphs

  static constexpr size_t kFewest = 5;  // plans that are worth a graph

 private:
  // An address or a number of the frame that plans of the segment use.
  struct Source {
    int32_t place;        // in Frame::bases, or ~place in Frame::numbers
    uint64_t bits = 0;    // in the last replay
    uint64_t same = 0;    // for so many replays before that
    uint64_t before = 0;  // how many replays the value before this one was the same for
    uint64_t needs = kSteady;
    bool may_go = false;  // nobody tells when its memory is returned to the system
  };
  struct Plan {
    std::vector<uint32_t> sources;
    bool alone = false;  // it is never steady
  };
  struct Run {
    size_t first, end;
    std::vector<std::pair<uint32_t, uint64_t>> sources;  // with their bits in the graph
    std::unique_ptr<LaunchGraph> graph;                  // null if there is none at present
  };

  void look_at(const Frame& frame);
  bool is_steady(const Plan& plan) const;
  std::vector<Run> steady_runs() const;
  void make_graphs(const QueuedSegment& queued);
  void record(Run& run, const QueuedSegment& queued);
  void drop_changed();
  bool has_changed(const Run& run);
  void drop(Run& run) { replaced_.push_back(std::move(run.graph)); }
  void drop_all();
  bool launch(Run& run, const QueuedSegment& queued);
  void refuse(const char* what, const std::string& why) noexcept;
  void run_plans(const QueuedSegment& queued, size_t first, size_t end);

  static constexpr uint64_t kSteady = 3;      // replays
  static constexpr uint64_t kLongest = 1024;  // replays between two looks
  static constexpr size_t kMaxRefused = 16;   // plans that cannot be recorded
  static constexpr int kMaxFailed = 3;        // recordings

  DeviceContext& context_;
  GraphRefusals& refusals_;
  std::vector<Source> sources_;
  std::vector<Plan> plans_;
  std::vector<Run> runs_;  // in order
  // That may still run. There is room for all of `runs_`.
  std::vector<std::unique_ptr<LaunchGraph>> replaced_;
  uint64_t replays_ = 0;
  uint64_t frees_ = 0;  // pieces of memory that had been returned to the system
  // When there is a look for steady runs, how long after that again, and how soon after a change.
  uint64_t next_look_ = kSteady + 1, interval_ = 4, after_change_ = 1;
};

}  // namespace tenon::graph
