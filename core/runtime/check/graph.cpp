#include <algorithm>

#include <fmt/core.h>

#include <tenon/core/format.h>
#include <tenon/core/runtime/check/elements.h>
#include <tenon/core/runtime/check/findings.h>
#include <tenon/core/runtime/check/graph.h>
#include <tenon/core/runtime/context.h>

namespace tenon::checked {

GraphCheck::GraphCheck(DeviceContext& context, const Allocator& own,
                       std::span<const Ref<Storage>> read, std::span<const Ref<Storage>> written)
    : context_(context), own_(own), memory_(*context.memory->checked()) {
  memory_.guard_graph(own);
  buffers_ = memory_.graph_buffers(own);
  for (auto& s : written) buffers_.push_back(s->data);
  for (auto& s : read) {
    buffers_.push_back(s->data);
    sources_.push_back({&*s});
  }
}

std::string GraphCheck::name_of(const void* data) {
  const auto owner = memory_.owner_of(data);
  return owner.empty() ? "a tensor" : owner;
}

template <class F>
void GraphCheck::each_spoilt(F&& visit) {
  const auto spoilt = memory_.spoilt_guards(buffers_);
  for (size_t i = 0; i < spoilt.size(); ++i)
    if (!spoilt[i].empty()) visit(name_of(buffers_[i]), spoilt[i]);
}

bool GraphCheck::hash_of(const Storage& s, uint64_t& hash) {
  const Footprint all(s.bytes);
  std::vector<unsigned char> room;
  const unsigned char* bytes = memory_.access().look(s.data, s.bytes, room);
  if (!bytes) return false;
  hash = checked::hash_of(bytes, all);
  return true;
}

tn_error* GraphCheck::before(tn_stream* stream) {
  if (tn_error* lost = memory_.finish_earlier(stream)) return lost;
  each_spoilt([&](const std::string& name, const std::string& what) {
    memory_.report(
        fmt::format("something wrote outside of {}, before the replay of a stream graph "
                    "that uses it: {}. Look at the copies and operators before it",
                    name, what));
  });
  memory_.refill_freed(own_);
  for (auto& source : sources_) source.hashed = hash_of(*source.storage, source.hash);
  return nullptr;
}

tn_error* GraphCheck::after(tn_error* error, tn_stream* stream) {
  if (!memory_.finish(error, stream)) return error;
  Findings found;
  each_spoilt([&](const std::string& name, const std::string& what) {
    found.add(
        fmt::format("wrote outside of {}: {}. Run the operators without a StreamGraph to see which "
                    "of them does",
                    name, what));
  });
  for (auto& source : sources_)
    if (uint64_t now; source.hashed && hash_of(*source.storage, now) && now != source.hash)
      found.add(fmt::format("changed memory that it may only read, {} ({} bytes)",
                            name_of(source.storage->data), source.storage->bytes));
  return found.tell(error, context_.backend.api(), "the replay of a stream graph",
                    fmt::format("a graph of {}", context_.device));
}

}  // namespace tenon::checked
