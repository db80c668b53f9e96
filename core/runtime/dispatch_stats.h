// Counts of what operators did in this process: which plugin ran them, for how long, and what took
// a detour because a plugin lacked something.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/core/api.h>

namespace tenon {

struct DispatchStats {
  // The runs of one operator by the plans of one plugin on one device.
  struct Runs {
    std::string op;      // "conv2d"
    std::string device;  // "cpu:0"
    std::string owner;   // the plugin, "cpu"
    uint64_t runs = 0;
    // The time in the plugin. On a device with streams it is the time to queue the work, because
    // nobody waits for its end.
    double seconds = 0;
  };
  // The plans that one plugin made for one operator on one device. Plans are kept, so calls that
  // are alike share one.
  struct Plans {
    std::string op, device, owner;
    uint64_t count = 0;
  };
  // Calls that no plan of the device computes the way they were made, or copies made for them.
  struct Detours {
    std::string op;         // "layer_norm"
    std::string device;     // "joint:0"
    std::string signature;  // the inputs, "f32 (2, 3), f32 (3,)", or for a copy what was copied
    std::string part_of;    // the operator that needed this one for a detour of its own, or empty
    std::string reason;     // why the plugins refused, as the first of these calls was told
    uint64_t count = 0;
    uint64_t bytes = 0;  // moved between devices, or copied
  };
  std::vector<Runs> runs;              // the longest time first
  std::vector<Plans> plans;            // the most first
  std::vector<Detours> decomposed;     // composed of other operators; the most frequent first
  std::vector<Detours> widened;        // in f32, because no plugin takes the half type
  std::vector<Detours> on_cpu;         // by TENON_CPU_FALLBACK, or documented
  std::vector<Detours> hidden_copies;  // of tensors, such as contiguous ones for a plugin
  std::vector<Detours> conversions;    // of inputs to the dtype that a call has in common
  std::vector<Detours> refused;        // plans that a plugin was asked for and did not make
  uint64_t copies_between_devices = 0, bytes_between_devices = 0;
};

// Begins or ends counting. While it is off, which it is unless TENON_TRACE or
// TENON_CPU_FALLBACK=report is set, counting costs nothing.
TENON_API void count_dispatch(bool on = true);
// Returns what was counted since the beginning or the last reset. It does not wait for work that is
// still queued; call synchronize() before. Signatures of one operator beyond the first 100 are
// counted together as "other shapes".
TENON_API DispatchStats dispatch_stats();
// Sets all counts of dispatch_stats() to 0, for all threads.
TENON_API void reset_dispatch_stats();

}  // namespace tenon
