// An HDF5 file driver over memory, so that the HDF5 library itself never touches a disk. Include
// only from serialization/*.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include <hdf5.h>

namespace tenon {

// What one open HDF5 file reads and writes. Written sparsely: only what HDF5 itself writes (its
// metadata) takes memory; space that was merely set aside for tensors does not, and is filled in
// when the file goes to disk. HDF5's sec2 and core drivers cannot do that, and a failed write
// leaves the library with a file that it can no longer close.
class MemoryFile {
 public:
  static constexpr uint64_t value_alignment =
      64;  // bytes, from the beginning of the file, at which tensors' values are put

  MemoryFile() = default;  // to write; empty
  explicit MemoryFile(std::span<const std::byte> image)
      : image_(image), end_(image.size()) {}  // to read; not copied
  MemoryFile(const MemoryFile&) = delete;

  // False where it goes past the end of a file to read.
  bool read(uint64_t offset, size_t count, void* to) const;
  // False where the file is one to read. Where memory is out, the bytes are dropped, and is_whole()
  // says so: HDF5 cannot close a file that it failed to write to.
  bool write(uint64_t offset, size_t count, const void* from);
  // Whether all that was written is there.
  bool is_whole() const { return whole_; }
  uint64_t size() const { return end_; }
  void resize(uint64_t end) { end_ = end; }

  // Makes files opened or created with `access` (a file access property list) use this object,
  // which has to outlive them.
  void use_in(hid_t access);

 private:
  static constexpr size_t page_bytes = 4096;
  using Page = std::array<std::byte, page_bytes>;

  std::span<const std::byte> image_;
  std::unordered_map<uint64_t, Page> pages_;
  uint64_t end_ = 0;
  bool whole_ = true;
};

}  // namespace tenon
