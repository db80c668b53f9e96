// "sim": a backend shaped like a GPU for machines without one. Its devices have native streams and events (real threads) and memory
// that the host may not touch; the arithmetic is the cpu plugin's, called through the ABI. It shows that the core's path for such
// backends works, with every operator that the cpu plugin offers.
#include <dlfcn.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tenon/plugins/sdk/sdk.h>

using tenon::sdk::Error;
using tenon::sdk::guard;

namespace {

tn_backend_api cpu;  // the cpu plugin's table
constexpr uint32_t device_total = 2;
std::mutex live_mutex;
std::vector<std::pair<char*, uint64_t>> live;  // device memory, to tell it from the host's

bool is_device_memory(const void* p, uint64_t bytes) {
  std::lock_guard lock(live_mutex);
  auto* c = static_cast<const char*>(p);
  return std::any_of(live.begin(), live.end(), [&](auto& b) { return c >= b.first && c + bytes <= b.first + b.second; });
}

}  // namespace

struct tn_device {
  uint32_t index;
  tn_device* cpu;
};

struct tn_event {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, reached = 0;  // how often
  std::shared_ptr<std::string> error;
};

struct tn_stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void(std::string& error)>> queue;
  bool stopping = false;
  std::string error;  // of work since the last event; only the worker touches it
  std::thread worker{[this] { work(); }};

  void push(std::function<void(std::string&)> task) {
    {
      std::lock_guard lock(mutex);
      queue.push_back(std::move(task));
    }
    changed.notify_one();
  }
  void work() {
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || !queue.empty(); });
      if (queue.empty()) return;
      auto task = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      task(error);
    }
  }
  ~tn_stream() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_one();
    worker.join();
  }
};

