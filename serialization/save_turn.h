// The order in which saves of one path are written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <string>

namespace tenon {

// Saves of one path are written in the order in which they began. Otherwise one that began earlier
// and takes longer would put an older state in the place of a newer one.
class SaveTurn {
 public:
  // Begins a save.
  explicit SaveTurn(const std::filesystem::path& path);
  ~SaveTurn();  // ends it
  SaveTurn(const SaveTurn&) = delete;
  // Waits until the saves of this path that began earlier in this process have ended.
  void wait() const;

 private:
  const std::string path_;
  uint64_t number_ = 0;
  std::promise<void> ended_;
  std::shared_future<void> earlier_;  // not valid if there is none
};

// Waits until all saves that began in this process have ended.
void wait_for_all_saves() noexcept;

}  // namespace tenon
