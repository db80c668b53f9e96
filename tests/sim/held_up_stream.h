// A stream of sim that is held up.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <tenon/core/tensor.h>
#include <tenon/plugins/host/registry.h>

#include "sim/faults.h"

namespace tenon::test {

inline const plugins::Backend& sim_backend() { return plugins::registry().load("sim"); }

inline void fill(double kind, Device device) { empty({3}, {.device = device}).fill_(kind); }

// Holds up the device's stream. Were somebody to wait for it meanwhile, a thread would let it go in
// the end and tell.
class HeldUpStream {
 public:
  explicit HeldUpStream(Device device) {
    gate_.shut();
    fill(sim::kWaitsAtGate, device);
    rescue_ = std::jthread([this](std::stop_token stop) {
      for (int i = 0; i < 600 && !stop.stop_requested(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (!stop.stop_requested()) rescued_ = true, gate_.open();
    });
  }
  // Boost.Test may be used by one thread at a time, so that of the test is told here.
  ~HeldUpStream() {
    let_go();
    BOOST_TEST(!rescued_, "somebody waited for the stream that was held up");
  }
  // Any thread may call this.
  void let_go() {
    gate_.open();
    rescue_ = {};
  }

 private:
  const sim::Gate& gate_ = *sim_backend().extension<sim::Gate>("sim.gate", 1);
  std::atomic<bool> rescued_{false};
  std::jthread rescue_;
};

}  // namespace tenon::test
