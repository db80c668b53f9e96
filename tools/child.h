// Work in a process of its own, which may crash or hang without harm to this one.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace tenon::tools {

// A function of a plugin; null where there is none.
struct PluginFunction {
  const char* name = nullptr;
  const char* plugin = nullptr;
};

struct ChildResult {
  std::string text;       // what `work` returned; empty if it did not come so far
  bool answered = false;  // it came so far
  std::string ended;  // how the process ended, "was ended by a signal: Segmentation fault"; empty
                      // if it ended well
};

// Forks, returns what `work` returned there, and waits until that process has ended with all its
// exit handlers. It is killed, with what it has started, if that takes longer than `limit`, and
// with this process. It has a process group of its own. What it prints to the standard output goes
// to the standard error. Call it while this process has one thread. Throws a std::runtime_error if
// there can be no process, and in the child nothing. `where` tells in which function of a plugin
// the process is: where something in `work` calls exit, and in a handler of a signal before it is
// killed.
ChildResult in_child(const std::function<std::string()>& work, std::chrono::milliseconds limit,
                     PluginFunction (*where)() = nullptr);

}  // namespace tenon::tools
