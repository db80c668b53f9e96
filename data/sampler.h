// Samplers decide which examples a loader reads, and in which order: LoaderOptions::sampler.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include <tenon/core/api.h>

namespace tenon::data {

// Derive from this class for an order of your own.
class TENON_API Sampler {
 public:
  virtual ~Sampler();
  // Returns how many examples there are in an epoch.
  virtual int64_t size() const = 0;
  // Returns the indices of an epoch, as many as size() says. The loader calls it when a loop
  // begins, with its own seed and the number of the epoch; the same numbers have to give the same
  // order.
  virtual std::vector<int64_t> order(uint64_t seed, uint64_t epoch) const = 0;
  // Returns whether an index may be there more than once. Augmentation then depends on the place of
  // an example in the epoch instead of its index.
  virtual bool repeats() const { return false; }
};

// All examples, one after the other.
class TENON_API SequentialSampler final : public Sampler {
 public:
  // Throws a ValueError for a negative size.
  explicit SequentialSampler(int64_t size);
  int64_t size() const override { return size_; }
  std::vector<int64_t> order(uint64_t seed, uint64_t epoch) const override;

 private:
  int64_t size_;
};

struct RandomSamplerOptions {
  bool replacement = false;                 // draws each example from all of them
  std::optional<int64_t> num_samples = {};  // how many are drawn; by default as many as there are
};
// Examples in random order, each at most once unless there is replacement. Without it, num_samples
// may still be more than there are: then all of them are drawn again, in another order.
class TENON_API RandomSampler final : public Sampler {
 public:
  // Takes the size of the data set. Throws a ValueError for a negative number, and for samples of
  // an empty data set.
  explicit RandomSampler(int64_t size, const RandomSamplerOptions& options = {});
  int64_t size() const override { return count_; }
  std::vector<int64_t> order(uint64_t seed, uint64_t epoch) const override;
  bool repeats() const override { return replacement_ || count_ > size_; }

 private:
  int64_t size_, count_;
  bool replacement_;
};

// The examples with these indices in random order.
class TENON_API SubsetRandomSampler final : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> indices) : indices_(std::move(indices)) {}
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  std::vector<int64_t> order(uint64_t seed, uint64_t epoch) const override;

 private:
  std::vector<int64_t> indices_;
};

// Draws example i with a probability proportional to weights[i].
class TENON_API WeightedRandomSampler final : public Sampler {
 public:
  // Without replacement no example is drawn twice. Throws a ValueError for a weight that is
  // negative or not finite, for a negative num_samples, and if fewer weights are positive than are
  // to be drawn (with replacement: if none is).
  WeightedRandomSampler(std::vector<double> weights, int64_t num_samples, bool replacement = true);
  int64_t size() const override { return count_; }
  std::vector<int64_t> order(uint64_t seed, uint64_t epoch) const override;
  bool repeats() const override { return replacement_; }

 private:
  std::vector<double> weights_;
  int64_t count_;
  bool replacement_;
};

struct DistributedSamplerOptions {
  int64_t num_replicas = 1;  // how many processes train together
  int64_t rank = 0;          // which of them this is
  bool shuffle = true;
  uint64_t seed = 0;       // the same for all processes; that of the loader is not used
  bool drop_last = false;  // leaves out what does not divide evenly, instead of repeating examples
};
// The part of one process of a data set that several processes read together: examples rank, rank +
// num_replicas, … of an order that is the same for all. All parts have the same size, for which
// examples from the beginning of the order are repeated.
class TENON_API DistributedSampler final : public Sampler {
 public:
  // Takes the size of the data set. Throws a ValueError for a negative size, for num_replicas below
  // 1 and for a rank outside [0, num_replicas).
  explicit DistributedSampler(int64_t size, const DistributedSamplerOptions& options = {});
  DistributedSampler(const DistributedSampler& other);

  int64_t size() const override { return count_; }
  std::vector<int64_t> order(uint64_t seed, uint64_t epoch) const override;
  // Makes the loops that begin from now on read this epoch. Without it, a loader's own number of
  // the epoch counts, which is the same in all processes if they run the same loops.
  void set_epoch(uint64_t epoch);

 private:
  int64_t size_, count_;
  DistributedSamplerOptions options_;
  std::atomic<bool> epoch_given_{false};
  std::atomic<uint64_t> epoch_{0};
};

}  // namespace tenon::data
