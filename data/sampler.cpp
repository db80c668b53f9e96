#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include <tenon/core/base/host_room.h>
#include <tenon/core/base/number_text.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/data/random.h>
#include <tenon/data/sampler.h>

namespace tenon::data {
namespace {

void require_room_for(int64_t count, const char* sampler) {
  if (!host_has_room(static_cast<uint64_t>(count), sizeof(int64_t)))
    refuse_host_room(static_cast<uint64_t>(count), sizeof(int64_t),
                     fmt::format("{}: the numbers of {} examples: ", sampler, count));
}
std::vector<int64_t> room_for(int64_t count, const char* sampler) {
  require_room_for(count, sampler);
  return std::vector<int64_t>(static_cast<size_t>(count));
}

int64_t not_negative(const char* sampler, const char* what, int64_t value) {
  if (value < 0)
    throw ValueError(fmt::format("{}: {} has to be at least 0, but is {}", sampler, what, value));
  return value;
}

}  // namespace

Sampler::~Sampler() = default;

SequentialSampler::SequentialSampler(int64_t size)
    : size_(not_negative("SequentialSampler", "the size", size)) {}
std::vector<int64_t> SequentialSampler::order(uint64_t, uint64_t) const {
  std::vector<int64_t> order = room_for(size_, "SequentialSampler");
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

RandomSampler::RandomSampler(int64_t size, const RandomSamplerOptions& options)
    : size_(not_negative("RandomSampler", "the size", size)),
      count_(not_negative("RandomSampler", "num_samples", options.num_samples.value_or(size))),
      replacement_(options.replacement) {
  if (size == 0 && count_ > 0)
    throw ValueError(
        fmt::format("RandomSampler: cannot draw {} samples of an empty data set", count_));
}
std::vector<int64_t> RandomSampler::order(uint64_t seed, uint64_t epoch) const {
  std::vector<int64_t> order = room_for(count_, "RandomSampler");
  if (replacement_) {
    Random random(seed, epoch);
    for (int64_t& index : order)
      index = static_cast<int64_t>(random.below(static_cast<uint64_t>(size_)));
    return order;
  }
  require_room_for(size_, "RandomSampler");
  // The first round is that of a loader that shuffles.
  auto next = order.begin();
  for (uint64_t round = 0; next != order.end(); ++round) {
    const std::vector<int64_t> all =
        permutation(size_, round ? Random(seed).at(round).next() : seed, epoch);
    next = std::copy_n(all.begin(), std::min<int64_t>(size_, order.end() - next), next);
  }
  return order;
}

std::vector<int64_t> SubsetRandomSampler::order(uint64_t seed, uint64_t epoch) const {
  std::vector<int64_t> order = permutation(size(), seed, epoch);
  for (int64_t& index : order) index = indices_[static_cast<size_t>(index)];
  return order;
}

WeightedRandomSampler::WeightedRandomSampler(std::vector<double> weights, int64_t num_samples,
                                             bool replacement)
    : weights_(std::move(weights)),
      count_(not_negative("WeightedRandomSampler", "num_samples", num_samples)),
      replacement_(replacement) {
  int64_t positive = 0;
  double sum = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (!(weights_[i] >= 0 && std::isfinite(sum += weights_[i])))
      throw ValueError(fmt::format(
          "WeightedRandomSampler: weights have to be finite and at least 0, with a finite sum, but "
          "weight {} is {}",
          i, number_text(weights_[i])));
    positive += weights_[i] > 0;
  }
  if (positive < (replacement ? std::min<int64_t>(count_, 1) : count_))
    throw ValueError(fmt::format(
        "WeightedRandomSampler: cannot draw {} samples {} replacement of {} positive weights",
        count_, replacement ? "with" : "without", positive));
}

std::vector<int64_t> WeightedRandomSampler::order(uint64_t seed, uint64_t epoch) const {
  std::vector<int64_t> order = room_for(count_, "WeightedRandomSampler");
  if (count_ == 0) return order;
  Random random(seed, epoch);
  if (replacement_) {
    std::vector<double> sums(weights_.size());
    std::partial_sum(weights_.begin(), weights_.end(), sums.begin());
    // The first example whose sum is the whole one, as rounding may reach it.
    const auto last = std::lower_bound(sums.begin(), sums.end(), sums.back());
    for (int64_t& index : order)
      index = std::upper_bound(sums.begin(), last, random.uniform64(0, sums.back())) - sums.begin();
    return order;
  }
  // The largest of log(u) / w (Efraimidis, Spirakis 2006).
  std::vector<std::pair<double, int64_t>> keys;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const double u = random.uniform64(0, 1);
    if (weights_[i] > 0)
      keys.emplace_back(std::log(u > 0 ? u : 0x1p-54) / weights_[i], static_cast<int64_t>(i));
  }
  std::partial_sort(keys.begin(), keys.begin() + count_, keys.end(), std::greater<>());
  for (size_t i = 0; i < order.size(); ++i) order[i] = keys[i].second;
  return order;
}

DistributedSampler::DistributedSampler(int64_t size, const DistributedSamplerOptions& options)
    : size_(not_negative("DistributedSampler", "the size", size)), options_(options) {
  const int64_t replicas = options.num_replicas;
  if (replicas < 1)
    throw ValueError(
        fmt::format("DistributedSampler: num_replicas has to be at least 1, but is {}", replicas));
  if (options.rank < 0 || options.rank >= replicas)
    throw ValueError(fmt::format("DistributedSampler: rank has to be from 0 to {}, but is {}",
                                 replicas - 1, options.rank));
  count_ = size / replicas + (!options.drop_last && size % replicas != 0);
}
DistributedSampler::DistributedSampler(const DistributedSampler& other)
    : size_(other.size_),
      count_(other.count_),
      options_(other.options_),
      epoch_given_(other.epoch_given_.load()),
      epoch_(other.epoch_.load()) {}

void DistributedSampler::set_epoch(uint64_t epoch) {
  epoch_ = epoch;
  epoch_given_ = true;
}

std::vector<int64_t> DistributedSampler::order(uint64_t, uint64_t epoch) const {
  std::vector<int64_t> order = room_for(count_, "DistributedSampler");
  std::vector<int64_t> all;
  if (options_.shuffle) {
    require_room_for(size_, "DistributedSampler");
    all = permutation(size_, options_.seed, epoch_given_ ? epoch_.load() : epoch);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    // Beyond the end the order begins again.
    const int64_t place = static_cast<int64_t>(
        (static_cast<unsigned __int128>(i) * static_cast<uint64_t>(options_.num_replicas) +
         static_cast<uint64_t>(options_.rank)) %
        static_cast<uint64_t>(size_));
    order[i] = all.empty() ? place : all[static_cast<size_t>(place)];
  }
  return order;
}

}  // namespace tenon::data
