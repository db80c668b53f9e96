#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/core/base/input_file.h>
#include <tenon/core/base/printable.h>

namespace tenon {
namespace {

std::string reason(int error) {
  return error == ENOENT ? "there is no such file" : std::system_category().message(error);
}

// Whether open() has failed because of what the path leads to.
bool is_no_file(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG ||
         error == ENXIO;  // a socket, or a device that is not there
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path, const char* purpose, Throw raise,
                     Throw refused)
    : path_(path), purpose_(purpose), raise_(raise), refused_(refused ? refused : raise) {
  identity_ = open_it();
  size_ = identity_.size;
}

InputFile::Identity InputFile::open_it() const {
  do file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  while (file_ < 0 && errno == EINTR);
  if (file_ < 0 && path_.empty()) fail("the path is empty");
  if (file_ < 0 && !is_no_file(errno)) refuse(reason(errno));
  if (file_ < 0) fail(errno == ENXIO ? "it is not a regular file" : reason(errno));
  try {
    struct stat status {};
    if (fstat(file_, &status) != 0) refuse("cannot look at it: " + reason(errno));
    if (S_ISDIR(status.st_mode)) fail("it is a folder");
    if (!S_ISREG(status.st_mode)) fail("it is not a regular file");
    return {status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size),
            status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  } catch (...) {
    close(std::exchange(file_, -1));
    throw;
  }
}

// As long as one lives, the file is open.
class InputFile::Reading {
 public:
  explicit Reading(const InputFile& file) : file_(file) {
    if (!file_.closes_) return;
    std::lock_guard lock(file_.mutex_);
    if (file_.readers_ == 0 && file_.open_it() != file_.identity_) {
      close(std::exchange(file_.file_, -1));
      file_.fail("it was replaced or changed while it was read");
    }
    ++file_.readers_;
  }
  ~Reading() {
    if (!file_.closes_) return;
    std::lock_guard lock(file_.mutex_);
    if (--file_.readers_ == 0) close(std::exchange(file_.file_, -1));
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  const InputFile& file_;
};

void InputFile::close_between_reads() {
  if (!std::exchange(closes_, true)) close(std::exchange(file_, -1));
}

InputFile::~InputFile() {
  if (file_ >= 0) close(file_);
}

size_t InputFile::read(void* to, size_t count, uint64_t offset) const {
  const Reading opened(*this);
  size_t done = 0;
  while (done < count) {
    const ssize_t n = pread(file_, static_cast<char*>(to) + done, count - done,
                            static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse("reading failed: " + reason(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void InputFile::fail(const std::string& why) const {
  raise_(fmt::format("{} '{}': {}", purpose_, printable(path_.native()), why));
  std::abort();  // raise_ throws
}
void InputFile::refuse(const std::string& why) const {
  refused_(fmt::format("{} '{}': {}", purpose_, printable(path_.native()), why));
  std::abort();
}

}  // namespace tenon
