// Machine code that was compiled at run time, kept in files from process to process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::cuda {

// A folder of entries, one file each. It is used only if it is the user's own, and nobody else may
// write to it. Processes and threads may share it: an entry appears whole or not at all. Nothing
// here throws for what a file system answers; a cache that cannot be used finds and keeps nothing.
class DiskCache {
 public:
  // An empty path is a cache that is switched off. The oldest entries go when all have more than so
  // many bytes together.
  explicit DiskCache(std::string folder, uint64_t most_bytes = uint64_t{64} << 20);

  // The value that was stored for this very key; nothing if the file is damaged, of another user,
  // or not there.
  std::optional<std::string> find(std::string_view key) const;
  void store(std::string_view key, std::string_view value) const;

  // TENON_CUDA_KERNEL_CACHE, an absolute path or "off"; otherwise tenon/cuda in XDG_CACHE_HOME, or
  // in the .cache of HOME. Empty where it is off, or none of these is set.
  static std::string default_folder();

 private:
  std::string folder_;
  uint64_t most_bytes_;
};

}  // namespace tenon::cuda
