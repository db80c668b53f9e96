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
  do file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  while (file_ < 0 && errno == EINTR);
  if (file_ < 0 && path.empty()) fail("the path is empty");
  if (file_ < 0 && !is_no_file(errno)) refuse(reason(errno));
  if (file_ < 0) fail(errno == ENXIO ? "it is not a regular file" : reason(errno));
  try {
    struct stat status {};
    if (fstat(file_, &status) != 0) refuse("cannot look at it: " + reason(errno));
    if (S_ISDIR(status.st_mode)) fail("it is a folder");
    if (!S_ISREG(status.st_mode)) fail("it is not a regular file");
    size_ = static_cast<uint64_t>(status.st_size);
  } catch (...) {
    close(file_);
    throw;
  }
}

InputFile::~InputFile() {
  if (file_ >= 0) close(file_);
}

size_t InputFile::read(void* to, size_t count, uint64_t offset) const {
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
