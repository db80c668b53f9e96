// A file that appears under its name complete or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <signal.h>
#include <sys/types.h>

#include <tenon/serialization/checked_writer.h>
#include <tenon/serialization/checksum.h>

namespace tenon {

// Blocks SIGXFSZ, which a write past the file size limit raises, so that it does not end the
// process: the write fails with EFBIG instead.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked();
  ~FileSizeSignalBlocked();
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t before_;
};

// The file is written next to `path` as ".<name>.tmp.<pid>.<n>" and locked meanwhile; commit()
// syncs it and renames it to `path`. Until then the old file stays, and a destructor without
// commit() removes the new one. Every piece is read back as soon as it is written. The next process
// that writes the same path removes the files that killed processes left: files with such a name
// whose process has ended, or had the number of this one, that belong to this user, begin like a
// checkpoint and are not locked. Symbolic links are followed. Errors are CheckpointErrors with the
// system's reason.
class AtomicFile {
 public:
  // `like`: a file that is being replaced, whose permissions this one gets if it is new.
  explicit AtomicFile(const std::filesystem::path& path, const AtomicFile* like = nullptr);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;

  // Appends bytes. Large pieces are not copied.
  void append(const void* bytes, size_t count) { writer_.append(bytes, count); }
  uint64_t size() const { return writer_.size(); }
  // The file that is written, behind all symbolic links.
  const std::filesystem::path& target() const { return target_; }
  // Whether commit() has put the file in its place, even if it has thrown since then.
  bool committed() const { return file_ < 0; }
  // Returns the checksums of all pieces (header.h) so far, as they were read back. What is appended
  // later belongs to none.
  std::vector<Checksum> end_pieces() { return writer_.end_pieces(); }
  // Returns the checksum of everything that was appended, as it was read back. The header in front
  // of it is written last.
  Checksum body_checksum() { return writer_.body_checksum(); }
  // Writes the header, syncs the file and renames it.
  void commit(std::span<const std::byte> header);

 private:
  void create();
  void remove_stale() const;
  void sync_folder() const;
  [[noreturn]] void fail(const std::string& what, int error) const;

  FileSizeSignalBlocked signal_blocked_;
  std::filesystem::path path_, target_, folder_, temporary_;
  int file_ = -1;
  std::optional<mode_t> old_mode_;  // of the file that is replaced
  CheckedWriter writer_;
};

// Where a path leads now, whatever the current folder will be; the path itself if there is none.
std::filesystem::path absolute_path(const std::filesystem::path& path);
// Returns the path at the end of a chain of symbolic links, whether or not there is a file.
std::filesystem::path follow_links(std::filesystem::path path);

// Removes the files that killed processes left when they wrote files of a folder for which
// `was_to_be(name)` is true. An AtomicFile does this for its own path alone.
void remove_left_overs(const std::filesystem::path& folder,
                       const std::function<bool(const std::string& name)>& was_to_be);

// Returns "model.h5" for ".model.h5.tmp.<pid>.<n>", and nullopt for other names.
std::optional<std::string> name_of_unfinished(std::string_view name);
// Removes a file that nobody needs, if it belongs to this user, begins like a checkpoint, has no
// other name and is not locked.
void remove_left_over(const std::filesystem::path& path);

}  // namespace tenon
