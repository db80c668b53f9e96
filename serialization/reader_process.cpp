#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/base/standard_streams.h>
#include <tenon/core/base/uninterrupted.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/reader_process.h>
#include <tenon/serialization/tensor_file.h>

extern char** environ;

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kVariable = "TENON_HDF5_READER";
constexpr int kSocketInReader = 0, kFileInReader = 3;
constexpr auto kTimeToEnd = std::chrono::seconds(10);

std::string why_of(int error) { return std::system_category().message(error); }

std::string find_installed_reader() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&reader_seconds), &info) == 0 || !info.dli_fname)
    return {};
  std::error_code error;
  const auto library = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string() : (library.parent_path() / "tenon" / "tenon-hdf5-reader").string();
}
// Determined when libtenon is loaded, and never freed, as the folder of plugins
// (plugins/host/discovery.cpp).
const std::string& installed_reader = *new std::string(find_installed_reader());

std::string reader_program() {
  const char* named = secure_getenv(kVariable);
  if (!named || !*named) return installed_reader;
  if (named[0] != '/')
    throw UnreadError(
        fmt::format("{} is \"{}\", which is not an absolute path", kVariable, excerpt(named)));
  return named;
}

// A file that is closed at the end of a scope, with a number that no file of the new process gets.
class HighFile {
 public:
  explicit HighFile(int file) : file_(fcntl(file, F_DUPFD_CLOEXEC, kFileInReader + 1)) {
    if (file_ < 0) throw UnreadError("there is no number left for an open file: " + why_of(errno));
  }
  ~HighFile() { close(file_); }
  HighFile(const HighFile&) = delete;
  operator int() const { return file_; }

 private:
  int file_;
};

struct SpawnSettings {
  SpawnSettings() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

// The environment of the process: where its libraries are, and nothing else.
std::vector<char*> reader_environment() {
  std::vector<char*> kept;
  for (char** variable = environ; variable && *variable; ++variable)
    if (std::string_view(*variable).starts_with("LD_LIBRARY_PATH=")) kept.push_back(*variable);
  kept.push_back(nullptr);
  return kept;
}

// Others are sent to a process whatever it does.
bool is_of_a_crash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
         signal == SIGABRT || signal == SIGSYS || signal == SIGTRAP;
}

// Whether a transfer has failed because the process at the other end has ended.
bool is_gone(int error) { return error == EPIPE || error == ECONNRESET; }

}  // namespace

uint64_t reader_seconds() { return count_from_environment("TENON_HDF5_TIMEOUT").value_or(60); }

ReaderProcess::ReaderProcess(const char* because, int file, uint64_t seconds) : because_(because) {
  connect(file, {std::to_string(seconds)});
}
ReaderProcess::ReaderProcess(const char* because, Image image, uint64_t seconds)
    : because_(because) {
  connect(-1, {std::to_string(seconds), std::to_string(image.bytes)});
}

void ReaderProcess::connect(int file, const std::vector<std::string>& arguments) {
  const std::string program = reader_program();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw UnreadError("there is no socket for the process that reads it: " + why_of(errno));
  // What other threads print must not reach the process, if there are no standard streams.
  socket_ = beyond_standard_streams(ends[0]);
  const int other = beyond_standard_streams(ends[1]);
  try {
    start(program, file, arguments, other);
  } catch (...) {
    close(other);
    close(socket_);
    throw;
  }
  close(other);
#ifdef SYS_pidfd_open
  handle_ = beyond_standard_streams(static_cast<int>(syscall(SYS_pidfd_open, process_, 0)));
#endif
}

void ReaderProcess::start(const std::string& program, int file,
                          const std::vector<std::string>& arguments, int socket) {
  std::optional<HighFile> high_file;
  if (file >= 0) high_file.emplace(file);
  const HighFile high_socket(socket);
  SpawnSettings settings;
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  int error = posix_spawn_file_actions_adddup2(&settings.files, high_socket, kSocketInReader);
  if (!error && high_file)
    error = posix_spawn_file_actions_adddup2(&settings.files, *high_file, kFileInReader);
  if (error) throw std::bad_alloc();
  posix_spawnattr_setsigdefault(&settings.attributes, &all);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setpgroup(&settings.attributes, 0);  // signals of a terminal are not for it
  posix_spawnattr_setflags(&settings.attributes,
                           POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), program);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  error = posix_spawn(&process_, program.c_str(), &settings.files, &settings.attributes,
                      pointers.data(), reader_environment().data());
  if (error)
    throw UnreadError(fmt::format(
        "another process has to read its HDF5 data, because {}, and the program for that cannot be "
        "started: '{}': {}. It is installed with Tenon, beside the library; {} may name it",
        because_, printable(program), why_of(error), kVariable));
}

