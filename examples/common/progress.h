// How far a training run is: a bar on a terminal, one line per epoch elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace example {

class Progress {
 public:
  // `unit` is what is counted: "images".
  Progress(int64_t epochs, int64_t per_epoch, std::string unit);

  // Begins an epoch, counted from 0, of which `done` examples were seen by an earlier run.
  void start_epoch(int64_t epoch, int64_t done);
  // True where a fresh loss would be shown now: reading it waits for the device, so it is asked for
  // a few times a second only.
  bool due() const;
  // `count` is how many are done in this epoch so far; `loss` is their mean.
  void show(int64_t count, double loss);
  void end_epoch(double loss);

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_since(Clock::time_point start) const {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  int64_t epochs_, per_epoch_;
  std::string unit_;
  int64_t epoch_ = 0;
  int64_t before_ = -1, done_ = 0;  // what earlier runs have seen, in all and of this epoch
  bool terminal_;
  Clock::time_point start_, epoch_start_, shown_;
};

// std::runtime_error where something printed to the standard output has not arrived, on a full disk
// for instance.
void require_output();

}  // namespace example
