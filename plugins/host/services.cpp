#include <deque>
#include <mutex>
#include <stdexcept>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/plugins/host/host_version.h>
#include <tenon/plugins/host/services.h>

namespace tenon::plugins {

namespace {

struct Services {
  std::string name;
  std::string library;
  tn_host table;
  unsigned char future[HostVersion::kMaxFuture];  // zeros: a newer host would have more functions
};

void host_log(void* context, tn_log_level level, const char* message) {
  const auto* services = static_cast<Services*>(context);
  log_message(level, services ? services->name : "a plugin without tn_host.context",
              message ? message : "");
}

constinit Threads threads;
constinit HostVersion version;

uint32_t host_thread_count(void*) { return threads.count ? threads.count() : 1; }

// Throws only what the body throws. That is an exception of the plugin's own, and the caller of the
// plugin adds its name.
void host_parallel_for(void*, int64_t n, int64_t grain, tn_loop_body body, void* context) {
  if (n <= 0) return;
  if (!body)
    throw std::invalid_argument(
        "parallel_for was called without a body; give it the function that does a part");
  if (threads.parallel_for)
    threads.parallel_for(n, grain, body, context);
  else
    body(context, 0, n, 0);
}

}  // namespace

void pretend_host_version(const HostVersion& other) { version = other; }
const HostVersion& host_version() { return version; }

void lend_threads(const Threads& lent) { threads = lent; }

const tn_host* make_host_services(const std::string& name, const std::string& library) {
  struct All {
    ForkMutex mutex{ForkOrder::tables};
    std::deque<Services> services;
  };
  // A plugin may log from another library's exit handler.
  static constinit NeverDestroyed<All> kept;
  All& all = kept.get();
  std::lock_guard lock(all.mutex);
  auto& s = all.services.emplace_back(Services{name, library, {}, {}});
  s.table = {version.host_bytes, TN_ABI_MAJOR, version.abi_minor, &s,
             s.library.c_str(),  host_log,     host_thread_count, host_parallel_for};
  return &s.table;
}

}  // namespace tenon::plugins
