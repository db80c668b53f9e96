#include <cstdio>
#include <string>

#include <fmt/core.h>

#include <tenon/core/base/module_path.h>
#include <tenon/core/base/per_thread.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/trace.h>

namespace tenon::trace {

namespace {

TraceSettings wanted;  // written once, before the watchers are

// What is known of a thread.
struct Row {
  std::string device;  // for which it works alone; empty for threads of the program
};

std::string duration(std::chrono::steady_clock::duration d) {
  const double us = std::chrono::duration<double, std::micro>(d).count();
  return us < 1000 ? fmt::format("{:.1f} us", us) : fmt::format("{:.2f} ms", us / 1000);
}

// One line, written at once, so that lines of several threads do not mix.
void print(const std::string& text) {
  std::fprintf(stderr, "[trace] %s\n", printable(text).c_str());
}

const char* place_of(const observe::Run& run) {
  if (run.args.stream) return "queued on the device";
  auto* row = PerThread<Row>::get();
  return row && !row->device.empty() ? "on the worker thread" : "on the caller's thread";
}

}  // namespace

void start(const TraceSettings& settings) { wanted = settings; }

void name_this_thread(const std::string& device) {
  if (auto* row = PerThread<Row>::get()) row->device = device;
}

void add_run(const observe::Run& run, bool failed) noexcept try {
  if (!wanted.ops) return;
  const auto& plan = *run.launch.plan;
  const auto module = path_string(run.path);
  print(fmt::format("{}: {} on {} by {}, {} {}{}{}{}", plan.name(),
                    plan.signature(run.launch.shape), plan.device, plan.api->name(),
                    duration(run.ended - run.began), place_of(run), failed ? ", failed" : "",
                    module.empty() ? "" : ", in module ", module));
} catch (const std::bad_alloc&) {  // the program goes on without this line
}

}  // namespace tenon::trace
