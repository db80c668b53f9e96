#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/conformance/worker_process.h>
#include <tenon/core/base/uninterrupted.h>
#include <tenon/core/error.h>

namespace tenon::conformance {

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void refuse(const char* what) {
  throw Error(fmt::format("the process for the checks cannot be started: {}: {}", what,
                          std::strerror(errno)));
}

struct Pipe {
  int from = -1, to = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) refuse("pipe");
    from = ends[0], to = ends[1];
  }
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const Variables& changes) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    if (!changes.count(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (auto& [name, value] : changes)
    if (!value.empty()) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

int wait_for(pid_t process) {
  int status = 0;
  uninterrupted([&] { return waitpid(process, &status, 0); });
  return status;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    const char* name = sigabbrev_np(number);
    return fmt::format("crashed: {} ({})",
                       name ? fmt::format("SIG{}", name) : fmt::format("signal {}", number),
                       strsignal(number));
  }
  if (WEXITSTATUS(status) != 0)
    return fmt::format("ended the process with status {}", WEXITSTATUS(status));
  return "";
}

}  // namespace

Variables variables_of_checks(bool checked, unsigned limit) {
  // TENON_CPU_FALLBACK would compute on the cpu what the backend does not offer.
  Variables variables = {{"TENON_CPU_FALLBACK", ""}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!std::getenv(name)) variables[name] = value;
  };
  if (checked) add("TENON_CHECK", "1");
  // The error of work that is stuck names it, and has to come before the process is killed.
  add("TENON_CHECK_TIMEOUT", std::to_string(std::clamp(limit / 2, 1u, 1024u)));
  return variables;
}

WorkerProcess::WorkerProcess(Start start) : most_words_(start.most_words) {
  // A plugin may ignore SIGCHLD, as may whoever started this program. Nobody could be told how the
  // process ended then.
  std::signal(SIGCHLD, SIG_DFL);
  Pipe lines, prints;
  start.command.insert(start.command.end(), {"--pipe", std::to_string(lines.to)});
  auto environment = environment_with(start.variables);
  const auto arguments = pointers_to(start.command), variables = pointers_to(environment);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) refuse("fork");
  if (process_ == 0) {  // between fork and exec nothing may allocate
    setpgid(0, 0);      // with whatever it starts
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    fcntl(lines.to, F_SETFD, 0);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(prints.to, STDOUT_FILENO);
    dup2(prints.to, STDERR_FILENO);
    execve(start.program.c_str(), arguments.data(), variables.data());
    _exit(127);
  }
  setpgid(process_, process_);
  close(lines.to), close(prints.to);
  lines_ = lines.from, prints_ = prints.from;
  end_ = static_cast<int>(syscall(SYS_pidfd_open, process_, 0));  // -1 where the kernel is older
}

WorkerProcess::~WorkerProcess() {
  if (process_ > 0) {
    kill(-process_, SIGKILL);
    wait_for(process_);
  }
  close(lines_), close(prints_), close(end_);
}

bool WorkerProcess::take_line(std::string& line) {
  const size_t begin = std::min(buffer_.find_first_not_of('\n'), buffer_.size()),
               end = buffer_.find('\n', begin);
  if (end == buffer_.npos) return false;
  line = buffer_.substr(begin, end - begin);
  buffer_.erase(0, end + 1);
  return true;
}

void WorkerProcess::keep_words(const char* text, size_t size) {
  words_.append(text, size);
  if (words_.size() > most_words_) words_.erase(0, words_.size() - most_words_);
}

// Reads what is there of both pipes. Returns false at the end of the lines, of the process or of
// the time.
bool WorkerProcess::read_some(Clock::time_point end) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd ready[] = {{lines_, POLLIN, 0}, {end_, POLLIN, 0}, {prints_, POLLIN, 0}};
    if (poll(ready, std::size(ready), static_cast<int>(std::min<int64_t>(left, 1000))) < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    char part[4096];
    if (prints_ >= 0 && ready[2].revents) {
      const ssize_t n = read(prints_, part, sizeof part);
      if (n > 0) keep_words(part, static_cast<size_t>(n));
      if (n == 0) close(prints_), prints_ = -1;
    }
    if (!ready[0].revents) {
      // A process that it started may hold the pipe open.
      if (end_ >= 0 && ready[1].revents) return false;
      continue;
    }
    const ssize_t n = read(lines_, part, sizeof part);
    if (n > 0) buffer_.append(part, static_cast<size_t>(n));
    if (n < 0 && errno == EINTR) continue;
    return n > 0;
  }
}

bool WorkerProcess::read_line(std::string& line, std::chrono::seconds limit, Outcome& outcome) {
  if (take_line(line)) return true;
  const auto end = Clock::now() + limit;
  while (read_some(end))
    if (take_line(line)) return true;
  outcome = ended(Clock::now() < end, limit);
  return false;
}

// SIGTERM is the question. Who does not know it, or cannot hear it any more, is ended by it or does
// not answer.
std::string WorkerProcess::ask_where_it_is() {
  kill(process_, SIGTERM);
  const auto end = Clock::now() + std::chrono::milliseconds(500);
  std::string line;
  do {
    while (take_line(line))
      if (line.starts_with(kInside) && line.ends_with(kInsideEnd))
        return line.substr(kInside.size(), line.size() - kInside.size() - kInsideEnd.size());
  } while (read_some(end));
  return "";
}

// It has closed its end of the pipe, or has ended, or has to be killed.
Outcome WorkerProcess::ended(bool in_time, std::chrono::seconds limit) {
  const auto end = Clock::now() + limit;
  int status = 0;
  bool gone = false;
  // A process that it started may hold the pipe open, so that it may have ended without that.
  while (!(gone = waitpid(process_, &status, WNOHANG) == process_) && in_time && Clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  Outcome outcome{gone ? how_it_ended(status) : "", !gone};
  if (!gone) {
    outcome.inside = ask_where_it_is();
    kill(-process_, SIGKILL);
    wait_for(process_);
    outcome.how = fmt::format("did not end within {} s and was killed (--limit)", limit.count());
  } else {
    kill(-process_, SIGKILL);  // what it has started and left behind
  }
  process_ = -1;
  // The last that it printed.
  char part[4096];
  if (prints_ >= 0) {
    fcntl(prints_, F_SETFL, O_NONBLOCK);
    for (ssize_t n; (n = read(prints_, part, sizeof part)) > 0;)
      keep_words(part, static_cast<size_t>(n));
  }
  return outcome;
}

}  // namespace tenon::conformance
