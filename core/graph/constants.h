// What the constants of a trace compute, once, for all replays of a program.
#pragma once

#include <vector>

#include <tenon/core/graph/replay.h>
#include <tenon/core/graph/trace.h>

namespace tenon::graph {

class Constants {
 public:
  // Allocates their memory and queues the work on the stream of the context. Throws an
  // OutOfMemoryError.
  void compute(const Trace& trace, DeviceContext& context);
  // The memory of a constant value.
  char* data_of(uint32_t value) const { return static_cast<char*>(storages_[value]->data); }
  // Of the work, for who must not end before it has. 0 if there is none.
  uint64_t ticket() const { return frame_.ticket; }

 private:
  std::vector<Ref<Storage>> storages_;  // by value
  Ref<Storage> workspace_;
  Segment segment_;
  Frame frame_;
};

}  // namespace tenon::graph
