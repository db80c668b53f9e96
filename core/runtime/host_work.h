// What the host does itself between plans, and a program does again: copies between devices, sums
// over several of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/core/base/recording.h>
#include <tenon/core/tensor.h>

namespace tenon::recording {

// Does the work, as eager execution does, with tensors that may be others each time. What it makes
// lies at the start of memory of its own, and goes to the end of `made`.
using Repeat = std::function<void(std::span<const Tensor> reads, std::span<const Tensor> changes,
                                  std::vector<Tensor>& made)>;

struct HostWork {
  const char* name;
  std::vector<Tensor> reads, changes;
  Repeat again;
  // What else has to be the same for two of them to be the same work, and values that it has.
  uint64_t identity = 0;
  std::shared_ptr<const std::string> content = nullptr;
  // Whether streams have to do with it: all that was queued before then comes first.
  bool queues = true;
  // It does nothing if it was done before and nobody has changed since what it reads and changes.
  bool settles = false;
};

}  // namespace tenon::recording
