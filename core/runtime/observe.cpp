#include <mutex>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/runtime/observe.h>
#include <tenon/core/runtime/trace.h>

namespace tenon::observe {

constinit std::atomic<uint32_t> watchers{0};

void start() {
  static auto& mutex = *new ForkMutex(ForkOrder::tables);
  static bool started = false;
  std::lock_guard lock(mutex);
  if (started) return;
  if (const auto settings = trace_from_environment(); settings.any()) {
    trace::start(settings);
    watchers |= kTrace;
  }
  started = true;
}

void name_this_thread(const std::string& device) { trace::name_this_thread(device); }

namespace {

using Clock = std::chrono::steady_clock;

// What watchers do right before the plan runs. Whatever they return is the error of the run, and
// the plan does not run.
tn_error* before_run(Run& run) {
  run.began = Clock::now();
  return nullptr;
}

// What watchers do right after it, with its error or null. They may replace the error.
tn_error* after_run(Run& run, tn_error* error) {
  run.ended = Clock::now();
  if (watched_by(kTrace)) trace::add_run(run, error != nullptr);
  return error;
}

}  // namespace

tn_error* run_watched(const Launch& launch, tn_run& args, const PathNode* path) {
  Run run{launch, args, path};
  if (tn_error* refused = before_run(run)) return refused;
  return after_run(run, launch.plan->api->run(launch.plan->plan, &args));
}

}  // namespace tenon::observe
