// Counts of what operators did in this process: which plugin ran them, for how long, and what took
// a detour because a plugin lacked something.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/core/api.h>

namespace tenon {

// Holds the counts that dispatch_stats() returns: one list for each kind of event.
struct DispatchStats {
  // The runs of one operator by the plans of one plugin on one device.
  struct Runs {
    // The operator ("conv2d"), the device ("cpu:0") and the plugin ("cpu").
    std::string op;
    std::string device;
    std::string owner;
    // Counts the runs.
    uint64_t runs = 0;
    // The time in the plugin, summed up. On a device with streams it is the time to queue the work,
    // because nobody waits for its end.
    double seconds = 0;
  };
  // The plans that one plugin made for one operator on one device. Plans are kept, so calls that
  // are alike share one.
  struct Plans {
    // The operator, the device and the plugin, as in Runs.
    std::string op, device, owner;
    // Counts the plans.
    uint64_t count = 0;
  };
  // Calls that no plan of the device computes the way they were made, or copies that were made for
  // them.
  struct Detours {
    // The operator ("layer_norm") and the device ("cuda:0") of the calls.
    std::string op;
    std::string device;
    // The inputs, "f32 (2, 3), f32 (3,)", or for a copy what was copied.
    std::string signature;
    // The operator that needed this one for a detour of its own, or an empty text.
    std::string part_of;
    // Tells why the plugins refused, as the first of these calls was told.
    std::string reason;
    // Count the calls, and the bytes that they moved between devices or copied.
    uint64_t count = 0;
    uint64_t bytes = 0;
  };
  // The runs, those of the longest time first, and the plans, the largest number first.
  std::vector<Runs> runs;
  std::vector<Plans> plans;
  // Calls that were composed of other operators. In this list and those below the most frequent are
  // first.
  std::vector<Detours> decomposed;
  // Calls that were computed in f32, because no plugin takes the half type.
  std::vector<Detours> widened;
  // Calls that ran on the CPU, by TENON_CPU_FALLBACK or because the documentation says so.
  std::vector<Detours> on_cpu;
  // Copies of tensors that nobody asked for, such as contiguous ones for a plugin.
  std::vector<Detours> hidden_copies;
  // Conversions of inputs to the dtype that a call has in common.
  std::vector<Detours> conversions;
  // Plans that a plugin was asked for and did not make.
  std::vector<Detours> refused;
  // Count the copies between devices, and their bytes.
  uint64_t copies_between_devices = 0, bytes_between_devices = 0;
};

// Begins counting, or ends it if `on` is false. While it is off, which it is unless TENON_TRACE or
// TENON_CPU_FALLBACK=report is set, counting costs nothing.
TENON_API void count_dispatch(bool on = true);
// Returns what was counted since the beginning or the last reset. It does not wait for work that is
// still queued: call synchronize() before. Signatures of one operator beyond the first 100 are
// counted together as "other shapes".
TENON_API DispatchStats dispatch_stats();
// Sets all counts of dispatch_stats() to 0, for all threads.
TENON_API void reset_dispatch_stats();

}  // namespace tenon