ReaderProcess::~ReaderProcess() { stop(); }

void ReaderProcess::stop() {
  if (socket_ >= 0) close(std::exchange(socket_, -1));
  if (generation_ != fork_generation()) process_ = -1;
  if (process_ > 0) {
#ifdef SYS_pidfd_send_signal
    // Its number may belong to another process by now, if somebody else has waited for it.
    if (handle_ < 0 || syscall(SYS_pidfd_send_signal, handle_, SIGKILL, nullptr, 0) != 0)
#endif
      if (handle_ < 0) kill(process_, SIGKILL);
    uninterrupted([&] { return waitpid(process_, nullptr, 0); });
    process_ = -1;
  }
  if (handle_ >= 0) close(std::exchange(handle_, -1));
}

template <class E>
void ReaderProcess::end_with(const std::string& why) {
  stop();
  failure_ = std::make_exception_ptr(
      E(fmt::format("the process that reads it, because {}, {}", because_, why)));
  std::rethrow_exception(failure_);
}
void ReaderProcess::fail(const std::string& why) { end_with<UnreadError>(why); }
void ReaderProcess::fail_as_damaged(const std::string& why) { end_with<CheckpointError>(why); }

// Unused time of earlier requests counts. The process cannot do this for itself.
void ReaderProcess::extend(uint64_t seconds) {
  rlimit now{};
  if (process_ <= 0 || prlimit(process_, RLIMIT_CPU, nullptr, &now) != 0) return;
  if (now.rlim_cur == RLIM_INFINITY) return;
  now.rlim_cur = std::min<rlim_t>(now.rlim_cur + seconds, now.rlim_max);
  prlimit(process_, RLIMIT_CPU, &now, nullptr);
}

void ReaderProcess::fail_as_ended() {
  int status = 0;
  pid_t ended = 0;
  for (const Time end = Clock::now() + kTimeToEnd; Clock::now() < end;) {
    ended = waitpid(process_, &status, WNOHANG);
    if (ended == process_ || (ended < 0 && errno != EINTR)) break;
    poll(nullptr, 0, 1);
  }
  if (ended == process_) process_ = -1;
  if (ended == 0) fail("has stopped answering");
  if (ended < 0) fail("has ended, and how is not known, because the program ignores SIGCHLD");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
    fail(
        "has used up its time of a processor. If the file is large and packed, set "
        "TENON_HDF5_TIMEOUT to more seconds");
  if (WIFSIGNALED(status)) {
    const std::string signal =
        fmt::format("was ended by a signal: {}", strsignal(WTERMSIG(status)));
    if (is_of_a_crash(WTERMSIG(status)))
      fail_as_damaged(signal + ". The file is damaged, or made to do this");
    fail(signal + ". Another process did this, or the system, where memory is short");
  }
  fail(fmt::format("has ended with the status {}", WEXITSTATUS(status)));
}

void ReaderProcess::send(const void* bytes, size_t count) {
  if (failure_) std::rethrow_exception(failure_);
  for (auto* at = static_cast<const char*>(bytes); count > 0;) {
    const ssize_t n = ::send(socket_, at, count, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && !is_gone(errno)) fail("cannot be asked: " + why_of(errno));
    if (n <= 0) fail_as_ended();
    at += n, count -= static_cast<size_t>(n);
  }
}

void ReaderProcess::receive(void* bytes, size_t count, Time end) {
  if (failure_) std::rethrow_exception(failure_);
  for (auto* at = static_cast<char*>(bytes); count > 0;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd ready{socket_, POLLIN, 0};
    const int got = poll(&ready, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot be heard: " + why_of(errno));
    if (got == 0)
      fail(
          "did not answer in time. If the file is large and its disk slow, set "
          "TENON_HDF5_TIMEOUT to more seconds");
    const ssize_t n = recv(socket_, at, count, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && !is_gone(errno)) fail("cannot be heard: " + why_of(errno));
    if (n <= 0) fail_as_ended();
    at += n, count -= static_cast<size_t>(n);
  }
}

}  // namespace tenon
