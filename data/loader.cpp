#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/host_room.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/data/loader.h>
#include <tenon/data/naming.h>
#include <tenon/data/random.h>
#include <tenon/data/reading.h>

namespace tenon::data {
namespace {

int64_t batches_of(int64_t examples, const LoaderOptions& options) {
  return examples / options.batch_size + (!options.drop_last && examples % options.batch_size != 0);
}

void check(const LoaderOptions& options) {
  auto refuse = [](const char* name, int64_t value, const char* least) {
    throw ValueError(
        fmt::format("DataLoader: {} has to be at least {}, but is {}", name, least, value));
  };
  if (options.batch_size < 1) refuse("batch_size", options.batch_size, "1");
  if (options.workers < 0) refuse("workers", options.workers, "0");
  if (options.prefetch < 0) refuse("prefetch", options.prefetch, "0");
  for (auto [name, value] :
       {std::pair("workers", options.workers), std::pair("prefetch", options.prefetch)})
    if (value > 1024)
      throw ValueError(
          fmt::format("DataLoader: {} has to be at most 1024, but is {}", name, value));
}

// Returns the size that a data set reports, which a user may have written.
int64_t checked_size(const Dataset& dataset) {
  const int64_t size = dataset.size();
  if (size < 0)
    throw ValueError(fmt::format(
        "DataLoader: the data set says that its size is {}; it has to be at least 0", size));
  return size;
}

// Refuses a list of indices that does not fit into memory: those of all examples if they are
// shuffled, otherwise those of one batch.
void require_room_for_numbers(int64_t examples, const LoaderOptions& options) {
  const auto count = static_cast<uint64_t>(
      options.shuffle && !options.sampler ? examples : std::min(examples, options.batch_size));
  if (!host_has_room(count, sizeof(int64_t)))
    refuse_host_room(count, sizeof(int64_t),
                     fmt::format("DataLoader: the numbers of {} examples: ", count));
}

// Returns how many examples an epoch has.
int64_t examples_of(const Dataset& dataset, const LoaderOptions& options) {
  const int64_t size = checked_size(dataset);
  if (!options.sampler) return size;
  const int64_t count = options.sampler->size();
  if (count < 0)
    throw ValueError(fmt::format(
        "DataLoader: the sampler says that its size is {}; it has to be at least 0", count));
  return count;
}

// Returns the order of the examples, which is empty where they come one after the other.
std::vector<int64_t> order_of(const Dataset& dataset, const LoaderOptions& options,
                              int64_t examples, uint64_t epoch) {
  if (!options.sampler) return permutation(options.shuffle ? examples : 0, options.seed, epoch);
  std::vector<int64_t> order = options.sampler->order(options.seed, epoch);
  if (order.size() != static_cast<size_t>(examples))
    throw ValueError(
        fmt::format("DataLoader: the sampler says that its size is {}, and its order for epoch {} "
                    "has {} examples",
                    examples, epoch, order.size()));
  const int64_t size = dataset.size();
  for (int64_t index : order)
    if (index < 0 || index >= size)
      throw IndexError(
          fmt::format("DataLoader: the sampler asks for example {} of {}, which has {}", index,
                      dataset.name(), size));
  return order;
}

// Runs a function of the user's; what it throws becomes a DataError that names the option.
template <class Body>
void naming_function(const char* option, Body&& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    std::throw_with_nested(DataError(fmt::format("{}: {}", option, current_error_text())));
  }
}

void check_position(const LoaderState& state, int64_t size) {
  if (state.position < 0 || state.position > size)
    throw ValueError(fmt::format("DataLoader: there is no position {} in an epoch of {} batches",
                                 state.position, size));
}

}  // namespace

