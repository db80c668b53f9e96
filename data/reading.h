// Tells a data set for which epoch it is read.
#pragma once

#include <cstdint>

#include <tenon/core/api.h>
#include <tenon/data/random.h>

namespace tenon::data {

// Describes what is read at the moment. Augmentation that draws its numbers from random(index) is
// different in each epoch, and the same whenever seed, epoch and index are the same, whatever the
// number of workers.
struct Reading {
  // The seed of the loader, LoaderOptions::seed.
  uint64_t seed = 0;
  // The epoch, LoaderState::epoch.
  uint64_t epoch = 0;
  // The number of the batch in its epoch.
  uint64_t batch = 0;
  // The place of the example in the batch.
  uint64_t place = 0;
  // True if the sampler may draw an example several times in an epoch.
  bool repeats = false;

  // Returns the generator for an example. If the sampler repeats examples, it depends on the batch
  // and the place instead of the index, so that repetitions of an example differ.
  Random random(int64_t index) const {
    const Random base(seed, epoch);
    return repeats ? base.at(batch).at(~place) : base.at(static_cast<uint64_t>(index));
  }
};

// Returns what the calling thread reads: a data set calls it in get_batch or get. Outside of a
// loader all fields are 0, unless a ReadingScope says otherwise.
TENON_API Reading reading();

// Decides what reading() returns in this thread while the object lives. A DataLoader uses it in its
// workers; a program that reads a data set without a loader may use it, too.
class TENON_API ReadingScope {
 public:
  // Begins the scope.
  explicit ReadingScope(const Reading& now);
  ~ReadingScope();
  ReadingScope(const ReadingScope&) = delete;
  ReadingScope& operator=(const ReadingScope&) = delete;

 private:
  const Reading now_;
  const Reading* const before_;
};

}  // namespace tenon::data
