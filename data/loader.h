// Batches of a data set, made ahead by worker threads.
#pragma once

#include <concepts>
#include <cstdint>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

#include <tenon/data/dataset.h>

namespace tenon::data {

struct LoaderOptions {
  int64_t batch_size = 64;
  bool shuffle = true;  // a new order each epoch, decided by seed and epoch alone
  uint64_t seed = 0;
  int workers = 2;         // threads that make batches; 0 makes each one when it is asked for
  int prefetch = 2;        // batches made ahead, at least one a worker
  bool drop_last = false;  // leave out a last batch that is smaller
};

// Where a loader stands: the next batch is number `position` of epoch `epoch`.
struct LoaderState {
  uint64_t epoch = 0;
  int64_t position = 0;
  friend bool operator==(const LoaderState&, const LoaderState&) = default;
};

// Each loop over a loader is one epoch:
//   for (auto& [images, labels] : loader) …
// Batches come in the same order whatever the number of workers. Leaving a loop early stops and
// joins its workers; the next loop is the next epoch. What a worker throws arrives in the loop as a
// DataError that names the batch, with the cause nested. A loader belongs to one thread; copies go
// on independently.
class TENON_API DataLoader {
 public:
  // ValueError where an option makes no sense; of a loop or size() where the data set says that its
  // size is negative. OutOfMemoryError of a loop where the host cannot hold the numbers of a batch,
  // or shuffled ones of all examples.
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
  class TENON_API Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    explicit Iterator(std::unique_ptr<Epoch> epoch);
    Iterator(Iterator&&) noexcept;
    Iterator& operator=(Iterator&&) noexcept;
    ~Iterator();

    // The batch belongs to the reader, who may move it away.
    Batch& operator*() const;
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& i, std::default_sentinel_t) { return i.at_end(); }

   private:
    bool at_end() const;
    std::unique_ptr<Epoch> epoch_;
  };

  // Starts an epoch and its workers.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  // Batches in an epoch.
  int64_t size() const;
  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }

  // Inside a loop: behind the batch that the loop has in hand. The state of a finished epoch is the
  // beginning of the next one.
  LoaderState state() const;
  // The next loop starts there. ValueError where the position is outside the epoch.
  void set_state(LoaderState state);

 private:
  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  std::shared_ptr<LoaderState> state_;  // shared with the running epoch
  bool resume_ = true;  // the next loop starts at state_, not at the epoch behind it
};

}  // namespace tenon::data
