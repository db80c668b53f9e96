#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string_view>

#include <tenon/core/printable.h>
#include <tenon/core/runtime/fork.h>
#include <tenon/core/runtime/thread_pool.h>
#include <tenon/plugins/host/services.h>

namespace tenon::plugins {

namespace {

constexpr const char* level_names[] = {"debug", "info", "warning", "error"};

tn_log_level log_threshold() {
  static const tn_log_level threshold = [] {
    const char* text = std::getenv("TENON_LOG");
    for (tn_log_level i = 0; text && i < 4; ++i)
      if (std::string_view(text) == level_names[i]) return i;
    if (text && *text)  // a log that cannot be had is no reason to end a program
      std::fprintf(stderr,
                   "[tenon] warning: TENON_LOG is \"%s\"; it must be debug, info, warning or "
                   "error, and warning is taken\n",
                   excerpt(text).c_str());
    return tn_log_level{TN_LOG_WARNING};
  }();
  return threshold;
}

struct Services {
  std::string name;
  std::string library;
  tn_host table;
};

void host_log(void* context, tn_log_level level, const char* message) {
  log(level, static_cast<Services*>(context)->name, message ? message : "");
}

// No exception may reach a plugin; without threads the work is done by the caller.
ThreadPool* pool() noexcept {
  try {
    return &ThreadPool::shared();
  } catch (...) {
    return nullptr;
  }
}

uint32_t host_thread_count(void*) {
  auto* threads = pool();
  return threads ? threads->size() : 1;
}

void host_parallel_for(void*, int64_t n, int64_t grain, tn_loop_body body, void* context) {
  if (n <= 0) return;
  if (auto* threads = pool())
    threads->parallel_for(n, grain, body, context);
  else
    body(context, 0, n, 0);
}

}  // namespace

void log(tn_log_level level, const std::string& source, const std::string& message) noexcept {
  const char* name = level_names[level < 0 ? 0 : level > 3 ? 3 : level];
  try {
    if (level < log_threshold()) return;
    std::fprintf(stderr, "[%s] %s: %s\n", printable(source).c_str(), name,
                 printable_lines(message).c_str());
  } catch (...) {
    std::fprintf(stderr, "[tenon] %s: there is no memory to print a message\n", name);
  }
}

const tn_host* make_host_services(const std::string& name, const std::string& library) {
  // Never freed: a plugin may log from another library's exit handler.
  static auto* all = new std::deque<Services>;
  static auto& mutex = *new ForkMutex(ForkOrder::tables);
  std::lock_guard lock(mutex);
  auto& s = all->emplace_back(Services{name, library, {}});
  s.table = {sizeof(tn_host),   TN_ABI_MAJOR, TN_ABI_MINOR,      &s,
             s.library.c_str(), host_log,     host_thread_count, host_parallel_for};
  return &s.table;
}

}  // namespace tenon::plugins
