#include <map>
#include <mutex>
#include <system_error>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/save_turn.h>

namespace tenon {
namespace {

// The save of a path that began last.
struct LastTurn {
  uint64_t number = 0;
  uint32_t generation = 0;  // of forks: the threads of others are in the parent
  std::shared_future<void> ended;
};
struct LastTurns {
  uint64_t begun = 0;
  std::map<std::string, LastTurn> by_path;
};

ForkMutex& turns_mutex() {
  static constinit NeverDestroyed<ForkMutex, ForkOrder::tables> mutex;
  return mutex.get();
}
LastTurns& last_turns() {  // under the mutex
  static constinit NeverDestroyed<LastTurns> turns;
  return turns.get();
}

std::string one_name(const std::filesystem::path& path) {
  return absolute_path(path).lexically_normal().native();
}

}  // namespace

SaveTurn::SaveTurn(const std::filesystem::path& path) : path_(one_name(path)) {
  const std::shared_future<void> ended = ended_.get_future().share();
  const uint32_t generation = fork_generation();
  const std::lock_guard lock(turns_mutex());
  LastTurns& turns = last_turns();
  LastTurn& last = turns.by_path[path_];
  if (last.ended.valid() && last.generation == generation) earlier_ = last.ended;
  number_ = ++turns.begun;
  last = {number_, generation, ended};
}

SaveTurn::~SaveTurn() {
  ended_.set_value();
  const std::lock_guard lock(turns_mutex());
  LastTurns& turns = last_turns();
  const auto last = turns.by_path.find(path_);
  if (last != turns.by_path.end() && last->second.number == number_) turns.by_path.erase(last);
}

void wait_for_all_saves() noexcept try {
  std::vector<std::shared_future<void>> all;
  {
    const std::lock_guard lock(turns_mutex());
    for (const auto& [path, last] : last_turns().by_path)
      if (last.generation == fork_generation()) all.push_back(last.ended);
  }
  for (const auto& ended : all) ended.wait();
} catch (const std::exception&) {  // there is no memory: those who hold the saves wait for them
}

void SaveTurn::wait() const {
  if (earlier_.valid()) earlier_.wait();
}

}  // namespace tenon
