#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include <fmt/core.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/runtime/check/arguments.h>
#include <tenon/core/runtime/check/copy.h>
#include <tenon/core/runtime/check/run.h>
#include <tenon/core/runtime/check/work.h>
#include <tenon/core/runtime/counts.h>
#include <tenon/core/runtime/observe.h>
#include <tenon/core/runtime/profile_log.h>
#include <tenon/core/runtime/trace.h>

namespace tenon::observe {

constinit std::atomic<uint32_t> watchers{0};

namespace {

// Prints what was counted.
void report_at_exit() {
  try {
    const auto stats = dispatch_stats();
    const bool traced = watched_by(kTrace);
    std::string text =
        text_of_detours(stats.on_cpu, "computed on the CPU, because the device lacks them:");
    if (traced)
      for (auto& part : {text_of_detours(stats.widened, "half types computed in f32:"),
                         text_of_detours(stats.decomposed, "decomposed into other operators:"),
                         text_of_detours(stats.hidden_copies, "copies that nobody asked for:"),
                         text_of_detours(stats.conversions, "inputs converted to one type:"),
                         text_of_runs(stats)})
        if (!part.empty()) text += (text.empty() ? "" : "\n") + part;
    if (!text.empty()) std::fprintf(stderr, "[tenon] %s\n", printable_lines(text).c_str());
  } catch (const std::bad_alloc&) {  // the program ends without it
  }
}

}  // namespace

void start() {
  static constinit NeverDestroyed<ForkMutex, ForkOrder::tables> mutex;
  static bool started = false;
  std::lock_guard lock(mutex.get());
  if (started) return;
  const auto settings = trace_from_environment();
  if (settings.any()) {
    tracing::start(settings);
    watchers |= kTrace;
  }
  if (settings.any() || cpu_fallback_from_environment() == CpuFallback::report) {
    count_dispatch();
    // The handlers that wait for devices are registered later, so they run before this one.
    std::atexit(report_at_exit);
  }
  if (check_settings().on) {
    checked::start_watching();
    watchers |= kCheck;
  }
  started = true;
}

std::string PlanAtWork::text() const {
  const auto part = part_string(path_), module = path_string(path_);
  return fmt::format("operator {}{}{}{}{}", plan_.describe(shape_),
                     part.empty() ? "" : ", part of ", part, module.empty() ? "" : ", module ",
                     module);
}

bool times_wanted() { return watched_by(kProfile) || (watched_by(kTrace) && tracing::has_file()); }

void add_times(const DeviceWork& work, int64_t began, int64_t ended) noexcept {
  if (watched_by(kTrace)) tracing::add_device_work(work, began, ended);
  if (watched_by(kProfile)) profiling::add_device_work(work, began, ended);
}

void name_this_thread(const std::string& device) { tracing::name_this_thread(device); }

namespace {

using Clock = std::chrono::steady_clock;

tn_error* run_traced(const Launch& launch, tn_run& args, const PathNode* path) {
  Run run{launch, args, path};
  run.began = Clock::now();
  const PlanAtWork work(*launch.plan, launch.shape, path);
  tn_error* error = launch.plan->api->run(launch.plan->plan, &args, &work);
  run.ended = Clock::now();
  if (watched_by(kCount)) count_run(run);
  if (watched_by(kTrace)) tracing::add_run(run, error != nullptr);
  if (watched_by(kProfile)) profiling::add_run(run, error != nullptr);
  return error;
}

// What is said of a run or a copy at which there was no memory to look. It is never freed.
tn_error without_a_look{
    sizeof(tn_error), TN_CODE_OUT_OF_MEMORY, "there was no memory to look at it (TENON_CHECK)", 0,
    nullptr,          [](tn_error*) {}};

// `check_it` sets the error. The worker of a stream calls this, and can throw nothing.
template <class F>
tn_error* error_of_check(F&& check_it) noexcept {
  tn_error* error = nullptr;
  try {
    check_it(error);
  } catch (const std::bad_alloc&) {
    if (!error) error = &without_a_look;
  }
  return error;
}
}  // namespace

// The time of checks counts for no operator.
tn_error* run_watched(const Launch& launch, tn_run& args, const PathNode* path) {
  if (!watched_by(kCheck)) return run_traced(launch, args, path);
  return error_of_check([&](tn_error*& error) {
    const checked::Work work(*launch.plan, launch.shape, path);
    checked::RunCheck check(launch, path, args.stream);
    if ((error = check.before())) return;
    checked::Arguments own(args);
    error = run_traced(launch, own.run(), path);
    own.spoil();
    error = check.after(error);
  });
}

void Gradient::begin(const char* op) {
  fmt::memory_buffer name;  // names of usual lengths need no allocation
  for (const std::string_view part : {std::string_view(op), std::string_view(" (gradient)")})
    name.append(part);
  name.push_back('\0');
  began_ = Clock::now();
  part_.emplace(name.data());
}

void Gradient::end() noexcept {
  const char* name = last_name(current_path());
  part_.reset();
  if (watched_by(kTrace)) tracing::add_gradient(name, began_);
  if (watched_by(kProfile)) profiling::add_gradient(name, began_);
}

void add_collective(const Collective& part, Clock::time_point began, bool failed) noexcept {
  if (watched_by(kTrace)) tracing::add_collective(part, began, failed);
  if (watched_by(kProfile)) profiling::add_collective(part, began, failed);
}

namespace {
tn_error* copy_traced(const CopyTask& t, tn_stream* stream) {
  const auto began = Clock::now();
  tn_error* error = t.api->copy(t.device, &t.copy, stream);
  if (watched_by(kCount)) count_copy(t.copy.bytes);
  if (watched_by(kProfile)) profiling::add_copy(t, stream, began, error != nullptr);
  if (watched_by(kTrace)) tracing::add_copy(t, began, error != nullptr);
  return error;
}
}  // namespace

tn_error* run_copy_watched(const CopyTask& t, tn_stream* stream) {
  if (!watched_by(kCheck)) return copy_traced(t, stream);
  return error_of_check([&](tn_error*& error) {
    const checked::Work work(t.api->name(), fmt::format("a copy of {} bytes", t.copy.bytes));
    checked::CopyCheck check(t, stream);
    if ((error = check.before())) return;
    error = copy_traced(t, stream);
    error = check.after(error);
  });
}

}  // namespace tenon::observe
