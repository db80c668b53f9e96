// A function of many plans on a device that records, for the tests of device graphs.
#pragma once

#include <cstdint>

#include <tenon/tenon.h>

#include "bits.h"
#include "sim/faults.h"
#include "sim/held_up_stream.h"

namespace tenon::test::chains {

inline const Device device("sim:0");
inline constexpr CompilePasses kPlanByPlan{
    .constants = false, .residuals = false, .activations = false, .pointwise = false};
inline constexpr CompilePasses kNoGraphs{.constants = false,
                                         .residuals = false,
                                         .activations = false,
                                         .pointwise = false,
                                         .device_graphs = false};

inline sim::Counters counters() {
  return *sim_backend().extension<sim::Counters>("sim.counters", 1);
}
inline uint64_t graph_launches() { return counters().graph_launches; }
inline Tensor values() { return randn({64}).to(device); }

// Twenty plans, of which the first reads the argument and the last makes the result.
struct Chain {
  Tensor w = values();
  Tensor operator()(const Tensor& x) const {
    Tensor h = x;
    for (int i = 0; i < 10; ++i) h = sin(h * w);
    return h;
  }
};

}  // namespace tenon::test::chains
