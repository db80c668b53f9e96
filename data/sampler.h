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

// Reads all examples, one after the other.
class TENON_API SequentialSampler final : public Sampler {
 public:
  // Takes the size of the data set. Throws a ValueError for a negative size.
  explicit SequentialSampler(int64_t size);
  // Returns the size of the data set.
  int64_t size() const override { return size_; }
  // Returns the indices 0, 1, 2, … of every epoch.
  std::vector<int64_t> order(uint64_t seed, uint64_t epoch) const override;

 private:
  int64_t size_;
};

// Says how many examples are drawn, and of which.
struct RandomSamplerOptions {
  // Draws each example from all of them, so that one may come several times.
  bool replacement = false;
  // Sets the number of examples that are drawn; by default the size of the data set.
  std::optional<int64_t> num_samples = {};
};
// Reads examples in random order, each at most once unless there is replacement. Without it,
// num_samples may still be more than there are: then all of them are drawn again, in another order.
class TENON_API RandomSampler final : public Sampler {
 public:
  // Takes the size of the data set. Throws a ValueError for a negative number, and for samples of
  // an empty data set.
  explicit RandomSampler(int64_t size, const RandomSamplerOptions& options = {});
  // Returns num_samples.
  int64_t size() const override { return count_; }
  // Returns num_samples random indices.
  std::vector<int64_t> order(uint64_t seed, uint64_t epoch) const override;
  // Returns whether an index may come more than once: with replacement, or if more are drawn than
  // there are.
  bool repeats() const override { return replacement_ || count_ > size_; }

 private:
  int64_t size_, count_;
  bool replacement_;
};

// Reads the examples with these indices in random order.
class TENON_API SubsetRandomSampler final : public Sampler {
 public:
  // Takes the indices, which the loader compares with its data set.
  explicit SubsetRandomSampler(std::vector<int64_t> indices) : indices_(std::move(indices)) {}
  // Returns the number of indices.
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  // Returns the indices in an order that seed and epoch determine.
  std::vector<int64_t> order(uint64_t seed, uint64_t epoch) const override;

 private:
  std::vector<int64_t> indices_;
};

// Draws example i with a probability proportional to weights[i].
class TENON_API WeightedRandomSampler final : public Sampler {
 public:
  // Takes a weight for each example, and how many are drawn in an epoch. Without replacement no
  // example is drawn twice. Throws a ValueError for a weight that is negative or not finite, for a
  // negative num_samples, and if fewer weights are positive than are to be drawn (with replacement:
  // if none is).
  WeightedRandomSampler(std::vector<double> weights, int64_t num_samples, bool replacement = true);
  // Returns num_samples.
  int64_t size() const override { return count_; }
  // Returns num_samples random indices.
  std::vector<int64_t> order(uint64_t seed, uint64_t epoch) const override;
  // Returns whether examples are drawn with replacement.
  bool repeats() const override { return replacement_; }

 private:
  std::vector<double> weights_;
  int64_t count_;
  bool replacement_;
};

// Says which part of the examples a process reads.
struct DistributedSamplerOptions {
  // Sets the number of processes that train together.
  int64_t num_replicas = 1;
  // Says which of them this is, from 0 to num_replicas - 1.
  int64_t rank = 0;
  // Takes a new order in each epoch, which seed and epoch determine.
  bool shuffle = true;
  // Sets the seed of the order, the same for all processes; that of the loader is not used.
  uint64_t seed = 0;
  // Leaves out what does not divide evenly, instead of repeating examples.
  bool drop_last = false;
};
// Reads the part of one process of a data set that several processes read together: examples rank,
// rank + num_replicas, … of an order that is the same for all. All parts have the same size; by
// default examples from the beginning of the order are repeated for that.
class TENON_API DistributedSampler final : public Sampler {
 public:
  // Takes the size of the data set. Throws a ValueError for a negative size, for num_replicas below
  // 1 and for a rank outside [0, num_replicas).
  explicit DistributedSampler(int64_t size, const DistributedSamplerOptions& options = {});
  // Makes a copy that reads the same epoch.
  DistributedSampler(const DistributedSampler& other);

  // Returns the number of examples of this process.
  int64_t size() const override { return count_; }
  // Returns the indices of this process; `seed` is not used.
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
