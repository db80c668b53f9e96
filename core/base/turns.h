// Threads that run in turns (modules/lockstep.h), and so may wait for each other in the middle of a
// function.
#pragma once

#include <tenon/core/base/per_thread.h>

namespace tenon {

// Its value is not null in a thread that has a part in such turns. Rarely read, so that it takes no
// static thread-local storage.
extern constinit ThreadExitKey turns_key;

// Whoever runs in turns must take no lock that it holds while other code runs: the thread whose
// turn comes next may want it, too.
inline const void* part_in_turns() {
  const auto key = turns_key.get(nullptr);
  return key ? pthread_getspecific(*key) : nullptr;
}

}  // namespace tenon
