// What the stand-in for NCCL has done: its data object `tenon_emulated_nccl_counters`.
#pragma once

#include <cstdint>

namespace tenon::emulated {

struct NcclCounters {
  uint64_t joins;     // communicators made
  uint64_t launches;  // groups that held something
  uint64_t calls;     // collectives, each once for all its members
};

}  // namespace tenon::emulated