namespace {

void keep_first(std::string& error, tn_error* e) {
  if (!e) return;
  if (error.empty()) error = e->message;
  e->destroy(e);
}

tn_error* device_open(tn_backend*, uint32_t index, tn_device** out) {
  return guard([&] {
    if (index >= device_total)
      throw Error(TN_CODE_UNAVAILABLE, "sim has 2 devices, index " + std::to_string(index) + " was asked for");
    auto device = std::make_unique<tn_device>(tn_device{index, nullptr});
    if (auto* e = cpu.device_open(cpu.backend, 1000 + index, &device->cpu)) {
      std::string message = e->message;
      e->destroy(e);
      throw Error(TN_CODE_UNAVAILABLE, message);
    }
    *out = device.release();
  });
}

tn_error* device_info(tn_device* device, tn_device_info* info) {
  const size_t room = info->struct_size;
  tn_device_info own{};
  own.struct_size = std::min(room, sizeof own);
  std::string name = "simulated accelerator " + std::to_string(device->index);
  std::memcpy(own.name, name.c_str(), name.size() + 1);
  std::memcpy(info, &own, own.struct_size);
  return nullptr;
}

const tn_memory_kind device_memory{sizeof(tn_memory_kind), "device", TN_MEMORY_DEVICE_LOCAL, 64};
const tn_memory_kind pinned_memory{sizeof(tn_memory_kind), "pinned", TN_MEMORY_HOST_VISIBLE | TN_MEMORY_PINNED, 64};
const tn_memory_kind* const kinds[] = {&device_memory, &pinned_memory};

tn_error* memory_alloc(tn_device* device, uint32_t kind, uint64_t bytes, void** out) {
  if (auto* e = cpu.memory_alloc(device->cpu, 0, bytes, out)) return e;
  std::lock_guard lock(live_mutex);
  if (kind == 0) live.emplace_back(static_cast<char*>(*out), bytes);
  return nullptr;
}

void memory_free(tn_device* device, uint32_t kind, void* memory, uint64_t bytes) {
  if (kind == 0) {
    std::lock_guard lock(live_mutex);
    std::erase_if(live, [&](auto& b) { return b.first == memory; });
  }
  cpu.memory_free(device->cpu, 0, memory, bytes);
}

tn_error* event_record(tn_event* event, tn_stream* stream) {
  return guard([&] {
    uint64_t number;
    {
      std::lock_guard lock(event->mutex);
      number = ++event->recorded;
      event->error.reset();
    }
    stream->push([event, number](std::string& error) {
      std::lock_guard lock(event->mutex);
      event->reached = std::max(event->reached, number);
      if (!error.empty()) event->error = std::make_shared<std::string>(std::exchange(error, {}));
      event->changed.notify_all();
    });
  });
}

tn_error* error_of(tn_event* event) { return event->error ? tenon::sdk::make_error(TN_CODE_OUT_OF_RANGE, *event->error) : nullptr; }

tn_error* event_wait(tn_event* event) {
  std::unique_lock lock(event->mutex);
  event->changed.wait(lock, [&] { return event->reached == event->recorded; });
  return error_of(event);
}

tn_error* event_query(tn_event* event, int32_t* done) {
  std::lock_guard lock(event->mutex);
  *done = event->reached == event->recorded;
  return *done ? error_of(event) : nullptr;
}

tn_error* stream_wait(tn_stream* stream, tn_event* event) {
  return guard([&] {
    uint64_t number;
    {
      std::lock_guard lock(event->mutex);
      number = event->recorded;
    }
    stream->push([event, number](std::string&) {
      std::unique_lock lock(event->mutex);
      event->changed.wait(lock, [&] { return event->reached >= number; });
    });
  });
}

tn_error* copy(tn_device*, const tn_copy* c, tn_stream* stream) {
  return guard([&] {
    if (c->src_device && !is_device_memory(c->src, c->bytes))
      throw Error(TN_CODE_INVALID_ARGUMENT, "the source is not device memory");
    if (c->dst_device && !is_device_memory(c->dst, c->bytes))
      throw Error(TN_CODE_INVALID_ARGUMENT, "the destination is not device memory");
    stream->push([dst = c->dst, src = c->src, bytes = c->bytes](std::string&) { std::memcpy(dst, src, bytes); });
  });
}

struct SimPlan {
  tn_plan head;
  tn_plan* inner;
  size_t inputs, outputs, scalars;
};

tn_error* run(tn_plan* self, const tn_run* args) {
  auto* plan = reinterpret_cast<SimPlan*>(self);
  return guard([&] {
    for (size_t i = 0; i < plan->inputs; ++i)
      if (args->inputs[i] && !is_device_memory(args->inputs[i], 1)) throw Error(TN_CODE_INTERNAL, "an input is not device memory");
    std::vector<void*> pointers(args->inputs, args->inputs + plan->inputs);
    pointers.insert(pointers.end(), args->outputs, args->outputs + plan->outputs);
    std::vector<tn_scalar> scalars(args->scalars, args->scalars + plan->scalars);
    args->stream->push([plan, pointers, scalars, workspace = args->workspace](std::string& error) {
      tn_run inner{sizeof(tn_run), pointers.data(), pointers.data() + plan->inputs, scalars.data(), workspace, nullptr};
      keep_first(error, plan->inner->run(plan->inner, &inner));
    });
  });
}

tn_error* plan_create(tn_device* device, const tn_op_request* request, tn_plan** out) {
  tn_plan* inner = nullptr;
  if (auto* e = cpu.plan_create(device->cpu, request, &inner)) return e;
  auto destroy = [](tn_plan* self) {
    auto* plan = reinterpret_cast<SimPlan*>(self);
    plan->inner->destroy(plan->inner);
    delete plan;
  };
  *out = &(new SimPlan{{sizeof(tn_plan), run, destroy, inner->workspace_bytes, inner->cost_ns},
                       inner,
                       request->num_inputs,
                       request->num_outputs,
                       request->num_scalars})
              ->head;
  return nullptr;
}

tn_error* init(const tn_host* host, tn_backend_api* api) {
  return guard([&] {
    void* library = dlopen(TENON_SIM_CPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Error(TN_CODE_UNAVAILABLE, dlerror());
    auto* entry = static_cast<const tn_plugin_info*>(dlsym(library, TN_PLUGIN_ENTRY_NAME));
    cpu.struct_size = sizeof cpu;
    if (auto* e = entry->init(host, &cpu)) {
      e->destroy(e);
      throw Error(TN_CODE_UNAVAILABLE, "the cpu plugin does not start");
    }
    tn_backend_api own{};
    own.struct_size = sizeof own;
    own.device_count = [](tn_backend*, uint32_t* count) -> tn_error* { return *count = device_total, nullptr; };
    own.device_open = device_open;
    own.device_close = [](tn_device* device) {
      cpu.device_close(device->cpu);
      delete device;
    };
    own.device_info = device_info;
    own.memory_kinds = [](tn_device*, const tn_memory_kind* const** k, size_t* n) -> tn_error* {
      return *k = kinds, *n = 2, nullptr;
    };
    own.memory_alloc = memory_alloc;
    own.memory_free = memory_free;
    own.stream_create = [](tn_device*, tn_stream** s) { return guard([&] { *s = new tn_stream; }); };
    own.stream_destroy = [](tn_stream* s) { delete s; };
    own.event_create = [](tn_device*, tn_event** e) { return guard([&] { *e = new tn_event; }); };
    own.event_destroy = [](tn_event* e) { delete e; };
    own.event_record = event_record;
    own.stream_wait = stream_wait;
    own.event_query = event_query;
    own.event_wait = event_wait;
    own.copy = copy;
    own.supports = [](tn_device* d, const tn_op_request* r) { return cpu.supports(d->cpu, r); };
    own.plan_create = plan_create;
    *api = own;
  });
}

}  // namespace

extern "C" TN_EXPORT const tn_plugin_info tn_plugin_entry = {
    sizeof(tn_plugin_info), TN_PLUGIN_MAGIC, TN_ABI_MAJOR, TN_ABI_MINOR, "sim", "1.0", TN_PLUGIN_DEVICE, nullptr, 0, init};
