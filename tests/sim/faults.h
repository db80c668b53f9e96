// What tests may ask of `sim` beyond its operators: accidents on order, and counters.
#pragma once

#include <cstdint>

namespace tenon::sim {

// Filling a tensor with one of these is an accident.
constexpr double kFailsLate =
    9.001e30;  // the device reports it when the work has run, and names the operator
constexpr double kFailsUnnamed = 9.002e30;  // the same, without a name
constexpr double kFailsAtOnce = 9.003e30;   // when it is queued
constexpr double kLosesDevice = 9.004e30;   // the device can never be used again
constexpr double kWaitsAtGate =
    9.005e30;  // no accident: the stream stays there as long as the gate is shut
constexpr double kFailsRecorded = 9.006e30;  // only where it would become part of a graph

// The extension "sim.gate", version 1. It stands open at first.
struct Gate {
  void (*shut)();
  void (*open)();
  int (*waiting)();  // how many streams stand before it
};

// The extension "sim.counters", version 1.
struct Counters {
  uint64_t joint_launches;  // collectives, a group counted once
  uint64_t joint_calls;     // each of a group
  uint64_t copies;
  uint64_t graph_launches;
  uint64_t live_objects;     // streams, events, graphs and communicators
  uint64_t blocking_copies;  // those that kept the caller, because the host's memory was not pinned
  uint64_t allocations;      // of device and pinned memory
};

}  // namespace tenon::sim
