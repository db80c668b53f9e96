#include <tenon/serialization/atomic_file.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <tenon/core/error.h>
#include <tenon/serialization/header.h>

namespace tenon {
namespace {

constexpr size_t chunk_bytes = size_t{1} << 18;  // stays in the second-level cache while it is written and read back
constexpr uint64_t send_bytes = uint64_t{16} << 20;

std::string reason(int error) { return std::system_category().message(error); }

// Where a chain of symbolic links ends, whether or not there is a file.
std::filesystem::path follow_links(std::filesystem::path path) {
  std::error_code error;
  for (int hops = 0; hops < 40 && std::filesystem::is_symlink(path, error); ++hops) {
    std::filesystem::path next = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
}

std::string temporary_prefix(const std::filesystem::path& target) {
  return std::string(".").append(target.filename().string()).append(".tmp.");
}

// True where the file was the writer's own leftover and is gone: the lock of a living writer cannot be had.
void remove_if_unowned(const std::filesystem::path& path) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  if (flock(file, LOCK_EX | LOCK_NB) == 0) unlink(path.c_str());
  close(file);
}

}  // namespace

FileSizeSignalBlocked::FileSizeSignalBlocked() {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}
FileSizeSignalBlocked::~FileSizeSignalBlocked() {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGXFSZ);
  // One that was raised meanwhile is pending for this thread; it has been answered by an error.
  timespec at_once{};
  if (!sigismember(&before_, SIGXFSZ)) sigtimedwait(&blocked, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path), target_(follow_links(path)) {
  folder_ = target_.has_parent_path() ? target_.parent_path() : std::filesystem::path(".");
  struct stat status {};
  if (target_.filename().empty()) fail("it names a folder, not a file", 0);
  if (stat(target_.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail("it is a folder", 0);
    if (!S_ISREG(status.st_mode)) fail("it is not a regular file", 0);
    old_mode_ = status.st_mode & 0777;
  } else if (errno != ENOENT) {
    fail("cannot look at it", errno);
  }
  pending_.reserve(chunk_bytes);
  read_back_.resize(chunk_bytes);
  pending_.resize(checkpoint_header_bytes);  // its place; keeps later chunks on page boundaries
  size_ = checkpoint_header_bytes;
  remove_stale();
  create();
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) {
    unlink(temporary_.c_str());
    close(file_);
  }
}

void AtomicFile::fail(const std::string& what, int error) const {
  throw CheckpointError("cannot save checkpoint '" + path_.string() + "': " + what + (error ? ": " + reason(error) : "") +
                        (file_ >= 0 ? ". What was there before is unchanged" : ""));
}

void AtomicFile::create() {
  static std::atomic<uint64_t> counter{0};
  for (;;) {
    temporary_ = folder_ / (temporary_prefix(target_) + std::to_string(getpid()) + "." + std::to_string(counter++));
    int file = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, old_mode_ ? 0600 : 0666);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0 && errno == ENOENT) fail("there is no folder '" + folder_.string() + "'; make it first", 0);
    if (file < 0) fail("cannot write in folder '" + folder_.string() + "'", errno);
    // Another writer may take it for a leftover before it is locked, and hold the lock or have removed it already. A file system
    // without locks is no obstacle: leftovers stay there, as nobody gets the lock that removing them takes.
    const bool contested = flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status {};
    if (!contested && fstat(file, &status) == 0 && status.st_nlink > 0) {
      file_ = file;
      break;
    }
    close(file);
  }
  if (old_mode_) fchmod(file_, *old_mode_);  // as far as the file system knows permissions
}

void AtomicFile::remove_stale() const {
  const std::string prefix = temporary_prefix(target_);
  DIR* folder = opendir(folder_.c_str());
  if (!folder) return;
  while (const dirent* entry = readdir(folder))
    if (std::strncmp(entry->d_name, prefix.c_str(), prefix.size()) == 0) remove_if_unowned(folder_ / entry->d_name);
  closedir(folder);
}

void AtomicFile::write_chunk(const std::byte* bytes, size_t count, uint64_t offset) {
  for (size_t done = 0; done < count;) {
    ssize_t n = pwrite(file_, bytes + done, count - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("writing failed after " + std::to_string(offset + done) + " bytes", errno);
    done += static_cast<size_t>(n);
  }
  for (size_t done = 0; done < count;) {
    ssize_t n = pread(file_, read_back_.data() + done, count - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("reading it back failed", n < 0 ? errno : 0);
    done += static_cast<size_t>(n);
  }
  if (std::memcmp(read_back_.data(), bytes, count) != 0)
    fail("what was read back differs from what was written: a faulty disk, or the tensors were changed while they were saved", 0);
}

void AtomicFile::flush() {
  if (pending_.empty()) return;
  write_chunk(pending_.data(), pending_.size(), written_);
  const size_t skip = written_ == 0 ? checkpoint_header_bytes : 0;
  body_.add(read_back_.data() + skip, pending_.size() - skip);
  written_ += pending_.size();
  pending_.clear();
}

void AtomicFile::append(const void* bytes, size_t count) {
  auto* from = static_cast<const std::byte*>(bytes);
  size_ += count;
  while (count > 0) {
    const size_t n = std::min(count, chunk_bytes - pending_.size());
    if (n == chunk_bytes) {
      write_chunk(from, n, written_);
      body_.add(read_back_.data(), n);
      written_ += n;
    } else {
      pending_.insert(pending_.end(), from, from + n);
      if (pending_.size() == chunk_bytes) flush();
    }
    // The disk works while the rest is written.
    if (written_ - sent_ >= send_bytes) {
      sync_file_range(file_, static_cast<off_t>(sent_), static_cast<off_t>(written_ - sent_), SYNC_FILE_RANGE_WRITE);
      sent_ = written_;
    }
    from += n, count -= n;
  }
}

Checksum AtomicFile::body_checksum() {
  flush();
  return body_.result();
}

void AtomicFile::commit(std::span<const std::byte> header) {
  flush();
  write_chunk(header.data(), header.size(), 0);
  struct stat status {};
  if (fstat(file_, &status) != 0 || static_cast<uint64_t>(status.st_size) != size_)
    fail("the file does not have the length that was written", 0);
  if (fsync(file_) != 0) fail("syncing it to disk failed", errno);
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("renaming '" + temporary_.string() + "' failed", errno);
  close(std::exchange(file_, -1));
  sync_folder();
}

void AtomicFile::sync_folder() const {
  int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int error = folder < 0 ? errno : fsync(folder) != 0 ? errno : 0;
  if (folder >= 0) close(folder);
  // Some file systems cannot sync a folder, and some folders may be written but not read.
  if (error && error != EINVAL && error != EACCES && error != ENOTSUP)
    throw CheckpointError("checkpoint '" + path_.string() +
                          "' is written, but its folder could not be synced to disk: " + reason(error));
}

}  // namespace tenon
