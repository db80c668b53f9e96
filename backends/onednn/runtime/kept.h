// Copies of an input in the layouts that primitives want, kept by a plan as long as the input does
// not change. So a weight is reordered once, and not in every run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/primitive.h"

namespace tenon::onednn {

struct FreeKept {
  uint64_t bytes = 0;
  void operator()(void* memory) const;
};

// One plan may run on the weights of many layers, each of which has a copy of its own. A copy is
// made when its input has come unchanged several times: a weight that is trained comes once or
// twice. Runs of one plan never overlap, so nothing here is locked.
class Kept {
 public:
  // `input` and `copy` are numbers of operands: of the input, and of its copy. The copy is made in
  // run number `worth` with the same values.
  Kept(size_t input, size_t copy, uint32_t worth) : input_(input), copy_(copy), worth_(worth) {}

  // Adds a part of the input, which lies at `from`, to the copies. Returns it as the argument
  // `name` of a step that wants `layout`. Parts that are asked for twice are there once.
  Argument add(int name, const Argument& from, const Desc& layout);
  // Sets the operand `copy` and returns true if there is a copy of the input with this version.
  bool provide(std::span<void*> operands, uint64_t version);

 private:
  using Memory = std::unique_ptr<void, FreeKept>;
  struct Copy {
    uint64_t version = 0;
    uint32_t seen = 0;  // runs with this version, until it is there
    bool is_there = false;
    uint64_t last_seen = 0, last_used = 0;  // in runs of this plan
    Memory memory;
  };
  struct Part {
    Argument from, to;
  };

  static Memory allocate(uint64_t bytes);
  Copy* find(const void* data, uint64_t version);
  void forget_unused();

  size_t input_, copy_;
  uint32_t worth_;
  uint64_t bytes_ = 0;  // of one copy
  uint64_t runs_ = 0;
  std::vector<Part> parts_;
  Work fill_;
  std::unordered_map<const void*, Copy> copies_;  // by the address of the input
};

}  // namespace tenon::onednn
