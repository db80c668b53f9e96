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

// Returns what is wrong with an open file, or an empty text if it is a regular file.
std::string problem_with(int file, uint64_t& size) {
  struct stat status {};
  if (fstat(file, &status) != 0) return "cannot look at it: " + reason(errno);
  if (S_ISDIR(status.st_mode)) return "it is a folder";
  if (!S_ISREG(status.st_mode)) return "it is not a regular file";
  size = static_cast<uint64_t>(status.st_size);
  return "";
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path, const char* purpose, Throw raise)
    : path_(path), purpose_(purpose), raise_(raise) {
  do file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  while (file_ < 0 && errno == EINTR);
  if (file_ < 0 && path.empty()) fail("the path is empty");
  if (file_ < 0)
    fail(errno == ENXIO ? "it is not a regular file"
                        : reason(errno));  // ENXIO: a socket, or a device that is not there
  try {
    if (const std::string fault = problem_with(file_, size_); !fault.empty()) fail(fault);
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
    if (n < 0) fail("reading failed: " + reason(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void InputFile::fail(const std::string& why) const {
  raise_(fmt::format("{} '{}': {}", purpose_, printable(path_.native()), why));
  std::abort();  // raise_ throws
}

}  // namespace tenon