// One loop: the order of its examples, and the batches that are ready.
class DataLoader::Epoch {
 public:
  Epoch(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options,
        std::shared_ptr<LoaderState> state)
      : dataset_(std::move(dataset)),
        options_(options),
        state_(std::move(state)),
        epoch_(state_->epoch) {
    const int64_t examples = examples_of(*dataset_, options_);
    require_room_for_numbers(examples, options_);
    order_ = order_of(*dataset_, options_, examples, epoch_);
    count_ = batches_of(examples, options_);
    examples_ = examples;
    check_position(*state_, count_);  // the data set may have shrunk since it was set
    taken_ = next_to_make_ = next_to_take_ = state_->position;
    const int64_t left = count_ - next_to_take_;
    const auto workers = static_cast<size_t>(std::clamp<int64_t>(options_.workers, 0, left));
    shared_->ready.resize(
        std::max<size_t>(workers, static_cast<size_t>(std::max(options_.prefetch, 1))));
    try {
      for (size_t i = 0; i < workers; ++i) start_worker(i, workers);
      advance();
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Epoch() { stop(); }
  Epoch(const Epoch&) = delete;

  bool at_end() const { return !current_; }
  Batch& current() { return *current_; }

  // Takes the next batch; at the end there is none.
  void advance() {
    current_.reset();
    if (failure_) std::rethrow_exception(failure_);
    if (workers_are_elsewhere())
      throw DataError(
          "DataLoader: this loop began before the process was forked, and its workers are in the "
          "parent; begin a new loop");
    if (next_to_take_ >= count_) {
      stop();
      *state_ = {epoch_ + 1, 0};
      return;
    }
    Made made = shared_->workers.empty() ? make(next_to_take_) : take();
    if (made.error) {
      stop();
      failure_ = named(made.error);
      std::rethrow_exception(failure_);
    }
    current_ = std::move(made.batch);
    *state_ = {epoch_, ++next_to_take_};
  }

 private:
  struct Made {
    int64_t number = -1;
    Batch batch;
    std::exception_ptr error;
  };

  std::vector<int64_t> indices(int64_t number) const {
    const int64_t begin = number * options_.batch_size,
                  end = begin + std::min(options_.batch_size, examples_ - begin);
    if (!order_.empty()) return {order_.begin() + begin, order_.begin() + end};
    std::vector<int64_t> in_order(static_cast<size_t>(end - begin));
    for (size_t i = 0; i < in_order.size(); ++i) in_order[i] = begin + static_cast<int64_t>(i);
    return in_order;
  }

  Batch make_batch(int64_t number) const {
    const Reading now{.seed = options_.seed,
                      .epoch = epoch_,
                      .batch = static_cast<uint64_t>(number),
                      .repeats = options_.sampler && options_.sampler->repeats()};
    const ReadingScope scope(now);
    const std::vector<int64_t> asked = indices(number);
    Batch batch;
    if (options_.collate) {
      const std::vector<Example> examples = get_examples(*dataset_, asked);
      naming_function("collate", [&] { batch = options_.collate(examples); });
    } else {
      batch = dataset_->get_batch(asked);
    }
    if (!options_.transform_batch) return batch;
    // Not the generator of an example: those are numbered from 0.
    Random random = Random(now.seed, now.epoch).at(~now.batch).at(0);
    naming_function("transform_batch",
                    [&] { batch = options_.transform_batch(std::move(batch), random); });
    return batch;
  }

  Made make(int64_t number) const {
    Made made{number, {}, nullptr};
    try {
      made.batch = make_batch(number);
    } catch (...) {
      made.error = std::current_exception();
    }
    return made;
  }

  void start_worker(size_t i, size_t workers) {
    try {
      shared_->workers.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      throw DataError(fmt::format(
          "DataLoader: worker {} of {} cannot be started: {}; the system allows no more "
          "threads or memory for them, so set fewer workers",
          i + 1, workers, error.what()));
    }
  }

  void work() {
    auto& shared = *shared_;
    std::unique_lock lock(shared.mutex);
    for (;;) {
      shared.may_make.wait(lock, [&] {
        return stopped_ || next_to_make_ < taken_ + static_cast<int64_t>(shared_->ready.size());
      });
      if (stopped_ || next_to_make_ >= count_) return;
      const int64_t number = next_to_make_++;
      lock.unlock();
      Made made = make(number);
      lock.lock();
      shared_->ready[slot(number)] = std::move(made);
      shared.is_ready.notify_one();
    }
  }

  Made take() {
    std::unique_lock lock(shared_->mutex);
    Made& place = shared_->ready[slot(next_to_take_)];
    shared_->is_ready.wait(lock, [&] { return place.number == next_to_take_; });
    Made made = std::exchange(place, {});
    taken_ = next_to_take_ + 1;
    shared_->may_make.notify_all();
    return made;
  }

  size_t slot(int64_t number) const { return static_cast<size_t>(number) % shared_->ready.size(); }

  void stop() {
    // The threads are in the parent process, so they cannot be joined, and their mutex may be
    // locked for ever: what they share is leaked.
    if (workers_are_elsewhere()) return static_cast<void>(shared_.release());
    {
      std::lock_guard lock(shared_->mutex);
      stopped_ = true;
    }
    shared_->may_make.notify_all();
    for (std::thread& worker : shared_->workers)
      if (worker.joinable()) worker.join();
  }

  bool workers_are_elsewhere() const {
    return generation_ != fork_generation() && !(shared_ && shared_->workers.empty());
  }

  // Returns the DataError of the batch that is next to be taken, with its cause nested.
  std::exception_ptr named(const std::exception_ptr& error) const {
    try {
      try {
        std::rethrow_exception(error);
      } catch (const ExampleError& cause) {
        refuse(cause.what(), 4);  // the first few tell the batch, the cause tells the example
      } catch (...) {
        refuse(current_error_text(), 256);
      }
    } catch (...) {
      return std::current_exception();
    }
  }
  [[noreturn]] void refuse(const std::string& why, size_t most) const {
    const std::vector<int64_t> asked = indices(next_to_take_);
    std::string examples;
    for (size_t i = 0; i < asked.size() && i < most; ++i)
      examples += fmt::format("{}{}", i ? ", " : "", asked[i]);
    std::throw_with_nested(DataError(fmt::format(
        "DataLoader: batch {} of epoch {} (examples {}{} of {}) cannot be made: {}", next_to_take_,
        epoch_, examples, asked.size() > most ? ", …" : "", dataset_->name(), why)));
  }

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
  const std::shared_ptr<LoaderState> state_;
  const uint64_t epoch_;
  std::vector<int64_t> order_;
  int64_t count_ = 0, examples_ = 0;
  int64_t next_to_take_;  // used by the consumer alone
  std::optional<Batch> current_;
  std::exception_ptr failure_;  // what ended the loop; there is nothing behind it

  struct Shared {
    std::mutex mutex;
    std::condition_variable may_make, is_ready;
    std::vector<Made> ready;  // a ring by batch number; guarded by the mutex
    std::vector<std::thread> workers;
  };
  const uint32_t generation_ = fork_generation();
  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
  // Guarded by its mutex:
  int64_t next_to_make_, taken_;
  bool stopped_ = false;
};

DataLoader::Iterator::Iterator(std::unique_ptr<Epoch> epoch) : epoch_(std::move(epoch)) {}
DataLoader::Iterator::Iterator(Iterator&&) noexcept = default;
DataLoader::Iterator& DataLoader::Iterator::operator=(Iterator&&) noexcept = default;
DataLoader::Iterator::~Iterator() = default;
Batch& DataLoader::Iterator::operator*() const { return epoch_->current(); }
DataLoader::Iterator& DataLoader::Iterator::operator++() {
  epoch_->advance();
  return *this;
}
bool DataLoader::Iterator::at_end() const { return epoch_->at_end(); }

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)), options_(options), state_(std::make_shared<LoaderState>()) {
  check(options);
  if (!dataset_) throw ValueError("DataLoader: the data set is null");
}
DataLoader::DataLoader(const DataLoader& other)
    : dataset_(other.dataset_),
      options_(other.options_),
      state_(std::make_shared<LoaderState>(*other.state_)),
      resume_(other.resume_) {}
