// What the constants of a trace compute, once, for all replays of a program.
#pragma once

#include <vector>

#include <tenon/core/graph/replay.h>
#include <tenon/core/graph/trace.h>

namespace tenon::graph {

class Constants {
 public:
  // Allocates their memory and queues the work on the stream of their device, of which there is
  // one. Throws an OutOfMemoryError.
  void compute(const Trace& trace);
  // The memory of a constant value.
  char* data_of(uint32_t value) const { return static_cast<char*>(storages_[value]->data); }
  // Waits until the work that computes them has read its inputs.
  void wait() const noexcept;

 private:
  DeviceContext* context_ = nullptr;
  std::vector<Ref<Storage>> storages_;  // by value
  Ref<Storage> workspace_;
  Segment segment_;
  Frame frame_;
  uint64_t ticket_ = 0;
};

}  // namespace tenon::graph
