#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/per_thread.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/copy_name.h>
#include <tenon/core/runtime/trace.h>
#include <tenon/core/runtime/trace_file.h>

namespace tenon::tracing {

namespace {

struct Trace {
  TraceSettings wanted;  // not changed after start()
  Clock::time_point origin = Clock::now();
  ForkMutex mutex{ForkOrder::tables};  // protects the file
  TraceFile file;
  uint32_t generation = fork_generation();  // of the process to which the file belongs
  std::map<std::string, int> devices;       // the rows of devices that are in the file
};
constexpr int kDeviceRows = 1 << 30;  // the first row of a device; threads have lower numbers
Trace& the() {
  static constinit NeverDestroyed<Trace> trace;
  return trace.get();
}

// What is known of a thread.
struct Row {
  std::string device;       // for which it works alone; empty for threads of the program
  uint32_t named_in = ~0u;  // the generation in whose file the name of this row is
};

// The members of a JSON object.
class Members {
 public:
  Members& add(const char* key, std::string_view text) {
    return text.empty() ? *this : add_json(key, json_text(text));
  }
  Members& add(const char* key, uint64_t number) { return add_json(key, std::to_string(number)); }
  std::string object() const { return "{" + text_ + "}"; }

 private:
  Members& add_json(const char* key, const std::string& value) {
    text_ += fmt::format("{}\"{}\":{}", text_.empty() ? "" : ",", key, value);
    return *this;
  }
  std::string text_;
};

double microseconds(Clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}
std::string text_of(Clock::duration d) {
  const double us = microseconds(d);
  return us < 1000 ? fmt::format("{:.1f} us", us) : fmt::format("{:.2f} ms", us / 1000);
}

// One line, written at once, so that lines of several threads do not mix.
void print(const std::string& text) {
  std::fprintf(stderr, "[trace] %s\n", printable_lines(text).c_str());
}

// "a.1234.json" for "a.json", in a process that shares the name with another.
std::string name_for_this_process(const std::string& path) {
  return fmt::format("{}.{}.json", path.substr(0, path.size() - 5), getpid());
}

// The child of a fork has a file of its own from its first event on; without any event it has none.
// The file of the parent is left alone.
void open_file_of_child(Trace& t) {
  t.file.close();
  t.devices.clear();
  try {
    t.file.open(name_for_this_process(t.wanted.file));
  } catch (const Error& e) {
    log_message(TN_LOG_WARNING, "tenon", std::string(e.what()) + "; this child has no trace");
  }
}

void add_name(Trace& t, const char* what, int id, const std::string& name) {
  t.file.add(fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                         getpid(), id, json_text(name)));
}

// Whether there is a file for what this process does. The lock is held.
bool file_of_process(Trace& t) {
  if (t.generation != fork_generation()) {
    t.generation = fork_generation();
    open_file_of_child(t);
  }
  return t.file.is_open();
}

std::string text_of_event(const Trace& t, const char* category, std::string_view name, int row,
                          Clock::time_point began, Clock::time_point ended,
                          const std::string& args) {
  return fmt::format(
      R"({{"name":{},"cat":"{}","ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{}}})",
      json_text(name), category, getpid(), row, microseconds(began - t.origin),
      microseconds(ended - began), args);
}

void add_event(const char* category, std::string_view name, Clock::time_point began,
               Clock::time_point ended, const Members& args) {
  Trace& t = the();
  if (t.wanted.file.empty()) return;
  const int thread = static_cast<int>(syscall(SYS_gettid));
  std::lock_guard lock(t.mutex);
  if (!file_of_process(t)) return;
  auto* row = PerThread<Row>::get();
  if (row && row->named_in != t.generation) {
    row->named_in = t.generation;
    if (thread == getpid()) add_name(t, "process_name", thread, program_invocation_short_name);
    add_name(t, "thread_name", thread,
             !row->device.empty() ? row->device + " worker"
             : thread == getpid() ? "main"
                                  : fmt::format("thread {}", thread));
  }
  t.file.add(text_of_event(t, category, name, thread, began, ended, args.object()));
}

// Calls `body`. If there is no memory for a text, the program goes on without it.
template <class F>
void quietly(F&& body) noexcept {
  try {
    body();
  } catch (const std::bad_alloc&) {
  }
}

// ", part of softmax (gradient), in module Net", for a line.
std::string origin_of(const PathNode* path) {
  const auto part = part_string(path), module = path_string(path);
  return (part.empty() ? "" : ", part of " + part) +
         (module.empty() ? "" : ", in module " + module);
}

// The same event for when it is known when the device did it.
void note(observe::DeviceWork* work, const DeviceContext* context, const char* category,
          std::string_view name, const Members& args) {
  if (!work || the().wanted.file.empty()) return;
  work->context = context;
  work->category = category;
  work->args = args.object();
  work->name = name;
}

const char* place_of(const observe::Run& run) {
  if (run.args.stream) return "queued on the device";
  auto* row = PerThread<Row>::get();
  return row && !row->device.empty() ? "on the worker thread" : "on the caller's thread";
}

}  // namespace

void start(const TraceSettings& settings) {
  Trace& t = the();
  TraceSettings wanted = settings;
  if (auto& file = wanted.file; !file.empty()) {
    file = std::filesystem::absolute(file).string();  // children may go to another folder
    // A program that runs others hands its environment on to them.
    if (!t.file.open(file)) t.file.open(name_for_this_process(file));
  }
  t.wanted = std::move(wanted);
}

void name_this_thread(const std::string& device) noexcept {
  quietly([&] {
    if (auto* row = PerThread<Row>::get()) row->device = device;
  });
}

