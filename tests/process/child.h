// Runs a program as a child, with a clock that ends it: what hangs fails, and does not hold up the
// suite.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/sanitized.h"

// Seconds after which a process counts as one that hangs where nothing in it may hold it up,
// whatever a plugin does. Under a sanitizer all of it takes several times as long.
inline const unsigned kLongestHang = tenon::test::kSanitized ? 40 : 10;

struct Outcome {
  int status;          // exit status, or 1000 and the signal's number; 1014 is the clock
  std::string output;  // stdout and stderr
};

// `environment` holds NAME=value. The clock also ends what the child leaves behind, in so far as
// that holds its output open.
inline Outcome run_child(std::vector<std::string> command,
                         std::vector<std::string> environment = {}, unsigned seconds = 120) {
  std::vector<char*> arguments;  // before the fork: the child may not allocate
  for (auto& c : command) arguments.push_back(c.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (auto& e : environment) variables.push_back(e.data());
  for (char** e = environ; *e; ++e) variables.push_back(*e);  // the first of a name counts
  variables.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    setpgid(0, 0);  // a test of what ends its own process group ends no others
    alarm(seconds);
    execve(arguments[0], arguments.data(), variables.data());
    _exit(127);
  }
  close(ends[1]);
  Outcome outcome{};
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    outcome.output.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  return outcome;
}

// A test case of this program, "suite/case", in a process of its own. One that is for this alone is
// disabled() and has the label "alone", by which a run of its whole suite leaves it out.
inline Outcome run_alone(const std::string& test_case, std::vector<std::string> environment = {},
                         unsigned seconds = 120) {
  return run_child({"/proc/self/exe", "--run_test=" + test_case, "--color_output=no"},
                   std::move(environment), seconds);
}