DataLoader& DataLoader::operator=(const DataLoader& other) {
  dataset_ = other.dataset_, options_ = other.options_, resume_ = other.resume_;
  state_ = std::make_shared<LoaderState>(*other.state_);
  return *this;
}
DataLoader::~DataLoader() = default;

DataLoader::Iterator DataLoader::begin() {
  LoaderState start = *state_;
  // A loop that was left early is not continued, unless its state was set.
  if (!resume_ && start.position != 0) start = {start.epoch + 1, 0};
  // An older loop that still runs keeps its own. Making this one may throw: then all is as before.
  auto state = std::make_shared<LoaderState>(start);
  auto epoch = std::make_unique<Epoch>(dataset_, options_, state);
  state_ = std::move(state), resume_ = false;
  return Iterator(std::move(epoch));
}

int64_t DataLoader::size() const { return batches_of(examples_of(*dataset_, options_), options_); }

LoaderState DataLoader::state() const { return *state_; }

void DataLoader::set_state(LoaderState state) {
  const int64_t count = size();
  check_position(state, count);
  if (state.position == count && state.position > 0) state = {state.epoch + 1, 0};
  state_ = std::make_shared<LoaderState>(state);  // a loop that still runs keeps its own
  resume_ = true;
}

std::function<void()> DataLoader::prepare_state(LoaderState state, uint64_t seed) {
  check_position(state, size());
  return [this, seed, next = std::make_shared<LoaderState>(state)] {
    state_ = next;
    options_.seed = seed;
    resume_ = true;
  };
}

}  // namespace tenon::data
