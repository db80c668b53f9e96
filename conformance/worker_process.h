// A process of this program that says lines on a pipe, as long as it lives.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace tenon::conformance {

struct Outcome {
  std::string how;  // "crashed: SIGSEGV (Segmentation fault)"; empty if it ended well
  bool hung = false;
};

class WorkerProcess {
 public:
  // Starts `program` with these arguments and "--pipe N". Its standard input is empty, and what
  // it prints goes to the standard error. `checked`: with TENON_CHECK=1, unless that is set.
  // Throws an Error if there can be no process.
  WorkerProcess(std::vector<std::string> command, bool checked,
                const std::string& program = "/proc/self/exe");
  ~WorkerProcess();  // kills it
  WorkerProcess(const WorkerProcess&) = delete;

  // Reads a line without its end. Returns false once there are no more: the process has ended, or
  // said nothing for as long as `limit`, and was killed; `outcome` says how.
  bool read_line(std::string& line, std::chrono::seconds limit, Outcome& outcome);

  // The end of what it printed since this was last asked.
  std::string take_words() { return std::exchange(words_, {}); }

 private:
  bool take_line(std::string& line);
  bool read_some(std::chrono::steady_clock::time_point end);
  void keep_words(const char* text, size_t size);
  Outcome ended(bool in_time, std::chrono::seconds limit);

  pid_t process_ = -1;
  int lines_ = -1, prints_ = -1;
  int end_ = -1;  // readable once the process has ended
  std::string buffer_, words_;
};

}  // namespace tenon::conformance
