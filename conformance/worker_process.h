// A process of this program that says lines on a pipe, as long as it lives.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace tenon::conformance {

struct Outcome {
  std::string how;  // "crashed: SIGSEGV (Segmentation fault)"; empty if it ended well
  bool hung = false;
  // Where it hung, where it says so: "init of plugin npu".
  std::string inside = {};
};

// How it says that, as the beginning of a line; the rest is the text and kInsideEnd.
constexpr std::string_view kInside = "{\"inside\": \"", kInsideEnd = "\"}";

// Environment variables by their names; one that is empty is taken away.
using Variables = std::map<std::string, std::string>;

// Those with which checks are run that may take `limit` seconds each, in checked mode or without.
// What is set already stays, except for what would compute on another device.
Variables variables_of_checks(bool checked, unsigned limit);

struct Start {
  std::string program = "/proc/self/exe";
  std::vector<std::string> command = {};  // "--pipe N" is added
  Variables variables = {};               // besides those of this process
  size_t most_words = 4000;               // bytes that are kept of what it prints
};

// It is killed when the thread ends that has started it, so it belongs to that thread.
class WorkerProcess {
 public:
  // Its standard input is empty, and what it prints is kept. Throws an Error if there can be no
  // process.
  explicit WorkerProcess(Start start);
  ~WorkerProcess();  // kills it
  WorkerProcess(const WorkerProcess&) = delete;

  // Reads a line without its end, and leaves out empty ones. Returns false once there are no more:
  // the process has ended, or said nothing for as long as `limit`, and was killed; `outcome` says
  // how.
  bool read_line(std::string& line, std::chrono::seconds limit, Outcome& outcome);

  // The end of what it printed since this was last asked.
  std::string take_words() { return std::exchange(words_, {}); }

 private:
  bool take_line(std::string& line);
  bool read_some(std::chrono::steady_clock::time_point end);
  std::string ask_where_it_is();
  void keep_words(const char* text, size_t size);
  Outcome ended(bool in_time, std::chrono::seconds limit);

  pid_t process_ = -1;
  int lines_ = -1, prints_ = -1;
  int end_ = -1;  // readable once the process has ended
  std::string buffer_, words_;
  const size_t most_words_;
};

}  // namespace tenon::conformance
