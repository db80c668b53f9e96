// Reads a data set in batches, which worker threads prepare in advance.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

#include <tenon/data/dataset.h>
#include <tenon/data/random.h>
#include <tenon/data/sampler.h>
#include <tenon/data/shared.h>

namespace tenon::data {

// Says which batches a loader makes, and how.
struct LoaderOptions {
  // Sets the number of examples in a batch, at least 1; the last one may have fewer.
  int64_t batch_size = 64;
  // Takes a new order in each epoch, which seed and epoch determine.
  bool shuffle = true;
  // Sets the seed of the order and of what augmentation draws.
  uint64_t seed = 0;
  // Sets the number of threads that make batches, from 0 to 1024; with 0 each batch is made when it
  // is needed.
  int workers = 2;
  // Sets the number of batches to make in advance, from 0 to 1024, but at least one for each
  // worker.
  int prefetch = 2;
  // Leaves out the last batch if it is smaller.
  bool drop_last = false;
  // Decides which examples an epoch has, and their order, instead of `shuffle`:
  // .sampler = WeightedRandomSampler(weights, 1000).
  Shared<Sampler> sampler = {};
  // Makes a batch of single examples, instead of Dataset::get_batch, for examples that differ in
  // shape. Several workers call it at the same time.
  std::function<Batch(std::span<const Example> examples)> collate = {};
  // Changes a batch in the worker that made it, as MixUp does. Its random numbers depend on the
  // seed, the epoch and the number of the batch.
  std::function<Batch(Batch batch, Random& random)> transform_batch = {};
};

// The state of a loader: its next batch is number `position` of epoch `epoch`, both counted from 0.
struct LoaderState {
  uint64_t epoch = 0;
  int64_t position = 0;
  // Returns whether both are the same place.
  friend bool operator==(const LoaderState&, const LoaderState&) = default;
};

// Each loop over a loader is one epoch:
//   for (auto& [images, labels] : loader) …
// The order of the batches does not depend on the number of workers. Leaving a loop early stops its
// workers; the next loop is the next epoch. An exception in a worker is thrown in the loop as a
// DataError that names the batch, its examples and the data set, with the cause nested, which names
// the example if examples are made one by one. It ends the loop: advancing its iterator once more
// throws it again. A loader belongs to one thread. Copies are independent of each other.
class TENON_API DataLoader {
 public:
  // Makes a loader of a data set that is shared, or of one that is copied or moved. Throws a
  // ValueError for an option outside its range and for a null pointer. A loop and size() throw a
  // ValueError if the data set returns a negative size. A loop throws a ValueError or IndexError
  // for an order of the sampler that does not fit its size or the data set, a DataError if a worker
  // cannot be started, and an OutOfMemoryError if the memory of the host cannot hold the indices of
  // a batch or, with `shuffle`, those of all examples.
  DataLoader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options = {});
  template <class D>
    requires std::derived_from<std::remove_cvref_t<D>, Dataset>
  DataLoader(D&& dataset, const LoaderOptions& options = {})
      : DataLoader(std::make_shared<const std::remove_cvref_t<D>>(std::forward<D>(dataset)),
                   options) {}
  DataLoader(const DataLoader& other);
  DataLoader& operator=(const DataLoader& other);
  ~DataLoader();

  class Epoch;
  // Goes through the batches of one epoch.
  class TENON_API Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    // begin() calls this.
    explicit Iterator(std::unique_ptr<Epoch> epoch);
    Iterator(Iterator&&) noexcept;
    Iterator& operator=(Iterator&&) noexcept;
    ~Iterator();

    // Returns the current batch, which the caller owns and may move.
    Batch& operator*() const;
    // Takes the next batch, and waits for it. Throws the error of a worker as the loop does.
    Iterator& operator++();
    void operator++(int) { ++*this; }
    // Returns whether the last batch was taken.
    friend bool operator==(const Iterator& i, std::default_sentinel_t) { return i.at_end(); }

   private:
    bool at_end() const;
    std::unique_ptr<Epoch> epoch_;
  };

  // Starts an epoch and its workers, and waits for the first batch.
  Iterator begin();
  // Returns the end, which every loop compares with.
  std::default_sentinel_t end() const { return {}; }

  // Returns the number of batches in an epoch.
  int64_t size() const;
  // Returns the data set.
  const Dataset& dataset() const { return *dataset_; }
  // Returns the options, with the seed that prepare_state may have set.
  const LoaderOptions& options() const { return options_; }

  // Returns the state. In a loop it is the position after the current batch. The state of a
  // finished epoch is the beginning of the next one.
  LoaderState state() const;
  // Makes the next loop start at a state. Throws a ValueError for a position outside the epoch.
  void set_state(LoaderState state);
  // Does all of set_state(state) that can fail, and changes nothing; the function that it returns
  // does the rest and sets the seed, too. Where the last batch of an epoch was taken and its loop
  // had not ended, the next loop is the end of that epoch, without a batch, so that the program
  // goes on to what it does between two epochs.
  [[nodiscard]] std::function<void()> prepare_state(LoaderState state, uint64_t seed);

 private:
  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  std::shared_ptr<LoaderState> state_;  // shared with the running epoch
  bool resume_ = true;                  // the next loop starts at state_, not at the epoch after it
};

}  // namespace tenon::data
