// A checkpoint in memory whose every byte has been checked.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include <tenon/serialization/image.h>

namespace tenon {

// Reads the file at once; what is parsed and handed out is what was checked, whatever happens to
// the file meanwhile.
class VerifiedFile {
 public:
  // CheckpointError where it is missing, cut off, damaged, too long or another kind of file.
  explicit VerifiedFile(const std::filesystem::path& path);

  std::span<const std::byte> image() const { return {bytes_.get(), size_}; }
  const ImageContents& contents() const { return contents_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte[], Free> bytes_;
  size_t size_ = 0;
  ImageContents contents_;
};

}  // namespace tenon
