// An HDF5 file driver for memory, so that the HDF5 library itself never reads or writes a disk.
// Include it only from serialization/*.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>

#include <hdf5.h>

namespace tenon {

// The bytes of a file, wherever they are.
struct FileImage {
  uint64_t size = 0;
  // Copies `count` bytes from `offset`, all of which have to be in the file. Throws if it cannot.
  std::function<void(uint64_t offset, size_t count, void* to)> read;
};

// The memory that one open HDF5 file reads and writes. It is sparse: only what HDF5 itself writes,
// its metadata, occupies memory. The space that was reserved for tensors does not; it is filled in
// when the file is written to disk. HDF5's sec2 and core drivers cannot do that, and a failed write
// would leave the library with a file that it cannot close any more.
class MemoryFile {
 public:
  // The values of tensors begin at multiples of this number of bytes from the beginning of the
  // file.
  static constexpr uint64_t kValueAlignment = 64;

  // An empty file to write.
  MemoryFile() = default;
  // A file to read. The image is not copied.
  explicit MemoryFile(std::span<const std::byte> image)
      : MemoryFile(FileImage{image.size(), [image](uint64_t offset, size_t count, void* to) {
                               std::memcpy(to, image.data() + offset, count);
                             }}) {}
  // The same for bytes that are elsewhere.
  explicit MemoryFile(FileImage image) : image_(std::move(image)), end_(image_.size) {}
  MemoryFile(const MemoryFile&) = delete;

  // Returns false if the range goes past the end of a file to read, or cannot be read.
  bool read(uint64_t offset, size_t count, void* to) const;
  // Returns false for a file to read. If there is no memory, the bytes are dropped and is_whole()
  // becomes false: HDF5 could not close a file after a failed write.
  bool write(uint64_t offset, size_t count, const void* from);
  // Whether the file contains everything that was written, and there was memory to open it.
  bool is_whole() const { return whole_; }
  void note_lack_of_memory() { whole_ = false; }
  uint64_t size() const { return end_; }
  void resize(uint64_t end) { end_ = end; }

  // Makes files that are opened or created with `access`, a file access property list, use this
  // object, which has to outlive them.
  void use_in(hid_t access);

 private:
  static constexpr size_t kPageBytes = 4096;
  using Page = std::array<std::byte, kPageBytes>;

  FileImage image_;
  std::unordered_map<uint64_t, Page> pages_;
  uint64_t end_ = 0;
  bool whole_ = true;
};

}  // namespace tenon
