#include "confined_command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/base/uninterrupted.h>
#include <tenon/core/error.h>

#include "confined.h"
#include "errors.h"

namespace tenon::tools {
namespace {

using Time = std::chrono::steady_clock::time_point;

uint64_t bytes_of(const std::filesystem::path& file) {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(file, error);
  return error ? 0 : bytes;
}

// TENON_HDF5_TIMEOUT; what makes no sense the library refuses where it needs it.
uint64_t seconds_of_a_small_file() {
  const char* variable = std::getenv("TENON_HDF5_TIMEOUT");
  const std::string_view text = variable ? variable : "";
  uint32_t seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool right = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return right && seconds >= 1 && seconds <= 1024 ? seconds : 60;
}

Confinement confinement_of(const std::filesystem::path& file) {
  Confinement confinement{file, bytes_of(file), 0};
  for (const auto& shard : shards_beside(file))
    if (__builtin_add_overflow(confinement.bytes, bytes_of(shard), &confinement.bytes))
      confinement.bytes = UINT64_MAX;
  confinement.seconds = seconds_of_a_small_file() + (confinement.bytes >> 20);
  return confinement;
}

// Leaves this process nothing of what is open but its output. A file that is named by its number
// has to stay.
void keep_output_alone(const std::filesystem::path& file, int out, int err) {
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  const std::string& path = file.native();
  if (path.starts_with("/dev/") || path.starts_with("/proc/")) return;
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
#ifdef SYS_close_range
  if (syscall(SYS_close_range, STDERR_FILENO + 1u, ~0u, 0u) == 0) return;
#endif
  const long end = std::min(sysconf(_SC_OPEN_MAX), 1L << 16);
  for (int number = STDERR_FILENO + 1; number < end; ++number) close(number);
}

[[noreturn]] void be_the_confined(const Confinement& confinement,
                                  const std::function<void()>& command) {
  int status = 0;
  try {
    confine(confinement);
    command();
  } catch (const std::bad_alloc& error) {
    print_error(CheckpointError(
        fmt::format("cannot read '{}': {}", printable(confinement.file.native()), text_of(error))));
    status = 1;
  } catch (const std::exception& error) {
    print_error(error);
    status = 1;
  }
  std::cout.flush();
  std::exit(status);
}

// What the process prints, until it has closed both ends.
class Output {
 public:
  Output(int out, int err, uint64_t most) : from_{out, err}, most_(most) {}
  ~Output() {
    for (const int from : from_) close(from);
  }
  Output(const Output&) = delete;

  enum class End { all, late, too_much };
  // A process that it has started may hold the ends open: `has_ended` tells that nothing comes any
  // more.
  template <class F>
  End read_all(Time end, F&& has_ended) {
    for (bool ended = false;;) {
      pollfd ready[2];
      for (size_t i = 0; i < 2; ++i) ready[i] = {open_[i] ? from_[i] : -1, POLLIN, 0};
      if (!open_[0] && !open_[1]) return End::all;
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now())
              .count();
      const int n = poll(ready, 2, ended ? 0 : static_cast<int>(std::clamp<int64_t>(left, 0, 100)));
      if (n == 0 && ended) return End::all;
      if (n == 0 && left <= 0) return End::late;
      if (n <= 0) {
        ended = has_ended();
        continue;
      }
      for (size_t i = 0; i < 2; ++i)
        if (ready[i].revents) read_some(i);
      if (text[0].size() + text[1].size() > most_) return End::too_much;
    }
  }

  std::array<std::string, 2> text;  // of the standard output, and of errors

 private:
  void read_some(size_t i) {
    char buffer[1 << 16];
    const ssize_t got = read(from_[i], buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) return;
    if (got <= 0)
      open_[i] = false;
    else
      text[i].append(buffer, static_cast<size_t>(got));
  }

  const std::array<int, 2> from_;
  std::array<bool, 2> open_ = {true, true};
  const uint64_t most_;
};

// Ends what the process has left behind, which is a child of this one by now: the one that reads
// HDF5 data ends by itself only if that data lets it.
void end_what_is_left() {
  std::ifstream children(fmt::format("/proc/self/task/{}/children", getpid()));
  for (pid_t child = 0; children >> child;) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& how) {
  throw CheckpointError(
      fmt::format("cannot read '{}': the process that reads it {}", printable(file.native()), how));
}

int pass_on(const Confinement& confinement, pid_t child, int out, int err) {
  int status = 0;
  bool ended = false;
  const auto has_ended = [&] { return ended = ended || waitpid(child, &status, WNOHANG) == child; };
  constexpr uint64_t kOutput = uint64_t{64} << 20, kOutputPerByte = 32;
  uint64_t most = 0;
  if (__builtin_mul_overflow(confinement.bytes, kOutputPerByte, &most) ||
      __builtin_add_overflow(most, kOutput, &most))
    most = UINT64_MAX;
  Output output(out, err, most);
  const Time end = std::chrono::steady_clock::now() + std::chrono::seconds(confinement.seconds);
  auto read = output.read_all(end, has_ended);
  while (read == Output::End::all && !has_ended()) {
    if (std::chrono::steady_clock::now() >= end) read = Output::End::late;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!ended) {
    kill(child, SIGKILL);
    uninterrupted([&] { return waitpid(child, &status, 0); });
  }
  end_what_is_left();
  if (WIFEXITED(status)) std::cout << printable_lines(output.text[0]) << std::flush;
  std::cerr << printable_lines(output.text[1]) << std::flush;
  if (read == Output::End::too_much) fail(confinement.file, "printed more than such a file has");
  if (read == Output::End::late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
    fail(confinement.file,
         fmt::format("did not end within {} s. If the file is large and its disk slow, set "
                     "TENON_HDF5_TIMEOUT to more seconds",
                     confinement.seconds));
  if (WIFSIGNALED(status))
    fail(confinement.file,
         fmt::format("was ended by a signal: {}. The file is damaged, or made to do this",
                     strsignal(WTERMSIG(status))));
  return WEXITSTATUS(status);
}

}  // namespace

int run_confined(const std::filesystem::path& file, const std::function<void()>& command) {
  const Confinement confinement = confinement_of(file);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("there is no pipe: {}", std::strerror(errno)));
  std::cout.flush();
  std::fflush(nullptr);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t parent = getpid(), child = fork();
  if (child < 0)
    throw std::runtime_error(fmt::format("there is no process: {}", std::strerror(errno)));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    keep_output_alone(file, out[1], err[1]);
    be_the_confined(confinement, command);
  }
  close(out[1]), close(err[1]);
  return pass_on(confinement, child, out[0], err[0]);
}

}  // namespace tenon::tools
