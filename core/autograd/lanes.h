// The numbers of nodes that are recorded for several devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tenon/core/api.h>

namespace tenon {

// While a call is computed in parts, one after the other, the nodes of each part take the next
// number of its own lane, and lanes alternate: the first nodes of all parts, then the second ones.
// So a backward pass visits the parts in turns and queues work for all devices from the start,
// instead of all work for one before any for the next.
class TENON_API NodeLanes {
 public:
  // Does nothing on a thread that is in a lane already: what is inside a part belongs to that part.
  explicit NodeLanes(size_t parts);
  // Leaves the lane, on the thread that constructed it.
  ~NodeLanes();
  NodeLanes(const NodeLanes&) = delete;
  NodeLanes& operator=(const NodeLanes&) = delete;
  // What this thread records from now on is of this part.
  void enter(size_t part);

  struct Lane {
    uint64_t base, stride, part, taken;  // the block of numbers, and how many of the part are taken
  };

 private:
  std::vector<Lane> lanes_;  // empty if another call around this one has its own
};

// Returns a number above `floor`, 0 for none: the next one of the lane or, outside of lanes, of
// all.
uint64_t next_node_number(uint64_t floor);

}  // namespace tenon
