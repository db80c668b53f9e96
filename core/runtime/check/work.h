// What the process was doing for plugins, for those who have to say it in a crash or while it
// hangs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <tenon/core/base/module_path.h>
#include <tenon/core/runtime/prepared_plan.h>

namespace tenon::checked {

// As long as it lives, this thread works for one operator, copy or replay of a plugin. It does
// nothing unless in checked mode.
class Work {
 public:
  // `path` is the module that asked for it; it may be null.
  Work(const PreparedPlan& plan, const Shape* shape, const PathNode* path);
  // For work that is no operator. `plugin` has to live as long.
  Work(const char* plugin, const std::string& text);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // "operator abs: (3,) on joint:0, module Net", shortened where it is too long.
  const char* text() const { return text_; }
  // The next in the list of all work.
  const Work* next() const { return next_; }

 private:
  friend struct Works;
  using Clock = std::chrono::steady_clock;

  void begin(const char* plugin, const std::string& text);

  bool listed_ = false;
  const char* plugin_ = nullptr;
  const char* outer_ = nullptr;  // what this thread did before
  Clock::time_point begin_{};
  bool told_ = false;  // that it takes long
  uint32_t generation_ = 0;
  Work *previous_ = nullptr, *next_ = nullptr;
  char text_[512];
};

// Starts to look for work, and for calls of plugins, that take longer than TENON_CHECK_TIMEOUT, and
// to name the plugin that a signal such as SIGSEGV ends. Call it in checked mode, before a plugin
// is loaded; it may be called again.
void start_watching();
// Makes sure that such signals are still noticed, which another library may have changed, on this
// thread.
void watch_signals() noexcept;
// Writes the text of all work of the process to stderr. For a signal handler.
void print_all_work() noexcept;

}  // namespace tenon::checked
