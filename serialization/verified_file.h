// A checkpoint in memory whose every byte has been checked.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include <tenon/serialization/image.h>

namespace tenon {

// Reads the whole file at once, so later changes of the file do not affect the bytes that were
// checked.
class VerifiedFile {
 public:
  // Throws a CheckpointError if the file is missing, cut off, damaged, too long or another kind of
  // file.
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
