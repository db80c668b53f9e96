// The resolved form of a program: plans with their pointers, numbers and versions in arrays, of
// which a replay fills in the few that change.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tenon/core/graph/match.h>
#include <tenon/core/graph/trace.h>
#include <tenon/core/runtime/stream.h>

namespace tenon::graph {

// What differs between replays of a program. One belongs to a replay until the stream has run it.
struct Frame;

// The nodes of one part of a trace.
class Segment {
 public:
  // Where a value lies: in memory that no replay changes, or at an offset in one of a frame's
  // bases.
  struct Place {
    char* fixed = nullptr;
    int32_t base = -1;
    uint64_t offset = 0;
  };
  // Memory that has a new value from a launch on.
  struct Birth {
    uint32_t launch = 0;
    Place place;
    uint64_t bytes = 0;
  };
  // A number of values that a plan wants: of the storage that the frame has at this index.
  struct Version {
    uint32_t slot = 0, storage = 0;
  };

  // Adds a node, with the places of its inputs and outputs and of its workspace.
  void add(const TraceNode& node, const Scalar* scalars, const std::vector<Place>& places,
           char* workspace);
  // The input of the node that was added last reads a storage whose versions are known.
  void add_version(uint32_t input, uint32_t storage);
  // Ends the list of nodes.
  void finish();

  bool empty() const { return launches_.empty(); }
  size_t size() const { return launches_.size(); }
  std::span<const Launch> launches() const { return launches_; }
  uint64_t cost_ns() const { return cost_ns_; }
  void prepare(const Frame& frame) noexcept;

  // What a launch takes from a frame.
  struct Sources {
    std::vector<int32_t> places;  // in Frame::bases, and ~place for those in Frame::numbers
    bool others = false;          // random numbers, or numbers of values
  };
  std::vector<Sources> sources() const;  // by launch

  std::vector<Birth> births;  // by launch

 private:
  friend struct QueuedSegment;
  struct Patch {
    uint32_t slot;
    int32_t base;
    uint64_t offset;
  };
  struct Draw {
    uint32_t slot, draw;  // of two scalars
  };
  struct Number {
    uint32_t slot, number;
  };
  struct Starts {
    uint32_t pointers, scalars, versions;
  };
  std::vector<Launch> launches_;
  std::vector<Starts> starts_;
  std::vector<const PathNode*> paths_;
  std::vector<void*> pointers_;
  std::vector<tn_scalar> scalars_;
  std::vector<uint64_t> versions_;
  std::vector<Shape> shapes_;
  std::vector<Patch> patches_;
  std::vector<Draw> draws_;
  std::vector<Number> numbers_;
  std::vector<Version> wanted_;
  uint64_t cost_ns_ = 0;
  bool cost_unknown_ = false;
};

// A segment with the frame of one replay, as it waits in the queue of a stream.
struct QueuedSegment final : LaunchSequence {
  QueuedSegment(Segment& segment, const Frame& frame) : segment(segment), frame(frame) {
    cost_ns = segment.cost_ns();
  }
  void prepare() noexcept override { segment.prepare(frame); }
  std::span<const Launch> launches() const override { return segment.launches_; }
  void forget(FailureLog& failures, size_t launch) const override;
  const PathNode* path(size_t launch) const override { return segment.paths_[launch]; }

  Segment& segment;
  const Frame& frame;
};

struct Frame {
  std::vector<char*> bases;              // of inputs and of new storages
  std::vector<const Storage*> storages;  // of the bases, as long as a call
  std::vector<tn_scalar> draws;          // seed and offset of each
  std::vector<tn_scalar> numbers;        // of LivingNumber
  std::vector<uint64_t> versions;        // of storages
  int64_t queued_ns = 0;
  std::vector<uint64_t> tickets;  // of the last segment of each device
  std::vector<std::unique_ptr<QueuedSegment>> segments;
};

// Waits until `ticket` is reached, after which no frame is read that was queued before. Where the
// stream of a plugin cannot wait, for example because memory has run out, this returns at once:
// what such a stream runs was read when it was queued, and memory and plans are only released after
// it.
void wait_until_read(DeviceStream& stream, uint64_t ticket) noexcept;

}  // namespace tenon::graph
