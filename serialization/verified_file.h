// A checkpoint whose bytes are checked before anybody sees them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/core/base/input_file.h>
#include <tenon/serialization/checkpoint_index.h>
#include <tenon/serialization/checksum.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/shards.h>

namespace tenon {

// Every byte that leaves it has been compared with a checksum after it was read, so later changes
// of the file do not matter. A file with checksums of its pieces is read where it is asked for, and
// an older one, which has one checksum, is in memory as a whole.
class VerifiedFile {
 public:
  enum class Shards { opened, listed };
  // Throws a CheckpointError if the file is missing, cut off, damaged, too long or another kind of
  // file, and if it is an index, for a shard that is one of these or not of the same save. What is
  // not read yet may be damaged nevertheless.
  explicit VerifiedFile(const std::filesystem::path& path, Shards shards = Shards::opened);

  // The size of an index is all that its shards hold together.
  uint64_t size() const { return size_; }
  const ImageContents& contents() const { return contents_; }
  std::vector<StoredTensor> group(const std::string& name) const;
  // What an index lists; none if the file is no index.
  const std::vector<Shard>& shards() const { return listed_; }
  // A tensor, and where its values go: tensor.bytes of them.
  struct Wanted {
    const StoredTensor* tensor;
    void* to;
  };
  // Reads the values of tensors, over all threads of the host together. Throws a NamedFileError if
  // they are damaged or the file cannot be read.
  void read(std::span<const Wanted> all) const;
  void read(const StoredTensor& tensor, void* to) const {
    const Wanted wanted{&tensor, to};
    read(std::span(&wanted, 1));
  }
  // Compares what was not read yet with its checksums, over all threads and without keeping it.
  // Throws as read().
  void verify_rest() const;

 private:
  // What one thread reads of a file at a time.
  struct Part {
    const VerifiedFile* file;
    uint64_t begin, end;
    std::byte* to;
  };
  struct Free {
    void operator()(std::byte* bytes) const;
  };

  void read_contents(const CheckpointHeader& header);
  void read_page(uint64_t begin, std::byte* to) const;
  std::vector<StoredTensor> own_group(const std::string& name) const;
  void list_shards();
  void open_shards(const std::filesystem::path& path);
  void read_whole(const Checksum& body);
  void read_piece_table(uint64_t pieces_at, const Checksum& checksum);
  void divide_into_parts(const StoredTensor& tensor, std::byte* to, std::vector<Part>& parts) const;
  void read_range(uint64_t begin, uint64_t end, std::byte* to) const;
  void read_pieces(uint64_t first, uint64_t last, std::byte* to) const;
  uint64_t begin_of(uint64_t piece) const;
  uint64_t end_of(uint64_t piece) const;

  InputFile file_;
  std::array<std::byte, kCheckpointHeaderBytes> header_{};
  uint64_t size_ = 0;
  std::unique_ptr<std::byte[], Free> bytes_;  // of a file without checksums of pieces
  std::vector<Checksum> pieces_;
  uint64_t pieces_at_ = 0;
  mutable std::vector<uint8_t> seen_;  // for each piece, whether it was right
  ImageContents contents_;
  std::vector<StoredGroup> groups_;
  std::vector<Shard> listed_;
  std::vector<std::unique_ptr<const VerifiedFile>> shards_;
};

}  // namespace tenon
