#include <tenon/core/error.h>
#include <tenon/core/runtime/context.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/plugins/host/services.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace tenon {

DeviceContext::DeviceContext(Device d, plugins::Backend& b, const std::vector<plugins::Backend*>& overlays)
    : device(d), backend(b) {
  handle = b.open_device(d.index());
  info = b.device_info(handle);
  caller_thread = info.flags & TN_DEVICE_CALLER_THREAD;

  const tn_memory_kind* const* table = nullptr;
  size_t count = 0;
  check(b.api().memory_kinds(handle, &table, &count), d.str() + ": ");
  if (count == 0) throw DeviceError(d.str() + ": the plugin " + b.info().library + " offers no memory");
  host_visible = table[0]->flags & TN_MEMORY_HOST_VISIBLE;
  stream = caller_thread ? make_worker_stream(d.str()) : make_plugin_stream(b.api(), handle);
  memory = std::make_unique<Allocator>(*this, 0, table[0]->alignment);
  for (uint32_t i = 1; i < count; ++i)
    if (table[i]->flags & TN_MEMORY_PINNED) pinned = std::make_unique<Allocator>(*this, i, table[i]->alignment);
  plans = std::make_unique<PlanCache>(*this);

  for (auto* o : overlays) {
    try {
      planners.push_back({o, o->open_device(d.index())});
    } catch (const Error& e) {  // a faster way that is not to be had is no reason to go without the device
      plugins::log(TN_LOG_WARNING, o->name(), "left out for " + d.str() + ": " + e.what());
    }
  }
  planners.push_back({&b, handle});
}

DeviceContext::~DeviceContext() = default;

namespace {

constexpr uint32_t fast_types = 8, fast_indices = 64;

struct Contexts {
  std::mutex mutex;
  std::vector<std::unique_ptr<DeviceContext>> all;
  // What the hot path reads without a lock; the rare rest is searched in `all`.
  std::array<std::array<std::atomic<DeviceContext*>, fast_indices>, fast_types> fast{};
};

// Ends every stream, then the plugins, while everything they need still exists.
void close_all();

Contexts& contexts() {
  static auto* c = [] {
    auto* fresh = new Contexts;  // never destroyed: tensors in static storage may die after this would
    std::atexit(close_all);
    return fresh;
  }();
  return *c;
}

void close_all() {
  auto& c = contexts();
  std::lock_guard lock(c.mutex);
  for (auto& context : c.all) context->stream->wait(context->stream->last());
  plugins::registry().drain_and_close();
}

DeviceContext* search(Contexts& c, Device d) {
  for (auto& context : c.all)
    if (context->device == d) return context.get();
  return nullptr;
}

DeviceContext& open(Device d) {
  auto& c = contexts();
  std::lock_guard lock(c.mutex);
  if (auto* known = search(c, d)) return *known;
  auto& registry = plugins::registry();
  auto& backend = registry.load(d.type());
  auto context = std::make_unique<DeviceContext>(d, backend, registry.overlays(d.type()));
  auto* opened = context.get();
  c.all.push_back(std::move(context));
  if (d.type_id() < fast_types && d.index() < fast_indices) c.fast[d.type_id()][d.index()].store(opened, std::memory_order_release);
  return *opened;
}

}  // namespace

DeviceContext& context_of(Device d) {
  auto& c = contexts();
  if (d.type_id() < fast_types && d.index() < fast_indices)
    if (auto* context = c.fast[d.type_id()][d.index()].load(std::memory_order_acquire)) return *context;
  return open(d);
}

std::vector<DeviceContext*> open_contexts() {
  auto& c = contexts();
  std::lock_guard lock(c.mutex);
  std::vector<DeviceContext*> all;
  for (auto& context : c.all) all.push_back(context.get());
  return all;
}

namespace {
// TENON_CPU_DEVICES: how many logical devices `cpu` stands for; 0 where it is not set.
uint32_t cpu_devices_asked_for() {
  const char* text = std::getenv("TENON_CPU_DEVICES");
  if (!text) return 0;
  uint32_t n = 0;
  auto [end, error] = std::from_chars(text, text + std::strlen(text), n);
  if (error != std::errc() || *end || n < 1 || n > 1024)
    throw ValueError(std::string("TENON_CPU_DEVICES is \"") + text + "\"; it must be a number from 1 to 1024");
  return n;
}
}  // namespace

uint32_t device_count(std::string_view type) {
  uint32_t counted = plugins::registry().load(type).device_count();
  if (type == "cpu") counted = std::max(counted, cpu_devices_asked_for());
  uint32_t opened = 0;
  for (auto* c : open_contexts())
    if (c->device.type() == type && (c->info.flags & TN_DEVICE_LOGICAL)) opened = std::max(opened, c->device.index() + 1);
  return std::max(counted, opened);
}

std::vector<DeviceDescription> describe_devices(std::string_view type) {
  std::vector<DeviceDescription> all;
  for (uint32_t i = 0, n = device_count(type); i < n; ++i) {
    auto& c = context_of(Device(type, i));
    auto now = c.backend.device_info(c.handle);
    all.push_back({c.device, now.name, now.memory_total, now.memory_free, now.threads, (now.flags & TN_DEVICE_LOGICAL) != 0});
  }
  return all;
}

void synchronize(Device device) {
  auto& s = *context_of(device).stream;
  s.wait_and_throw(s.last());
}

void synchronize() {
  auto all = open_contexts();
  for (auto* c : all) c->stream->wait(c->stream->last());
  for (auto* c : all) c->stream->wait_and_throw(c->stream->last());
}

MemoryStats memory_stats(Device device) { return context_of(device).memory->stats(); }

void empty_cache(Device device) {
  auto& c = context_of(device);
  c.stream->wait(c.stream->last());
  c.memory->empty_cache();
  if (c.pinned) c.pinned->empty_cache();
}

}  // namespace tenon
