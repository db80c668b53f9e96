// A file that appears under its name whole, or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/types.h>

#include <tenon/serialization/checksum.h>

namespace tenon {

// Keeps SIGXFSZ, which a write past the file size limit raises, from ending the process: the write
// fails with EFBIG instead.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked();
  ~FileSizeSignalBlocked();
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t before_;
};

// Written beside `path` as ".<name>.tmp.<pid>.<n>", locked while it is; commit() syncs and renames
// it over `path`. Until then the old file stands, and a destructor without commit() leaves nothing
// behind. Every piece is read back as soon as it is written. What killed processes left is removed
// by the next one that writes the same path: files of that pattern whose process is gone, or had
// this one's number, which are this user's, begin as Tenon's do and are locked by nobody. A
// symbolic link is followed. Throws CheckpointError with the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;

  // Adds bytes at the end. Large pieces are not copied.
  void append(const void* bytes, size_t count);
  uint64_t size() const { return size_; }
  // Of all that was appended, as it was read back. The header in front of it is written last.
  Checksum body_checksum();
  // Puts the header in place, syncs and renames.
  void commit(std::span<const std::byte> header);

 private:
  void create();
  void remove_stale() const;
  void write_chunk(const std::byte* bytes, size_t count, uint64_t offset);
  void flush();
  void sync_folder() const;
  [[noreturn]] void fail(const std::string& what, int error) const;

  FileSizeSignalBlocked signal_blocked_;
  std::filesystem::path path_, target_, folder_, temporary_;
  int file_ = -1;
  std::optional<mode_t> old_mode_;  // of the file that is replaced
  uint64_t size_ = 0, written_ = 0,
           sent_ = 0;  // bytes appended, written, and on their way to the disk
  std::vector<std::byte> pending_, read_back_;
  Checksummer body_;
};

}  // namespace tenon
