#include <atomic>
#include <mutex>
#include <unordered_map>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/graph/program_ref.h>

namespace tenon::graph {

namespace {

// The tensors that programs have. A tensor holds its memory once, whoever has the tensor.
struct ProgramTensors {
  ForkMutex mutex{ForkOrder::tables};
  std::unordered_multimap<const Storage*, const TensorImpl*> by_memory;
  std::unordered_map<const TensorImpl*, const Storage*> memory_of;  // when it was counted first
  std::atomic<size_t> count{0};
};
ProgramTensors& program_tensors() {
  static constinit NeverDestroyed<ProgramTensors> tensors;
  return tensors.get();
}

}  // namespace

void count_held(Storage& storage) {
  storage.held_by_programs.fetch_add(1, std::memory_order_relaxed);
}
void uncount_held(Storage& storage) noexcept {
  storage.held_by_programs.fetch_sub(1, std::memory_order_relaxed);
}

void count_held(TensorImpl& tensor) {
  ProgramTensors& all = program_tensors();
  std::lock_guard lock(all.mutex);
  if (tensor.held_by_programs == 0) {
    const Storage* const memory = tensor.storage.get();
    all.memory_of.emplace(&tensor, memory);
    try {
      all.by_memory.emplace(memory, &tensor);
    } catch (...) {
      all.memory_of.erase(&tensor);
      throw;
    }
    all.count = all.memory_of.size();
  }
  tensor.held_by_programs.fetch_add(1, std::memory_order_relaxed);
}

void uncount_held(TensorImpl& tensor) noexcept {
  ProgramTensors& all = program_tensors();
  std::lock_guard lock(all.mutex);
  if (tensor.held_by_programs.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  const auto known = all.memory_of.find(&tensor);
  const auto [first, last] = all.by_memory.equal_range(known->second);
  for (auto at = first; at != last; ++at)
    if (at->second == &tensor) {
      all.by_memory.erase(at);
      break;
    }
  all.memory_of.erase(known);
  all.count = all.memory_of.size();
}

bool is_let_go(const TensorImpl& tensor) {
  return tensor.refs.load(std::memory_order_relaxed) <=
         tensor.held_by_programs.load(std::memory_order_relaxed);
}

bool is_let_go(const Storage& storage) {
  const uint32_t others = storage.refs.load(std::memory_order_relaxed) -
                          storage.held_by_programs.load(std::memory_order_relaxed);
  if (others == 0) return true;
  ProgramTensors& all = program_tensors();
  if (others > all.count.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(all.mutex);
  uint32_t let_go = 0;
  const auto [first, last] = all.by_memory.equal_range(&storage);
  for (auto at = first; at != last; ++at)
    let_go += at->second->storage.get() == &storage && is_let_go(*at->second);
  return let_go >= others;
}

}  // namespace tenon::graph
