#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/base/standard_streams.h>
#include <tenon/core/base/uninterrupted.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/header.h>

namespace tenon {
namespace {

constexpr int kMaxAttempts = 1000;  // to find a name for the new file

std::string reason(int error) { return std::system_category().message(error); }

}  // namespace

std::filesystem::path absolute_path(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute;
}

std::filesystem::path follow_links(std::filesystem::path path) {
  std::error_code error;
  for (int hops = 0; hops < 40 && std::filesystem::is_symlink(path, error); ++hops) {
    std::filesystem::path next = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
}

namespace {

constexpr std::string_view kTemporary = ".tmp.";

std::string temporary_prefix(const std::filesystem::path& target) {
  return fmt::format(".{}{}", target.filename().string(), kTemporary);
}

// Returns the process in the name of a temporary file, or 0 if the name does not end in
// "<pid>.<n>".
pid_t writer_of(std::string_view ending) {
  pid_t pid = 0;
  uint64_t number = 0;
  const char* end = ending.data() + ending.size();
  const auto [dot, bad_pid] = std::from_chars(ending.data(), end, pid);
  if (bad_pid != std::errc() || dot == end || *dot != '.') return 0;
  const auto [rest, bad_number] = std::from_chars(dot + 1, end, number);
  return bad_number == std::errc() && rest == end && pid > 0 ? pid : 0;
}

// Whether an open file may have been left by a killed writer: a regular file with one name that
// belongs to this user and is empty or has a header that is complete or still all zeros.
bool looks_left_over(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
      status.st_nlink != 1)
    return false;
  std::byte first[kCheckpointHeaderBytes];
  const ssize_t count = uninterrupted([&] { return pread(file, first, sizeof first, 0); });
  if (count < 0) return false;
  const std::span<const std::byte> found(first, static_cast<size_t>(count));
  return begins_as_checkpoint(found) ||
         std::all_of(found.begin(), found.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

// If the file can be locked, its writer has ended, on whatever machine it ran.
void remove_left_over(const std::filesystem::path& path) {
  const int file = uninterrupted([&] {
    return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  });
  if (file < 0) return;
  if (looks_left_over(file) && flock(file, LOCK_EX | LOCK_NB) == 0) unlink(path.c_str());
  close(file);
}

std::optional<std::string> name_of_unfinished(std::string_view name) {
  const size_t end = name.rfind(kTemporary);
  if (end == name.npos || end == 0 || name[0] != '.' ||
      writer_of(name.substr(end + kTemporary.size())) == 0)
    return std::nullopt;
  return std::string(name.substr(1, end - 1));
}

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
  // A signal that was raised meanwhile is pending for this thread. The error of the write has
  // already reported it.
  timespec at_once{};
  if (!sigismember(&before_, SIGXFSZ)) sigtimedwait(&blocked, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

AtomicFile::AtomicFile(const std::filesystem::path& path, const AtomicFile* like)
    : path_(path),
      target_(follow_links(path)),
      writer_([this](const std::string& what, int error) { fail(what, error); }) {
  folder_ = target_.has_parent_path() ? target_.parent_path() : std::filesystem::path(".");
  struct stat status {};
  if (path_.empty()) fail("the path is empty", 0);
  if (target_.filename().empty()) fail("it names a folder, not a file", 0);
  if (stat(target_.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail("it is a folder", 0);
    if (!S_ISREG(status.st_mode)) fail("it is not a regular file", 0);
    old_mode_ = status.st_mode & 0777;
  } else if (errno != ENOENT) {
    fail("cannot look at it", errno);
  } else if (like) {
    old_mode_ = like->old_mode_;
  }
  remove_stale();
  create();
  writer_.open(file_);
}

AtomicFile::~AtomicFile() {
  writer_.stop();
  if (file_ >= 0) {
    unlink(temporary_.c_str());
    close(file_);
  }
}

void AtomicFile::fail(const std::string& what, int error) const {
  throw CheckpointError(fmt::format(
      "cannot save checkpoint '{}': {}{}{}", printable(path_.native()), what,
      error ? ": " + reason(error) : "", file_ >= 0 ? ". What was there before is unchanged" : ""));
}

void AtomicFile::create() {
  static std::atomic<uint64_t> counter{0};
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    temporary_ = folder_ / fmt::format("{}{}.{}", temporary_prefix(target_), getpid(), counter++);
    const int opened = uninterrupted([&] {
      return open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                  old_mode_ ? 0600 : 0666);
    });
    const int file = beyond_standard_streams(opened);
    if (opened >= 0 && file < 0) {
      const int error = errno;
      unlink(temporary_.c_str());
      fail("its new file gets no number beyond those of the standard streams", error);
    }
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0 && errno == ENOENT) {
      const bool exists = access(folder_.c_str(), F_OK) == 0;  // such as /proc
      const std::string folder = printable(folder_.native());
      fail(exists ? fmt::format("folder '{}' takes no new files", folder)
                  : fmt::format("there is no folder '{}'; make it first", folder),
           0);
    }
    if (file < 0)
      fail(fmt::format("cannot write in folder '{}'", printable(folder_.native())), errno);
    // Before the file is locked, another writer may take it for a leftover and lock or even remove
    // it: then the next attempt makes another file. On a file system without locks leftovers stay,
    // because nobody gets the lock that is needed to remove them.
    const bool contested = flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status {};
    const int error = fstat(file, &status) != 0 ? errno : 0;
    if (!error && !contested && status.st_nlink > 0) {
      file_ = file;
      break;
    }
    if (error || status.st_nlink > 0) unlink(temporary_.c_str());
    close(file);
    if (error)
      fail(fmt::format("cannot look at its new file '{}'", printable(temporary_.native())), error);
  }
  if (file_ < 0)
    fail(fmt::format("no name for a new file in folder '{}' is free", printable(folder_.native())),
         0);
  if (old_mode_) fchmod(file_, *old_mode_);  // fails on file systems without permissions
}

void remove_left_overs(const std::filesystem::path& folder,
                       const std::function<bool(const std::string& name)>& was_to_be) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(folder.c_str()), closedir);
  if (!opened) return;
  while (const dirent* entry = readdir(opened.get())) {
    const std::string_view name = entry->d_name;
    const size_t end = name.rfind(kTemporary);
    if (end == name.npos || end == 0 || name[0] != '.' ||
        !was_to_be(std::string(name.substr(1, end - 1))))
      continue;
    const pid_t writer = writer_of(name.substr(end + kTemporary.size()));
    // An earlier process with the number of this one has ended too: in a container each run may get
    // the same number. The files that this process writes at the moment are locked.
    if (writer == getpid() || (writer > 0 && kill(writer, 0) != 0 && errno == ESRCH))
      remove_left_over(folder / name);
  }
}

void AtomicFile::remove_stale() const {
  const std::string own = target_.filename();
  remove_left_overs(folder_, [&](const std::string& name) { return name == own; });
}

void AtomicFile::commit(std::span<const std::byte> header) {
  writer_.finish(header);
  struct stat status {};
  if (fstat(file_, &status) != 0)
    fail(fmt::format("cannot look at its new file '{}'", printable(temporary_.native())), errno);
  if (static_cast<uint64_t>(status.st_size) != size())
    fail("the file does not have the length that was written", 0);
  if (uninterrupted([&] { return fsync(file_); }) != 0) fail("syncing it to disk failed", errno);
  if (uninterrupted([&] { return rename(temporary_.c_str(), target_.c_str()); }) != 0)
    fail(fmt::format("renaming '{}' failed", printable(temporary_.native())), errno);
  close(std::exchange(file_, -1));
  sync_folder();
}

void AtomicFile::sync_folder() const {
  const int folder =
      uninterrupted([&] { return open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  const int error = folder < 0 || uninterrupted([&] { return fsync(folder); }) != 0 ? errno : 0;
  if (folder >= 0) close(folder);
  // Some file systems cannot sync a folder, and some folders may be written but not read.
  if (error && error != EINVAL && error != EACCES && error != ENOTSUP)
    throw CheckpointError(
        fmt::format("checkpoint '{}' is written, but its folder could not be synced to disk: {}",
                    printable(path_.native()), reason(error)));
}

}  // namespace tenon
