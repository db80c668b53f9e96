#include "common/progress.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include <unistd.h>

namespace example {

Progress::Progress(int64_t epochs, int64_t per_epoch, std::string unit)
    : epochs_(epochs),
      per_epoch_(per_epoch),
      unit_(std::move(unit)),
      terminal_(isatty(STDOUT_FILENO)),
      start_(Clock::now()),
      epoch_start_(start_),
      shown_(start_) {}

void Progress::start_epoch(int64_t epoch, int64_t done) {
  epoch_ = epoch + 1, done_ = done;
  if (before_ < 0) before_ = epoch * per_epoch_ + done;
  epoch_start_ = shown_ = Clock::now();
}

bool Progress::due() const { return terminal_ && seconds_since(shown_) > 0.1; }

void Progress::show(int64_t count, double loss) {
  shown_ = Clock::now();
  double elapsed = seconds_since(start_),
         done = static_cast<double>((epoch_ - 1) * per_epoch_ + count);
  double rate = (done - static_cast<double>(before_)) / std::max(elapsed, 1e-9),
         left = (static_cast<double>(epochs_ * per_epoch_) - done) / std::max(rate, 1e-9);
  constexpr int64_t width = 24;
  int64_t full = per_epoch_ ? width * count / per_epoch_ : width;
  std::string bar = std::string(static_cast<size_t>(full), '=') +
                    std::string(static_cast<size_t>(width - full), ' ');
  std::printf("\repoch %lld/%lld [%s] loss %.4f  %.0f %s/s  %.0f s left \033[K",
              static_cast<long long>(epoch_), static_cast<long long>(epochs_), bar.c_str(), loss,
              rate, unit_.c_str(), left);
  std::fflush(stdout);
}

void Progress::end_epoch(double loss) {
  double seconds = seconds_since(epoch_start_);
  std::printf("%sepoch %lld/%lld  loss %.4f  %.0f %s/s  %.1f s\n", terminal_ ? "\r\033[K" : "",
              static_cast<long long>(epoch_), static_cast<long long>(epochs_), loss,
              static_cast<double>(per_epoch_ - done_) / std::max(seconds, 1e-9), unit_.c_str(),
              seconds);
  std::fflush(stdout);
}

void require_output() {
  // What failed before was reported to nobody, and its reason is forgotten.
  const bool failed_before = std::ferror(stdout);
  if (std::fflush(stdout) != 0)
    throw std::runtime_error(std::string("cannot write to the standard output: ") +
                             std::strerror(errno));
  if (failed_before)
    throw std::runtime_error("cannot write to the standard output: some of it is lost");
}

}  // namespace example
