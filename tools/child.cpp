#include "child.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/core/base/uninterrupted.h>

namespace tenon::tools {

namespace {

using Clock = std::chrono::steady_clock;

void write_all(int to, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(to, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) at += static_cast<size_t>(n);
  }
}

// With this byte begins, instead of an answer, where the process is.
constexpr char kPlace = 1;
// Where the child says that, until it has answered; and what knows it.
int place_is_told_to = -1;
PluginFunction (*current_place)() = nullptr;

// "init of plugin npu". Without memory of its own, as the handler of a signal calls it.
void tell_the_place() {
  const int to = place_is_told_to;
  const PluginFunction place = to < 0 ? PluginFunction() : current_place();
  if (!place.name) return;
  write_all(to, std::string_view(&kPlace, 1));
  for (const char* part : {place.name, " of plugin ", place.plugin}) write_all(to, part);
  write_all(to, std::string_view("", 1));
}

// The handler of SIGTERM, which a plugin may also send. The parent has waited long enough and ends
// this process after it has said where it is.
void answer_the_parent(int signal, siginfo_t* info, void*) {
  if (info->si_code != SI_USER || info->si_pid != getppid()) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  tell_the_place();
  for (;;) pause();
}

void answer_on(int to, PluginFunction (*where)()) {
  place_is_told_to = to;
  current_place = where;
  std::atexit(tell_the_place);
  struct sigaction action {};
  action.sa_sigaction = answer_the_parent;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTERM, &action, nullptr);
}

[[noreturn]] void be_the_child(const std::function<std::string()>& work, int to,
                               PluginFunction (*where)()) {
  dup2(STDERR_FILENO, STDOUT_FILENO);
  if (where) answer_on(to, where);
  try {
    // A zero byte ends the answer: what `work` leaves running may keep the pipe open.
    const std::string answer = work() + '\0';
    place_is_told_to = -1;
    write_all(to, answer);
  } catch (const std::exception& e) {
    std::cerr << "tenon: " << e.what() << "\n";
  } catch (...) {
    std::cerr << "tenon: an exception of unknown type\n";
  }
  place_is_told_to = -1;
  close(to);
  std::exit(0);
}

// Reads the answer up to its zero byte, or until the child closes its end or ends. Returns false if
// none of that happened in time.
bool read_answer(int from, pid_t child, ChildResult& result, int& status, bool& ended,
                 Clock::time_point end) {
  std::string& text = result.text;
  for (;;) {
    if (!text.empty() && text.back() == '\0') {
      text.pop_back();
      return result.answered = true;
    }
    ended = ended || waitpid(child, &status, WNOHANG) == child;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd ready{from, POLLIN, 0};
    const int n = poll(&ready, 1, ended ? 0 : static_cast<int>(std::clamp<int64_t>(left, 0, 20)));
    // All that it wrote is read; a process that it has started may hold the pipe open for ever.
    if (n == 0 && ended) return true;
    if (n == 0 && left <= 0) return false;
    if (n == 0) continue;
    if (n < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    char buffer[4096];
    const ssize_t got = read(from, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer, static_cast<size_t>(got));
  }
}

// Asks a process that has not ended in time in which function of a plugin it is: "init of plugin
// npu". Nothing where it does not know, or cannot hear any more.
std::string ask_where_it_is(int from, pid_t child) {
  constexpr auto kPatience = std::chrono::milliseconds(500);
  kill(child, SIGTERM);
  ChildResult said;
  int status = 0;
  bool ended = false;
  read_answer(from, child, said, status, ended, Clock::now() + kPatience);
  return said.answered && said.text.starts_with(kPlace) ? said.text.substr(1) : "";
}

// Returns false if the process still runs at `end`.
bool await_end(pid_t child, int& status, Clock::time_point end) {
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return true;
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

ChildResult in_child(const std::function<std::string()>& work, std::chrono::milliseconds limit,
                     PluginFunction (*where)()) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("there is no pipe: {}", std::strerror(errno)));
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) {
    const int reason = errno;
    close(ends[0]), close(ends[1]);
    throw std::runtime_error(fmt::format("there is no process: {}", std::strerror(reason)));
  }
  if (child == 0) {
    close(ends[0]);
    setpgid(0, 0);  // so that a signal to its own group (kill(0, …)) ends it alone
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    be_the_child(work, ends[1], where);
  }
  setpgid(child, child);  // whichever of both comes first
  close(ends[1]);
  ChildResult result;
  int status = 0;
  const auto end = Clock::now() + limit;
  bool ended = false;
  const bool in_time = read_answer(ends[0], child, result, status, ended, end) &&
                       (ended || await_end(child, status, end));
  std::string place;
  if (result.text.starts_with(kPlace)) {
    place = ", by a call of exit inside " + result.text.substr(1);
    result = {};
  } else if (!in_time && where) {
    if (const auto inside = ask_where_it_is(ends[0], child); !inside.empty())
      place = "; it was inside " + inside;
  }
  close(ends[0]);
  if (!in_time) {
    kill(-child, SIGKILL);  // with what it has started
    uninterrupted([&] { return waitpid(child, &status, 0); });
    result.ended = fmt::format("did not end within {} s{}",
                               std::chrono::duration<double>(limit).count(), place);
  } else if (WIFSIGNALED(status)) {
    result.ended = fmt::format("was ended by a signal: {}", strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    result.ended = fmt::format("ended with the status {}{}", WEXITSTATUS(status), place);
  } else if (!result.answered) {
    result.ended = "ended before it had answered" + place;
  }
  return result;
}

}  // namespace tenon::tools
