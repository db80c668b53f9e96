#include <cstring>
#include <map>
#include <vector>

#include <tenon/core/graph/passes/passes.h>

namespace tenon::graph {

namespace {

// Everything that the result of a node depends on: the plan, its numbers, and what it reads, each
// with the number of writes that came before.
using Words = std::vector<uint64_t>;

class SharedResults {
 public:
  explicit SharedResults(Draft& draft)
      : draft_(draft), writes_(draft.trace.values.size()), stands_for_(draft.trace.values.size()) {
    for (uint32_t v = 0; v < stands_for_.size(); ++v) stands_for_[v] = v;
  }

  size_t run() {
    for (auto& part : draft_.trace.parts) {
      for (uint32_t i = part.first_node; i < part.end_node; ++i) visit(i);
      // What the host does between two parts may change all that is from outside.
      ++parts_;
    }
    return draft_.compact();
  }

 private:
  void visit(uint32_t i) {
    TraceNode& node = draft_.trace.nodes[i];
    for (uint32_t k = 0; k < node.num_inputs; ++k) {
      Access& access = draft_.trace.accesses[node.first_access + k];
      if (access.value != kAbsent) access.value = stands_for_[access.value];
    }
    if (is_pure(node)) {
      const auto [known, fresh] = known_.try_emplace(words_of(node), i);
      if (!fresh && can_stand_for(known->second, node)) {
        const auto mine = draft_.outputs_of(node);
        const auto theirs = draft_.outputs_of(draft_.trace.nodes[known->second]);
        for (size_t k = 0; k < mine.size(); ++k)
          if (mine[k].value != kAbsent) stands_for_[mine[k].value] = theirs[k].value;
        draft_.remove(i);
        return;
      }
      known->second = i;
    }
    for (auto& output : draft_.outputs_of(node))
      if (output.value != kAbsent) ++writes_[output.value];
  }

  // Whether the same inputs always give the same outputs, which are new memory each.
  bool is_pure(const TraceNode& node) const {
    if (!node.plan || node.draw >= 0 || !node.living.empty()) return false;
    for (auto& output : draft_.outputs_of(node)) {
      if (output.value == kAbsent) continue;
      if (draft_.needed_outside(output.value) || output.offset != 0) return false;
      if (writes_[output.value] != 0) return false;
    }
    return true;
  }

  Words words_of(const TraceNode& node) const {
    // What a checkpoint computes again must not be replaced by what it computed the first time.
    Words words{reinterpret_cast<uintptr_t>(node.plan.get()), parts_, node.repeated};
    for (int64_t dim : node.shape) words.push_back(static_cast<uint64_t>(dim));
    for (uint32_t k = 0; k < node.num_scalars; ++k) {
      uint64_t bits;
      std::memcpy(&bits, &draft_.trace.scalars[node.first_scalar + k], sizeof bits);
      words.push_back(bits);
    }
    for (uint32_t k = 0; k < node.num_inputs; ++k) {
      const Access& access = draft_.trace.accesses[node.first_access + k];
      words.push_back(access.value);
      words.push_back(access.offset);
      words.push_back(static_cast<uint64_t>(draft_.wiring.input_of_access[node.first_access + k]));
      words.push_back(access.value == kAbsent ? 0 : writes_[access.value]);
    }
    return words;
  }

  // Whether the results of `earlier` can be read instead of those of `node`: the values of both
  // have one writer each and equal sizes.
  bool can_stand_for(uint32_t earlier, const TraceNode& node) {
    const auto one_writer = [this](const Access& a) {
      return a.value == kAbsent ||
             (draft_.has_one_writer(a.value) && draft_.only_plans_use(a.value));
    };
    const auto mine = draft_.outputs_of(node);
    const auto theirs = draft_.outputs_of(draft_.trace.nodes[earlier]);
    const auto& values = draft_.trace.values;
    for (size_t k = 0; k < mine.size(); ++k) {
      if (!one_writer(mine[k]) || !one_writer(theirs[k])) return false;
      if (mine[k].value != kAbsent && values[mine[k].value].bytes != values[theirs[k].value].bytes)
        return false;
    }
    return true;
  }

  Draft& draft_;
  std::vector<uint64_t> writes_;      // of each value so far
  std::vector<uint32_t> stands_for_;  // the value that is read in the place of each
  std::map<Words, uint32_t> known_;   // nodes
  uint64_t parts_ = 0;
};

}  // namespace

size_t share_common_subexpressions(Draft& draft) { return SharedResults(draft).run(); }

}  // namespace tenon::graph
