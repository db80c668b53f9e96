#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <unordered_set>
#include <utility>

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/error.h>
#include <tenon/core/runtime/allocator.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/copy_name.h>
#include <tenon/core/runtime/profile_log.h>

namespace tenon::profiling {

namespace {

using profiler::Event;
using profiler::Kind;

// An event as it is kept while programs run. Texts belong to the log, or live as long as the
// process.
struct Record {
  Kind kind = Kind::op;
  bool on_device = true, failed = false;   // as in Event
  const DeviceContext* context = nullptr;  // of the stream that did it
  pid_t thread = 0;                        // what the system calls the thread
  const char *name = "", *by = "", *tensors = "";
  const PathNode* path = nullptr;
  int64_t queued = 0, began = 0, ended = 0;
  uint64_t bytes = 0, allocated = 0;

  bool has_device() const {
    return kind == Kind::op || kind == Kind::copy || kind == Kind::collective;
  }
  bool of_thread() const { return !has_device() || !on_device; }
};

// Records in blocks, because a vector that grows would copy all of them while programs wait.
class Records {
 public:
  size_t size() const {
    return blocks_.empty() ? 0 : (blocks_.size() - 1) * kBlock + blocks_.back().size();
  }
  Record& operator[](size_t i) { return blocks_[i / kBlock][i % kBlock]; }
  void push_back(const Record& record) {
    if (blocks_.empty() || blocks_.back().size() == kBlock) {
      std::vector<Record> block;
      block.reserve(kBlock);
      blocks_.push_back(std::move(block));
    }
    blocks_.back().push_back(record);
  }
  std::vector<const Record*> by_time() const {
    std::vector<const Record*> sorted;
    sorted.reserve(size());
    for (auto& block : blocks_)
      for (auto& record : block) sorted.push_back(&record);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](auto* a, auto* b) { return a->began < b->began; });
    return sorted;
  }

 private:
  static constexpr size_t kBlock = 4096;
  std::vector<std::vector<Record>> blocks_;
};

struct Log {
  ForkSpinLock lock{ForkOrder::tables};  // held while a record and its texts are copied
  bool recording = false;
  uint64_t number = 0;      // of the recording; the first is 1
  uint32_t generation = 0;  // of the process that records
  uint64_t max_events = 0;
  std::atomic<bool> shapes{false}, memory{false};  // are wanted; read without the lock
  int64_t origin = 0;
  Records records;
  std::unordered_set<std::string> texts;
  uint64_t lost = 0;

  bool records_here() const { return recording && generation == fork_generation(); }
  const char* keep(std::string&& text) { return texts.insert(std::move(text)).first->c_str(); }
};
Log& the_log() {
  static constinit NeverDestroyed<Log> log;
  return log.get();
}

// Calls make(log, record) and keeps the record, and which it is in `work` if that is not null.
template <class F>
void add(F&& make, observe::DeviceWork* work = nullptr) noexcept {
  Log& log = the_log();
  std::lock_guard lock(log.lock);
  if (!log.records_here()) return;
  if (log.records.size() >= log.max_events) return void(++log.lost);
  try {
    Record record;
    make(log, record);
    if (!record.ended) record.ended = ns_of(Clock::now());
    if (record.of_thread()) record.thread = static_cast<pid_t>(syscall(SYS_gettid));
    if (!record.queued) record.queued = record.began;
    log.records.push_back(record);
    if (work) work->recording = log.number, work->record = log.records.size() - 1;
  } catch (const std::bad_alloc&) {
    ++log.lost;
  }
}

Event event_of(const Record& r, int64_t origin) {
  auto seconds = [&](int64_t at) { return static_cast<double>(at - origin) * 1e-9; };
  Event e;
  e.kind = r.kind;
  e.name = r.name;
  e.lane = !r.of_thread()         ? r.context->name
           : r.thread == getpid() ? "main"
                                  : fmt::format("thread {}", r.thread);
  if (r.has_device()) e.device = r.context->device.str();
  e.by = r.by;
  e.module = path_string(r.path);
  e.part_of = part_string(r.path);
  e.tensors = r.tensors;
  e.queued = std::max(0.0, seconds(r.queued));
  e.began = std::max(0.0, seconds(r.began));
  e.ended = std::max(e.began, seconds(r.ended));
  e.on_device = r.on_device;
  e.failed = r.failed;
  e.bytes = r.bytes;
  e.allocated = r.allocated;
  return e;
}

}  // namespace

