// What checked mode (TENON_CHECK) looks at before and after each replay of a stream graph.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tenon/core/runtime/check/memory.h>

namespace tenon::checked {

// All replays of one graph. Every block of its memory has guards of its own. As for a run, the
// device has nothing to do before and after a replay.
class GraphCheck {
 public:
  // The memory from before the capture that the graph only reads, and that it writes. What they
  // refer to has to live as long. The capture has ended.
  GraphCheck(DeviceContext& context, const Allocator& own, std::span<const Ref<Storage>> read,
             std::span<const Ref<Storage>> written);

  // As for CopyCheck.
  tn_error* before(tn_stream* stream);
  tn_error* after(tn_error* error, tn_stream* stream);

 private:
  struct Source {
    const Storage* storage;
    uint64_t hash = 0;
    bool hashed = false;
  };
  template <class F>
  void each_spoilt(F&& visit);
  std::string name_of(const void* data);
  bool hash_of(const Storage& storage, uint64_t& hash);

  DeviceContext& context_;
  const Allocator& own_;
  Memory& memory_;
  std::vector<const void*> buffers_;
  std::vector<Source> sources_;
};

}  // namespace tenon::checked
