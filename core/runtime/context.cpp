#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <span>
#include <utility>

#include <fmt/core.h>
#include <link.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/capture.h>
#include <tenon/core/runtime/check/memory.h>
#include <tenon/core/runtime/check/work.h>
#include <tenon/core/runtime/collectives.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/observe.h>
#include <tenon/core/runtime/plugin_stream.h>
#include <tenon/core/runtime/thread_pool.h>
#include <tenon/plugins/host/library_table.h>
#include <tenon/plugins/host/registry.h>

namespace tenon {

namespace {
std::span<const tn_memory_kind* const> memory_kinds(const DeviceContext& context) {
  const tn_memory_kind* const* table = nullptr;
  size_t count = 0;
  check(context.backend.api().memory_kinds(context.handle, &table, &count),
        context.device.str() + ": ");
  return {table, count};
}
}  // namespace

DeviceContext::DeviceContext(Device d, plugins::Backend& b,
                             const std::vector<plugins::Backend*>& overlays)
    : device(d), name(d.str()), backend(b), main(*this), number(0) {
  handle = b.open_device(d.index());
  info = b.device_info(handle);
  if (info.memory_total) max_bytes_ = std::min(max_bytes_, info.memory_total);
  caller_thread = info.flags & TN_DEVICE_CALLER_THREAD;

  const auto table = memory_kinds(*this);
  host_visible = table[0]->flags & TN_MEMORY_HOST_VISIBLE;
  stream = caller_thread ? make_worker_stream(name) : make_plugin_stream(b.api(), handle, name);
  memory = std::make_unique<Allocator>(*this, 0, *table[0]);
  for (uint32_t i = 1; i < table.size(); ++i) {
    if (!(table[i]->flags & TN_MEMORY_PINNED)) continue;
    if (table[i]->flags & TN_MEMORY_HOST_VISIBLE)
      pinned = std::make_unique<Allocator>(*this, i, *table[i], Allocator::WaitsFor::uses);
    else  // the host would copy from and to it
      log_message(TN_LOG_WARNING, b.name(),
                  fmt::format("memory kind {} of {} is not used: it is TN_MEMORY_PINNED, but not "
                              "TN_MEMORY_HOST_VISIBLE; set both",
                              i, d));
  }
  plans = make_plan_store(*this);

  for (auto* o : overlays) {
    try {
      planners.push_back({o, o->open_device(d.index()), plugins::registry().prefers(*o)});
    } catch (const Error& e) {  // the device works without its overlay
      log_message(TN_LOG_WARNING, o->name(), fmt::format("it is not used for {}: {}", d, e.what()));
    }
  }
  planners.push_back({&b, handle, false});
}

DeviceContext::DeviceContext(DeviceContext& of, uint32_t number, std::string name)
    : device(of.device),
      name(std::move(name)),
      backend(of.backend),
      main(of),
      number(number),
      handle(of.handle),
      info(of.info),
      host_visible(of.host_visible),
      caller_thread(of.caller_thread),
      planners(of.planners),
      max_bytes_(of.max_bytes_) {
  auto& failures = of.stream->failures;
  stream = caller_thread ? make_worker_stream(this->name, number, &failures)
                         : make_plugin_stream(backend.api(), handle, this->name, number, &failures);
  memory = std::make_unique<Allocator>(*this, 0, *memory_kinds(*this)[0]);
  plans = make_plan_store(*this);
}

DeviceContext::~DeviceContext() {
  for (auto& extra : extras_) delete extra.load(std::memory_order_relaxed);
}

// The mutex is held.
DeviceContext& DeviceContext::make_extra(uint32_t place, std::string its_name) {
  auto& known = extras_[place];
  if (!known.load(std::memory_order_relaxed)) {
    stream->require_open();
    known.store(new DeviceContext(*this, place, std::move(its_name)), std::memory_order_release);
  }
  return *known.load(std::memory_order_relaxed);
}

DeviceContext& DeviceContext::extra(Extra work) {
  const auto place = static_cast<uint32_t>(work);
  if (auto* made = main.extras_[place].load(std::memory_order_acquire)) return *made;
  std::lock_guard lock(main.mutex_);
  return main.make_extra(place, name + (work == Extra::copies ? " copies" : " sums"));
}

DeviceContext& DeviceContext::take_stream() {
  std::lock_guard lock(main.mutex_);
  const auto unused = std::find(main.taken_.begin(), main.taken_.end(), false);
  if (unused == main.taken_.end())
    throw DeviceError(fmt::format(
        "Stream: {} has {} streams in use, which is the most there can be; use fewer, or let some "
        "of them go",
        device, kMaxStreams));
  const auto place = static_cast<uint32_t>(unused - main.taken_.begin());
  auto& taken =
      main.make_extra(kFirstOfUsers + place, fmt::format("{} stream {}", device, place + 1));
  *unused = true;
  return taken;
}

void DeviceContext::release_stream(DeviceContext& context) noexcept {
  std::lock_guard lock(main.mutex_);
  main.taken_[context.number - kFirstOfUsers] = false;
}

std::vector<DeviceContext*> DeviceContext::contexts() const {
  std::vector<DeviceContext*> all = {&main};
  for (auto& extra : main.extras_)
    if (auto* made = extra.load(std::memory_order_acquire)) all.push_back(made);
  return all;
}

std::vector<DeviceStream*> DeviceContext::streams() const {
  std::vector<DeviceStream*> all;
  for (auto* context : contexts()) all.push_back(context->stream.get());
  return all;
}

void DeviceContext::wait_for_streams() const {
  for (auto* each : streams()) each->wait_and_watch(each->last());
}

void DeviceContext::refuse_allocation(uint64_t bytes, const std::string& what) const {
  const MemoryStats s = memory_stats(device);
  throw OutOfMemoryError(
      fmt::format("{}cannot allocate {} bytes on {}: the device has {} in total ({} in live "
                  "tensors, {} reserved)",
                  what, bytes, device, max_bytes_, s.allocated, s.reserved));
}

void DeviceContext::add_recording(Recording* recording) {
  std::lock_guard lock(mutex_);
  recordings_.push_back(recording);
}
void DeviceContext::remove_recording(Recording* recording) {
  std::lock_guard lock(mutex_);
  std::erase(recordings_, recording);
}
void DeviceContext::close_recordings() {
  std::lock_guard lock(mutex_);
  for (auto* r : recordings_) r->close();
  if (auto* own = dynamic_cast<PluginStream*>(stream.get())) own->close_graphs();
}

namespace {

constexpr uint32_t kFastTypes = 8, kFastIndices = 64;

struct Contexts {
  ForkMutex mutex{ForkOrder::devices};
  std::vector<std::unique_ptr<DeviceContext>> all;
  // The hot path reads this without a lock. The few other devices are searched for in `all`.
  std::array<std::array<std::atomic<DeviceContext*>, kFastIndices>, kFastTypes> fast{};
};

Contexts& contexts() {
  static constinit NeverDestroyed<Contexts> all;  // static tensors may be destroyed later
  return all.get();
}

void report_unreported(const std::vector<DeviceContext*>& all) {
  auto report = [](const std::string& text) { log_message(TN_LOG_ERROR, "tenon", text); };
  for (auto* context : all)
    for (auto* stream : context->streams()) {
      while (auto failure = stream->failures.take_unreported())
        report("work failed, and nothing waited for it: " + failure->message);
      if (auto more = stream->failures.take_dropped())
        report(fmt::format("{} more failures on {} were not kept", more, context->device));
    }
}

// Returns the plugins that are not closed at exit. The devices of some can still be used: static
// objects and detached threads may compute on a device that runs on the thread of its caller until
// the process has ended. Others must not be called any more: because this process is the child of a
// fork, or because their work does not end, and each of them might wait for it.
std::vector<const plugins::Backend*> left_open(const std::vector<DeviceContext*>& all) {
  std::vector<const plugins::Backend*> left;
  for (auto* context : all)
    if (context->caller_thread || context->stream->closed() || context->backend.api().hangs())
      for (auto& planner : context->planners) left.push_back(planner.backend);
  return left;
}

// Visits the allocators that guard their memory in checked mode.
template <class F>
void for_checked(const std::vector<DeviceContext*>& all, F&& visit) {
  for (auto* context : all)
    for (auto* allocator : {context->memory.get(), context->pinned.get()})
      if (allocator && allocator->checked()) visit(*allocator);
}

// Returns whether a plugin ends the process, and says so, once. Nobody must wait then for what this
// thread does.
bool ended_by_a_plugin() {
  const auto* inside = plugins::InsidePlugin::current();
  const auto* library = inside ? nullptr : plugins::library_on_this_stack();
  if (!inside && !library) return false;
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return true;
  try {
    const std::string name = inside ? inside->name() : library->name;
    std::string where = inside ? inside->function() : "a thread of its own";
    if (inside && inside->asked()) where += " of " + inside->asked()->text();
    log_message(TN_LOG_ERROR, name,
                fmt::format("the plugin ended the process (exit) from inside {}; devices are left "
                            "as they are. It must return an error instead (plugin {})",
                            where, inside ? inside->library() : library->path));
    if (!inside && check_settings().on) checked::print_all_work();
  } catch (const std::bad_alloc&) {  // the process ends without a message
  }
  return true;
}

// Closes graphs, communicators and streams, and then the plugins, while everything that they need
// still exists. Tensors in static storage may be destroyed later, so allocators and streams stay as
// objects that do nothing. It may be called again.
void close_all() {
  if (ended_by_a_plugin()) return;
  const auto all = open_contexts();  // a copy, so that no lock is held while others are taken
  for (auto* context : all)
    for (auto* stream : context->streams())
      if (!stream->capturing()) stream->wait(stream->last());
  for_checked(all, [](Allocator& memory) { memory.look_at_all(); });
  report_unreported(all);
  const auto left = left_open(all);  // only now is it known whose work does not end
  plugins::registry().drain(left);
  for (auto* context : all) context->close_recordings();
  close_communicators();
  for_checked(all, [](Allocator& memory) { memory.checked()->close(); });
  for (auto* context : all)
    for (auto* stream : context->streams())
      if (auto* own = dynamic_cast<PluginStream*>(stream)) own->close();
  plugins::registry().close(left);
}

// Exit handlers run in reverse order, and drivers and vendor libraries register handlers of their
// own. Therefore this handler is registered again whenever there may be new ones, so that it runs
// before them.
void close_at_exit() { std::atexit(close_all); }

DeviceContext* search(Contexts& c, Device d) {
  for (auto& context : c.all)
    if (context->device == d) return context.get();
  return nullptr;
}

DeviceContext& open(Device d) {
  auto& c = contexts();
  std::lock_guard lock(c.mutex);
  if (auto* known = search(c, d)) return *known;
  check_environment();
  observe::start();
  for (auto& context :
       c.all)  // if one device of a plugin is closed, no other device of it can be used
    if (context->device.type_id() == d.type_id()) context->stream->require_open();
  // This happens once, because devices that are open already read it without a lock.
  static bool lent = false;
  if (!lent) lend_threads_to_plugins();
  lent = true;
  name_who_ends_the_process();
  auto& registry = plugins::registry();
  auto& backend = registry.load(d.type());
  auto context = std::make_unique<DeviceContext>(d, backend, registry.overlays(d.type()));
  auto* opened = context.get();
  c.all.push_back(std::move(context));
  close_at_exit();
  if (d.type_id() < kFastTypes && d.index() < kFastIndices)
    c.fast[d.type_id()][d.index()].store(opened, std::memory_order_release);
  return *opened;
}

uint64_t libraries_loaded() {
  uint64_t count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uint64_t*>(out) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

}  // namespace

void name_who_ends_the_process() {
  static constinit std::atomic<bool> done{false};
  if (!done.exchange(true)) std::atexit([] { ended_by_a_plugin(); });
}

void close_before_new_libraries() {
  static std::atomic<uint64_t> known{0};
  const uint64_t now = libraries_loaded();
  if (known.exchange(now) != now) close_at_exit();
}

DeviceContext& context_of(Device d) {
  auto& c = contexts();
  if (d.type_id() < kFastTypes && d.index() < kFastIndices)
    if (auto* context = c.fast[d.type_id()][d.index()].load(std::memory_order_acquire))
      return *context;
  return open(d);
}

std::vector<DeviceContext*> open_contexts() {
  auto& c = contexts();
  std::lock_guard lock(c.mutex);
  std::vector<DeviceContext*> all;
  for (auto& context : c.all) all.push_back(context.get());
  return all;
}

DeviceContext& scoped_context(Device device) {
  auto& main = context_of(device);
  if (main.stream->own_capture() || recording::here()) return main;
  for (auto* s = innermost_scope->streams; s; s = s->before ? s->before->streams : nullptr)
    if (s->device == device) return *s->stream;
  return main;
}

}  // namespace tenon
