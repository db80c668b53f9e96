// Random numbers for data, the same on every machine and standard library.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::data {

// The generator SplitMix64 (Steele, Lea, Flood 2014). Neighboring seeds give unrelated numbers. It
// is for reading data, where each example has a generator of its own; what operators draw comes
// from <tenon/core/random.h>.
class Random {
 public:
  // Makes the generator for a seed; each `stream` of a seed gives other numbers.
  explicit Random(uint64_t seed, uint64_t stream = 0) : state_(mix(seed) ^ mix(~stream)) {}

  // Returns another generator, which depends on the state of this one and on `number`.
  Random at(uint64_t number) const {
    Random other = *this;
    other.state_ = mix(state_ + 0x632BE59BD9B4E019u) ^ mix(~number);
    return other;
  }

  // Returns the next 64 random bits.
  uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15u); }
  // Returns a number from [0, bound), all with equal probability (Lemire 2019); bound > 0.
  uint64_t below(uint64_t bound) {
    unsigned __int128 product = static_cast<unsigned __int128>(next()) * bound;
    if (static_cast<uint64_t>(product) < bound)
      for (const uint64_t threshold = -bound % bound; static_cast<uint64_t>(product) < threshold;)
        product = static_cast<unsigned __int128>(next()) * bound;
    return static_cast<uint64_t>(product >> 64);
  }
  // Returns a number from the uniform distribution over [low, high).
  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(next() >> 40) * 0x1p-24f;
  }
  // Returns the same with the precision of f64, over [low, high].
  double uniform64(double low, double high) {
    return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53);
  }
  // Returns true with probability p.
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

// Returns the numbers from 0 to count - 1 in an order that seed and epoch determine.
inline std::vector<int64_t> permutation(int64_t count, uint64_t seed, uint64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  Random random(seed, epoch);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace tenon::data
