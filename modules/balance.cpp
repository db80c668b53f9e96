// How DataParallel finds the shares of its devices.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <tenon/core/base/log.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/context.h>
#include <tenon/modules/data_parallel.h>

namespace tenon::nn::detail {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kLongestPause = 256;  // calls between two that are measured
// Shares are changed if a call becomes faster by the first factor, and are soon measured again if
// it becomes faster by the second one.
constexpr double kMinGain = 1.03, kMuch = 1.2;
// A share changes by this factor at most: a device that was disturbed once must not lose all rows,
// because without a row it would not be measured again.
constexpr double kMaxAtOnce = 2;

void wait_until_idle(Device device) { context_of(device).wait_for_streams(); }

void make_sum_one(std::vector<double>& shares) {
  const double largest = *std::max_element(shares.begin(), shares.end());
  for (double& s : shares) s /= largest;  // so that the sum is finite
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& s : shares) s /= sum;
}

// How many times longer a call with these shares takes than one with the best, which are `speeds`.
double slowdown_of(const std::vector<double>& shares, const std::vector<double>& speeds) {
  double longest = 1;
  for (size_t i = 0; i < shares.size(); ++i)
    if (speeds[i] > 0) longest = std::max(longest, shares[i] / speeds[i]);
  return longest;
}

}  // namespace

std::vector<double> Balance::shares() const {
  std::vector<double> shares = weights_;
  if (shares.empty()) shares.assign(devices_.size(), 1);
  make_sum_one(shares);
  return shares;
}

bool Balance::is_due(const Split& split) {
  if (!on_ || split.parts.size() < 2) return false;
  recording::refuse("DataParallel finds the shares of its devices (balance)");
  // The first call of a size makes plans, which takes time.
  const bool same = last_ == split.parts;
  last_ = split.parts;
  if (!same || calls_++ < due_ - 1) return false;
  // A wait during a capture would end it with an error.
  return std::none_of(devices_.begin(), devices_.end(),
                      [](Device d) { return context_of(d).stream->capturing(); });
}

void Balance::learn(const Split& split, std::span<const double> seconds) {
  const bool first = speeds_.empty();
  if (first) speeds_ = shares();
  std::vector<double> found(devices_.size());  // rows a second
  double known = 0, sum = 0;                   // of the devices with parts
  for (size_t i = 0; i < split.parts.size(); ++i) {
    const auto at = std::find(devices_.begin(), devices_.end(), split.parts[i].device);
    const auto device = static_cast<size_t>(at - devices_.begin());
    found[device] = static_cast<double>(split.parts[i].size) / std::max(seconds[i], 1e-9);
    sum += found[device];
    known += speeds_[device];
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == 0 || speeds_[i] == 0) continue;
    const double factor = found[i] / sum * known / speeds_[i];
    // Later, half of what is found may be chance.
    speeds_[i] *= std::clamp(first ? factor : std::sqrt(factor), 1 / kMaxAtOnce, kMaxAtOnce);
  }
  make_sum_one(speeds_);
  const double slowdown = slowdown_of(shares(), speeds_);
  pause_ = slowdown > kMuch ? 1 : std::min(2 * pause_, kLongestPause);
  due_ = calls_ + pause_;
  if (slowdown > kMinGain) change(speeds_);
}

void Balance::change(std::vector<double> shares) {
  weights_ = std::move(shares);
  std::string text = "DataParallel shares a batch out by speed:";
  for (size_t i = 0; i < devices_.size(); ++i)
    text += fmt::format("{} {} {:.1f} %", i ? "," : "", devices_[i], 100 * weights_[i]);
  log_message(TN_LOG_INFO, "tenon", text);
}

PartTimes::PartTimes(const Split& split) : seconds_(split.parts.size()) {
  for (auto& part : split.parts) devices_.push_back(part.device);
  for (Device device : devices_) wait_until_idle(device);
}

void PartTimes::turn_to(size_t part) {
  stop();
  part_ = part;
  began_ = Clock::now();
}

void PartTimes::stop() {
  if (!part_) return;
  wait_until_idle(devices_[*part_]);
  seconds_[*part_] += std::chrono::duration<double>(Clock::now() - began_).count();
  part_.reset();
}

}  // namespace tenon::nn::detail
