#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/core/base/log.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/base/standard_streams.h>
#include <tenon/core/error.h>
#include <tenon/core/runtime/trace_file.h>

namespace tenon::tracing {

namespace {
constexpr std::string_view kBegin = "[", kEnd = "\n]\n";

std::string reason_of(int error) { return std::generic_category().message(error); }

// A pipe would make the process wait for its reader, and has no place to write the end again.
bool is_regular_or_absent(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) != 0 || S_ISREG(s.st_mode);
}

// As long as it lives, a write beyond the limit of a file's size (ulimit -f) is an error for this
// thread, and its signal does not end the process. What others do about the signal stays as it is.
class NoSignalForSize {
 public:
  NoSignalForSize() {
    sigemptyset(&signal_), sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoSignalForSize() {
    const timespec at_once{};
    while (exceeded && !was_pending_ && sigtimedwait(&signal_, nullptr, &at_once) < 0 &&
           errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSignalForSize(const NoSignalForSize&) = delete;
  bool exceeded = false;

 private:
  sigset_t signal_, before_;
  bool was_pending_;
};
}  // namespace

TraceFile::~TraceFile() { close(); }

bool TraceFile::open(const std::string& path) {
  path_ = path;
  if (!is_regular_or_absent(path))
    throw Error(
        fmt::format("TENON_TRACE: {} is not a regular file; name one, or one that there is "
                    "not yet",
                    printable(path)));
  // A pipe that has come to be there meanwhile does not block.
  file_ = beyond_standard_streams(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
  // The lock ends with the last process that has this file open. Where files cannot be locked, that
  // of another process is not protected.
  if (file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return close(), false;
  try {
    if (file_ < 0 || ::ftruncate(file_, 0) != 0)
      throw std::system_error(errno, std::generic_category());
    write_at(std::string(kBegin) + std::string(kEnd), 0);
  } catch (const std::system_error& e) {
    close();
    throw Error(fmt::format("TENON_TRACE: the file {} cannot be written: {}", printable(path),
                            reason_of(e.code().value())));
  }
  end_ = kBegin.size();
  return true;
}

void TraceFile::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

// Throws a std::system_error.
void TraceFile::write_at(std::string_view text, int64_t at) const {
  NoSignalForSize no_signal;
  while (!text.empty()) {
    const ssize_t written = ::pwrite(file_, text.data(), text.size(), at);
    no_signal.exceeded = written < 0 && errno == EFBIG;
    if (written < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category());
    if (written <= 0) continue;
    text.remove_prefix(static_cast<size_t>(written));
    at += written;
  }
}

void TraceFile::add(std::string_view object) {
  const bool first = end_ == static_cast<int64_t>(kBegin.size());
  buffer_.assign(first ? "\n" : ",\n").append(object);
  const auto bytes = static_cast<int64_t>(buffer_.size());
  buffer_ += kEnd;
  try {
    write_at(buffer_, end_);
    end_ += bytes;
  } catch (const std::system_error& e) {
    try {
      if (::ftruncate(file_, end_) == 0) write_at(kEnd, end_);
    } catch (const std::system_error&) {  // it ends without the bracket, which readers allow
    }
    close();
    log_message(TN_LOG_WARNING, "tenon",
                fmt::format("the trace {} ends here, because it cannot be written: {}", path_,
                            reason_of(e.code().value())));
  }
}

std::string json_text(std::string_view text) {
  const auto plain = [](char ch) { return ch >= ' ' && ch <= '~' && ch != '"' && ch != '\\'; };
  if (std::all_of(text.begin(), text.end(), plain)) return fmt::format("\"{}\"", text);
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tenon::tracing