void add_run(const observe::Run& run, bool failed) noexcept {
  quietly([&] {
    const auto& plan = *run.launch.plan;
    const auto signature = plan.signature(run.launch.shape);
    if (the().wanted.ops)
      print(fmt::format("{}: {} on {} by {}, {} {}{}{}", plan.name(), signature, plan.device,
                        plan.api->name(), text_of(run.ended - run.began), place_of(run),
                        failed ? ", failed" : "", origin_of(run.path)));
    Members args;
    args.add("tensors", signature).add("device", plan.device.str()).add("by", plan.api->name());
    args.add("how", place_of(run)).add("part of", part_string(run.path));
    args.add("module", path_string(run.path)).add("failed", failed ? "yes" : "");
    add_event("run", plan.name(), run.began, run.ended, args);
    note(run.launch.device_work, plan.context, "run on the device", plan.name(), args);
  });
}

void add_copy(const CopyTask& task, Clock::time_point began, bool failed) noexcept {
  quietly([&] {
    const auto ended = Clock::now();
    const auto& copy = task.copy;
    if (the().wanted.ops)
      print(fmt::format("copy of {} bytes {} by {}, {}{}", copy.bytes, copy_way(copy),
                        task.api->name(), text_of(ended - began), failed ? ", failed" : ""));
    Members args;
    args.add("bytes", copy.bytes).add("by", task.api->name()).add("failed", failed ? "yes" : "");
    const char* const name = copy_name(copy);
    add_event("copy", name, began, ended, args);
    note(task.device_work, task.by, "copy on the device", name, args);
  });
}

void add_collective(const observe::Collective& part, Clock::time_point began,
                    bool failed) noexcept {
  quietly([&] {
    const auto ended = Clock::now();
    if (the().wanted.ops)
      print(fmt::format("{} of {} bytes on {} by {}, {} queued on the device{}{}", part.name,
                        part.bytes, part.by.name, part.by.backend.name(), text_of(ended - began),
                        failed ? ", failed" : "", origin_of(current_path())));
    Members args;
    args.add("bytes", part.bytes).add("device", part.by.device.str());
    args.add("by", part.by.backend.name()).add("part of", part_string(current_path()));
    args.add("failed", failed ? "yes" : "");
    add_event("collective", part.name, began, ended, args);
    note(part.device_work, &part.by, "collective on the device", part.name, args);
  });
}

bool has_file() { return !the().wanted.file.empty(); }

void add_device_work(const observe::DeviceWork& work, int64_t began, int64_t ended) noexcept {
  if (work.name.empty()) return;
  quietly([&] {
    Trace& t = the();
    auto time = [](int64_t ns) { return Clock::time_point(std::chrono::nanoseconds(ns)); };
    std::lock_guard lock(t.mutex);
    if (!file_of_process(t)) return;
    const int next = kDeviceRows + static_cast<int>(t.devices.size());
    const auto [row, fresh] = t.devices.try_emplace(work.context->name, next);
    if (fresh)
      add_name(t, "thread_name", next, row->first + (work.context->number ? "" : " stream"));
    t.file.add(text_of_event(t, work.category, work.name, row->second, time(began), time(ended),
                             work.args));
  });
}

void add_wait(const std::string& device, Clock::time_point began) noexcept {
  quietly([&] { add_event("wait", "wait for " + device, began, Clock::now(), {}); });
}

void add_plan(const PreparedPlan& plan, std::string_view outcome, std::string_view passed_over,
              Clock::time_point began) noexcept {
  quietly([&] {
    const auto ended = Clock::now();
    const auto signature = plan.signature(), origin = origin_of(current_path());
    if (the().wanted.plans) {
      std::string text = fmt::format("plan: {}: {} on {} {}, made in {}", plan.name(), signature,
                                     plan.device, outcome, text_of(ended - began));
      if (plan.cost_ns) text += fmt::format(", estimated to take {} ns", plan.cost_ns);
      if (plan.workspace_bytes) text += fmt::format(", workspace {} bytes", plan.workspace_bytes);
      text += origin;
      if (!passed_over.empty()) text += fmt::format("; passed over{}", passed_over);
      print(text);
    }
    Members args;
    args.add("tensors", signature).add("device", plan.device.str()).add("outcome", outcome);
    args.add("estimated ns", plan.cost_ns).add("workspace bytes", plan.workspace_bytes);
    args.add("passed over", passed_over).add("part of", part_string(current_path()));
    args.add("module", path_string(current_path()));
    add_event("plan", std::string("plan ") + plan.name(), began, ended, args);
  });
}

void add_gradient(const char* name, Clock::time_point began) noexcept {
  quietly([&] {
    Members args;
    args.add("part of", part_string(current_path())).add("module", path_string(current_path()));
    add_event("gradient", name, began, Clock::now(), args);
  });
}

void announce_detour(const Detour& d) noexcept {
  if (!the().wanted.ops) return;
  quietly([&] {
    const auto module = path_string(current_path());
    print(fmt::format("{}: {} on {} is {}{}{}{}{}", d.op, d.signature, d.device, d.what,
                      d.part_of.empty() ? "" : ", for ", d.part_of,
                      module.empty() ? "" : ", in module ", module));
  });
}

void add_detour(const Detour& d, Clock::time_point began) noexcept {
  quietly([&] {
    Members args;
    args.add("tensors", d.signature).add("device", d.device.str()).add("part of", d.part_of);
    args.add("refused by", d.reason).add("module", path_string(current_path()));
    if (d.bytes) args.add("bytes", d.bytes);
    add_event("detour", fmt::format("{}: {}", d.op, d.what), began, Clock::now(), args);
  });
}

}  // namespace tenon::tracing