void add_run(const observe::Run& run, bool failed) noexcept {
  const auto& plan = *run.launch.plan;
  std::string tensors;
  try {
    if (the_log().shapes) tensors = plan.signature(run.launch.shape);
  } catch (const std::bad_alloc&) {  // the event is kept without it
  }
  uint64_t allocated = 0;
  if (the_log().memory)
    for (auto* context : plan.context->contexts()) allocated += context->memory->stats().allocated;
  add(
      [&](Log& log, Record& r) {
        r.name = plan.name();
        r.by = plan.api->name();
        r.context = plan.context;
        r.on_device = !run.args.stream;
        if (!tensors.empty()) r.tensors = log.keep(std::move(tensors));
        r.path = run.path;
        r.queued = run.launch.queued_ns;
        r.began = ns_of(run.began);
        r.ended = ns_of(run.ended);
        r.failed = failed;
        r.allocated = allocated;
      },
      run.launch.device_work);
}

void add_device_work(const observe::DeviceWork& work, int64_t began, int64_t ended) noexcept {
  Log& log = the_log();
  std::lock_guard lock(log.lock);
  if (!log.records_here() || work.recording != log.number) return;
  Record& r = log.records[work.record];
  r.began = began;
  r.ended = ended;
  r.queued = std::min(r.queued, began);
  r.on_device = true;
}

void add_copy(const CopyTask& task, tn_stream* stream, Clock::time_point began,
              bool failed) noexcept {
  const int64_t ended = ns_of(Clock::now());
  add(
      [&](Log&, Record& r) {
        r.kind = Kind::copy;
        r.name = copy_name(task.copy);
        r.by = task.api->name();
        r.context = task.by;
        r.on_device = !stream;
        r.queued = task.queued_ns;
        r.began = ns_of(began);
        r.ended = ended;
        r.bytes = task.copy.bytes;
        r.failed = failed;
      },
      task.device_work);
}

void add_collective(const observe::Collective& part, Clock::time_point began,
                    bool failed) noexcept {
  add(
      [&](Log&, Record& r) {
        r.kind = Kind::collective;
        r.name = part.name;
        r.by = part.by.backend.name().c_str();
        r.context = &part.by;
        r.path = current_path();
        r.on_device = false;
        r.began = ns_of(began);
        r.bytes = part.bytes;
        r.failed = failed;
      },
      part.device_work);
}

void add_wait(const std::string& device, Clock::time_point began) noexcept {
  add([&](Log& log, Record& r) {
    r.kind = Kind::wait;
    r.name = log.keep("wait for " + device);
    r.path = current_path();
    r.began = ns_of(began);
  });
}

void add_gradient(const char* name, Clock::time_point began) noexcept {
  add([&](Log&, Record& r) {
    r.kind = Kind::gradient;
    r.name = name;
    r.path = current_path();
    r.began = ns_of(began);
  });
}

void add_range(const std::string& name, int64_t began_ns) noexcept {
  add([&](Log& log, Record& r) {
    r.kind = Kind::range;
    r.name = log.keep(std::string(name));
    r.path = current_path();
    r.began = began_ns;
  });
}

void begin(const profiler::Options& options) {
  Log& log = the_log();
  std::lock_guard lock(log.lock);
  if (log.records_here())
    throw ValueError("Profiler: another profiler records, and one can at a time; stop() it first");
  log.records = {};
  log.texts.clear();
  log.lost = 0;
  log.max_events = options.max_events;
  log.shapes = options.record_shapes;
  log.memory = options.profile_memory;
  log.generation = fork_generation();
  ++log.number;
  log.recording = true;
  log.origin = ns_of(Clock::now());
  observe::watchers |= observe::kProfile;
}

Recorded end() {
  Log& log = the_log();
  Records records;
  std::unordered_set<std::string> texts;
  Recorded recorded;
  int64_t origin = 0;
  {
    std::lock_guard lock(log.lock);
    if (!log.records_here()) return recorded;
    observe::watchers &= ~uint32_t{observe::kProfile};
    log.recording = false;
    std::swap(records, log.records);
    texts.swap(log.texts);
    recorded.lost = log.lost;
    origin = log.origin;
    recorded.seconds = static_cast<double>(ns_of(Clock::now()) - origin) * 1e-9;
  }
  try {
    recorded.events.reserve(records.size());
    for (auto* r : records.by_time()) recorded.events.push_back(event_of(*r, origin));
  } catch (const std::bad_alloc&) {
    recorded.lost += records.size() - recorded.events.size();
  }
  return recorded;
}

}  // namespace tenon::profiling
