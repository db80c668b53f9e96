// Machine code that was compiled at run time, kept in files from process to process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::cuda {

// A folder with one file for each entry. It is used only if it belongs to the user and nobody else
// may write to it. Processes and threads may share it: an entry appears whole or not at all. Errors
// of the file system are not thrown; a cache that cannot be used finds and keeps nothing.
class DiskCache {
 public:
  // An empty path switches the cache off. If all entries together have more than `most_bytes`, the
  // oldest ones are removed.
  explicit DiskCache(std::string folder, uint64_t most_bytes = uint64_t{64} << 20);

  // Returns the value that was stored for exactly this key; nothing if the file does not exist, is
  // damaged or belongs to another user.
  std::optional<std::string> find(std::string_view key) const;
  void store(std::string_view key, std::string_view value) const;

  // Returns TENON_CUDA_KERNEL_CACHE, which is an absolute path or "off", otherwise tenon/cuda in
  // XDG_CACHE_HOME or in the .cache of HOME. Returns an empty path for "off" and if none is set.
  static std::string default_folder();

 private:
  std::string folder_;
  uint64_t most_bytes_;
};

}  // namespace tenon::cuda
