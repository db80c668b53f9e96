#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include <link.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/log.h>
#include <tenon/core/error.h>
#include <tenon/core/runtime/capture.h>
#include <tenon/core/runtime/collectives.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/plugin_stream.h>
#include <tenon/core/runtime/thread_pool.h>
#include <tenon/plugins/host/registry.h>

namespace tenon {

DeviceContext::DeviceContext(Device d, plugins::Backend& b,
                             const std::vector<plugins::Backend*>& overlays)
    : device(d), backend(b) {
  handle = b.open_device(d.index());
  info = b.device_info(handle);
  if (info.memory_total) most_bytes_ = std::min(most_bytes_, info.memory_total);
  caller_thread = info.flags & TN_DEVICE_CALLER_THREAD;

  const tn_memory_kind* const* table = nullptr;
  size_t count = 0;
  check(b.api().memory_kinds(handle, &table, &count), d.str() + ": ");
  if (count == 0)
    throw DeviceError(d.str() + ": the plugin " + b.info().library + " offers no memory");
  host_visible = table[0]->flags & TN_MEMORY_HOST_VISIBLE;
  stream =
      caller_thread ? make_worker_stream(d.str()) : make_plugin_stream(b.api(), handle, d.str());
  auto granularity = [](const tn_memory_kind& kind) {
    return TN_HAS(tn_memory_kind, &kind, granularity) ? kind.granularity : 0;
  };
  memory = std::make_unique<Allocator>(*this, 0, granularity(*table[0]));
  for (uint32_t i = 1; i < count; ++i)
    if (table[i]->flags & TN_MEMORY_PINNED)
      pinned =
          std::make_unique<Allocator>(*this, i, granularity(*table[i]), Allocator::Behind::uses);
  plans = make_plan_store(*this);

  for (auto* o : overlays) {
    try {
      planners.push_back({o, o->open_device(d.index())});
    } catch (const Error&
                 e) {  // a faster way that is not to be had is no reason to go without the device
      log_message(TN_LOG_WARNING, o->name(), "left out for " + d.str() + ": " + e.what());
    }
  }
  planners.push_back({&b, handle});
}

DeviceContext::~DeviceContext() = default;

void DeviceContext::refuse_allocation(uint64_t bytes, const std::string& what) const {
  const MemoryStats s = memory->stats();
  throw OutOfMemoryError(what + "cannot allocate " + std::to_string(bytes) + " bytes on " +
                         device.str() + ": the device has " + std::to_string(most_bytes_) +
                         " in all (" + std::to_string(s.allocated) + " in live tensors, " +
                         std::to_string(s.reserved) + " reserved)");
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
}

namespace {

constexpr uint32_t kFastTypes = 8, kFastIndices = 64;

struct Contexts {
  ForkMutex mutex{ForkOrder::devices};
  std::vector<std::unique_ptr<DeviceContext>> all;
  // What the hot path reads without a lock; the rare rest is searched in `all`.
  std::array<std::array<std::atomic<DeviceContext*>, kFastIndices>, kFastTypes> fast{};
};

Contexts& contexts() {
  static auto* c =
      new Contexts;  // never destroyed: tensors in static storage may die after this would
  return *c;
}

void report_untold(const std::vector<DeviceContext*>& all) {
  for (auto* context : all) {
    auto report = [](const std::string& text) { log_message(TN_LOG_ERROR, "tenon", text); };
    while (auto failure = context->stream->failures.take_untold())
      report("nobody waited for what failed: " + failure->message);
    if (auto more = context->stream->failures.take_dropped())
      report(std::to_string(more) + " more failures on " + context->device.str() +
             " were not kept");
  }
}

// Plugins whose devices can still be used, or must not be called any more. Static objects and
// threads that nobody joined may compute on a caller's-thread device until the process has ended,
// and what a child of a fork may not use it may not close.
std::vector<const plugins::Backend*> left_open(const std::vector<DeviceContext*>& all) {
  std::vector<const plugins::Backend*> left;
  for (auto* context : all)
    if (context->caller_thread || context->stream->closed())
      for (auto& planner : context->planners) left.push_back(planner.backend);
  return left;
}

// Ends graphs, communicators and streams, then the plugins, while everything they need still
// exists. Tensors in static storage may die later: allocators and streams stay as objects, with
// nothing behind them. May be called again.
void close_all() {
  const auto all = open_contexts();  // no lock is held while others are taken
  const auto left = left_open(all);
  for (auto* context : all)
    if (!context->stream->capturing()) context->stream->wait(context->stream->last());
  report_untold(all);
  plugins::registry().drain(left);
  for (auto* context : all) context->close_recordings();
  close_communicators();
  for (auto* context : all)
    if (auto* stream = dynamic_cast<PluginStream*>(context->stream.get())) stream->close();
  plugins::registry().close(left);
}

// Exit handlers run in reverse order, and a driver or a vendor's library ends in handlers of its
// own. So this one is registered once more whenever there may be new ones that it has to come
// before.
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
  for (auto& context :
       c.all)  // what keeps one device of a plugin from being used keeps the others from it
    if (context->device.type_id() == d.type_id()) context->stream->require_open();
  // Once: devices that are open already read it without a lock.
  [[maybe_unused]] static const bool lent = (lend_threads_to_plugins(), true);
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

uint32_t device_count(std::string_view type) {
  uint32_t counted = plugins::registry().load(type).device_count();
  if (type == "cpu")
    counted = std::max(counted, count_from_environment("TENON_CPU_DEVICES").value_or(0));
  uint32_t opened = 0;
  for (auto* c : open_contexts())
    if (c->device.type() == type && (c->info.flags & TN_DEVICE_LOGICAL))
      opened = std::max(opened, c->device.index() + 1);
  return std::max(counted, opened);
}

std::vector<DeviceDescription> describe_devices(std::string_view type) {
  std::vector<DeviceDescription> all;
  for (uint32_t i = 0, n = device_count(type); i < n; ++i) {
    auto& c = context_of(Device(type, i));
    c.stream->require_open();
    auto now = c.backend.device_info(c.handle);
    all.push_back({c.device, now.name, now.memory_total, now.memory_free, now.threads,
                   (now.flags & TN_DEVICE_LOGICAL) != 0, now.architecture, now.driver});
  }
  return all;
}

void synchronize(Device device) {
  auto& s = *context_of(device).stream;
  s.wait_for_all();
  s.require_device();
}

void synchronize() {
  auto all = open_contexts();
  for (auto* c : all) c->stream->wait(c->stream->last());
  for (auto* c : all) c->stream->wait_for_all();
}

MemoryStats memory_stats(Device device) { return context_of(device).memory->stats(); }

void empty_cache(Device device) {
  auto& c = context_of(device);
  c.stream->wait(c.stream->last());
  c.memory->empty_cache();
  if (c.pinned) c.pinned->empty_cache();
}

}  // namespace tenon
