// "sim": a backend shaped like a GPU for machines without one. Its devices have native streams and
// events (real threads) and memory that the host may not touch; the arithmetic is the cpu plugin's,
// called through the ABI. It shows that the core's path for such backends works, with every
// operator that the cpu plugin offers, with collectives and stream capture. faults.h: accidents on
// order.
#include "sim.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <latch>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <unistd.h>

#include <tenon/plugins/sdk/backend.h>

using tenon::sdk::Error;
using tenon::sdk::guard;

namespace tenon::sim {

LiveCounters counters;

namespace {

tn_backend_api cpu;  // the cpu plugin's table
constexpr uint32_t kDeviceTotal = 3;
std::mutex live_mutex;
// Memory by kind, to tell a device's and pinned memory from other.
std::vector<std::pair<char*, uint64_t>> live[2];

bool is_memory_of_kind(uint32_t kind, const void* p, uint64_t bytes) {
  std::lock_guard lock(live_mutex);
  auto* c = static_cast<const char*>(p);
  return std::any_of(live[kind].begin(), live[kind].end(),
                     [&](auto& b) { return c >= b.first && c + bytes <= b.first + b.second; });
}

}  // namespace

bool is_device_memory(const void* p, uint64_t bytes) { return is_memory_of_kind(0, p, bytes); }

namespace {

tn_error* device_open(tn_backend*, uint32_t index, tn_device** out) {
  return guard([&] {
    if (index >= kDeviceTotal)
      throw Error(TN_CODE_UNAVAILABLE, "sim has " + std::to_string(kDeviceTotal) +
                                           " devices, index " + std::to_string(index) +
                                           " was asked for");
    auto device = std::make_unique<tn_device>();
    device->index = index;
    if (auto* e = cpu.device_open(cpu.backend, 1000 + index, &device->cpu)) {
      std::string message = e->message;
      e->destroy(e);
      throw Error(TN_CODE_UNAVAILABLE, message);
    }
    *out = device.release();
  });
}

tn_error* device_info(tn_device* device, tn_device_info* info) {
  constexpr uint64_t kMemory = uint64_t{64} << 30;
  return guard([&] {
    const auto name = sdk::text("simulated accelerator {}", device->index);
    sdk::fill_info(info, {.name = name,
                          .memory_total = kMemory,
                          .memory_free = kMemory,
                          .architecture = "sim_1",
                          .driver = "simulated driver 1.0"});
  });
}

const tn_memory_kind device_memory{sizeof(tn_memory_kind), "device", TN_MEMORY_DEVICE_LOCAL, 64,
                                   1 << 20};
const tn_memory_kind pinned_memory{sizeof(tn_memory_kind), "pinned",
                                   TN_MEMORY_HOST_VISIBLE | TN_MEMORY_PINNED, 64, 0};
const tn_memory_kind* const kinds[] = {&device_memory, &pinned_memory};

tn_error* memory_alloc(tn_device* device, uint32_t kind, uint64_t bytes, void** out) {
  if (device->lost) return guard([&] { require_working(device); });
  if (auto* e = cpu.memory_alloc(device->cpu, 0, bytes, out)) return e;
  ++counters.allocations;
  std::lock_guard lock(live_mutex);
  live[kind].emplace_back(static_cast<char*>(*out), bytes);
  return nullptr;
}

void memory_free(tn_device* device, uint32_t kind, void* memory, uint64_t bytes) {
  {
    std::lock_guard lock(live_mutex);
    std::erase_if(live[kind], [&](auto& b) { return b.first == memory; });
  }
  cpu.memory_free(device->cpu, 0, memory, bytes);
}

// As a GPU does it: only pinned memory of the host is copied from and to while the caller goes on.
tn_error* copy(tn_device* device, const tn_copy* c, tn_stream* stream) {
  return guard([&] {
    require_working(device);
    require_not_capturing(stream, "a copy");
    if (c->src_device && !is_device_memory(c->src, c->bytes))
      throw Error(TN_CODE_INVALID_ARGUMENT, "the source is not device memory");
    if (c->dst_device && !is_device_memory(c->dst, c->bytes))
      throw Error(TN_CODE_INVALID_ARGUMENT, "the destination is not device memory");
    ++counters.copies;
    const void* on_host = !c->src_device ? c->src : !c->dst_device ? c->dst : nullptr;
    auto done = on_host && !is_memory_of_kind(1, on_host, c->bytes)
                    ? std::make_shared<std::latch>(1)
                    : nullptr;
    stream->push([dst = c->dst, src = c->src, bytes = c->bytes, done] {
      std::memcpy(dst, src, bytes);
      if (done) done->count_down();
    });
    if (!done) return;
    ++counters.blocking_copies;
    done->wait();
  });
}

struct SimPlan {
  tn_plan head;
  tn_plan* inner;
  sdk::RunCounts counts;
  std::string op;
  std::vector<uint64_t> bytes;  // of the outputs that it makes; 0 of those with gaps
};

// As a kernel does that meets a bad index: what it spoils is zero, never a value from elsewhere.
void spoil(const SimPlan& plan, void* const* outputs) {
  for (size_t i = 0; i < plan.counts.outputs; ++i)
    if (plan.bytes[i]) std::memset(outputs[i], 0, plan.bytes[i]);
}

// What a fill with one of the values of faults.h does when it runs; the plan does nothing after
// that.
bool have_accident(const SimPlan& plan, const tn_run& run, tn_device* device) {
  if (plan.op != "fill" || run.num_scalars == 0) return false;
  const double value = run.scalars[0].f;
  if (value == kFailsLate || value == kFailsUnnamed)
    throw Error(TN_CODE_OUT_OF_RANGE, "an accident",
                value == kFailsLate ? sdk::Details{{"op", plan.op}} : sdk::Details{});
  if (value == kWaitsAtGate) pass_gate();
  if (value == kLosesDevice) device->lost = true;
  return value == kLosesDevice;
}

// A host of ABI 1.2 says how many there are, and has to say what it said when it planned.
void require_counts(const SimPlan& plan, const tn_run& run) {
  if (TN_HAS(tn_run, &run, num_scalars) &&
      (run.num_inputs != plan.counts.inputs || run.num_outputs != plan.counts.outputs ||
       run.num_scalars != plan.counts.scalars))
    throw Error(TN_CODE_INTERNAL, "the counts of the run are not those of the request");
}

tn_error* run(tn_plan* self, const tn_run* args) {
  auto* plan = reinterpret_cast<SimPlan*>(self);
  auto* stream = args->stream;
  return guard([&] {
    require_working(stream->device);
    require_counts(*plan, *args);
    for (size_t i = 0; i < plan->counts.inputs; ++i)
      if (args->inputs[i] && !is_device_memory(args->inputs[i], 1))
        throw Error(TN_CODE_INTERNAL, "an input is not device memory");
    if (plan->op == "fill" && plan->counts.scalars > 0 && args->scalars[0].f == kFailsAtOnce) {
      if (stream->capturing) stream->capture_error = "the recording is broken";
      throw Error(TN_CODE_INTERNAL, "an accident at once");
    }
    if (stream->capturing && plan->op == "fill" && plan->counts.scalars > 0 &&
        args->scalars[0].f == kFailsRecorded)
      throw Error(TN_CODE_INTERNAL, "this cannot be recorded");
    stream->push([plan, device = stream->device, owned = sdk::OwnedRun(*args, plan->counts)] {
      const tn_run inner = owned.args();
      if (device->lost || have_accident(*plan, inner, device)) return;
      if (tn_error* e = plan->inner->run(plan->inner, &inner)) {
        spoil(*plan, inner.outputs);
        sdk::throw_error(e, {{"op", plan->op}});
      }
    });
  });
}

tn_error* plan_create(tn_device* device, const tn_op_request* request, tn_plan** plan) {
  tn_plan* inner = nullptr;
  if (auto* e = cpu.plan_create(device->cpu, request, &inner)) return e;
  auto destroy = [](tn_plan* self) {
    auto* own = reinterpret_cast<SimPlan*>(self);
    own->inner->destroy(own->inner);
    delete own;
  };
  std::vector<uint64_t> bytes(request->num_outputs, 0);
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto* made = request->aliases && request->aliases[i] >= 0 ? nullptr : request->outputs[i];
    if (!made) continue;
    int64_t elements = 1;
    bool gaps = false;
    for (uint32_t d = made->rank; d-- > 0; elements *= made->shape[d])
      gaps |= made->shape[d] > 1 && made->strides[d] != elements;
    if (!gaps) bytes[i] = static_cast<uint64_t>(elements) * sdk::dtype_size(made->dtype);
  }
  *plan = &(new SimPlan{{sizeof(tn_plan), run, destroy, inner->workspace_bytes, inner->cost_ns, 0},
                        inner,
                        sdk::RunCounts::of(*request),
                        request->op,
                        std::move(bytes)})
               ->head;
  return nullptr;
}

const void* extension(tn_backend*, const char* name, uint32_t version) {
  thread_local Counters seen;
  const std::string_view wanted = name;
  if (version != 1) return nullptr;
  if (wanted == TN_EXT_COLLECTIVES) return &collectives;
  if (wanted == TN_EXT_STREAM_CAPTURE) return &stream_capture;
  if (wanted == TN_EXT_PROFILING) return sdk::event_times<>(nullptr, name, version);
  if (wanted == "sim.gate") return &gate;
  if (wanted != "sim.counters") return nullptr;
  seen = {counters.joint_launches, counters.joint_calls, counters.copies,
          counters.graph_launches, counters.objects,     counters.blocking_copies,
          counters.allocations};
  return &seen;
}

// Why the cpu plugin's library does not open. Where the linker has no memory for the name of a file
// that is there, it says that there is none, so that is looked up.
Error no_library() {
  const char* text = dlerror();
  const std::string reason = text ? text : "the dynamic linker gives no reason",
                    path = TENON_SIM_CPU_LIBRARY;
  const bool in_truth_there = reason.starts_with(path + ": cannot open shared object file") &&
                              access(path.c_str(), R_OK) == 0;
  const bool short_of_memory = in_truth_there || reason == "out of memory" ||
                               reason.ends_with(std::strerror(ENOMEM)) ||
                               reason.find(": cannot create ") != reason.npos ||
                               reason.find(": cannot allocate ") != reason.npos;
  return Error(short_of_memory ? TN_CODE_OUT_OF_MEMORY : TN_CODE_UNAVAILABLE, reason);
}

tn_error* init(const tn_host* host, tn_backend_api* api) {
  return guard([&] {
    void* library = dlopen(TENON_SIM_CPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw no_library();
    auto* entry = static_cast<const tn_plugin_info*>(dlsym(library, TN_PLUGIN_ENTRY_NAME));
    cpu.struct_size = sizeof cpu;
    if (auto* e = entry->init(host, &cpu)) {
      const tn_code code = e->code;
      e->destroy(e);
      throw Error(code, "the cpu plugin does not start");
    }
    tn_backend_api own{};
    own.device_count = [](tn_backend*, uint32_t* count) -> tn_error* {
      return *count = kDeviceTotal, nullptr;
    };
    own.device_open = device_open;
    own.device_close = [](tn_device* device) {
      // What belongs to a device goes before it.
      if (counters.objects)
        std::fprintf(stderr, "sim: %lu objects are left at device_close\n",
                     static_cast<unsigned long>(counters.objects));
      cpu.device_close(device->cpu);
      delete device;
    };
    own.device_info = device_info;
    own.memory_kinds = [](tn_device*, const tn_memory_kind* const** k, size_t* n) -> tn_error* {
      return *k = kinds, *n = std::size(kinds), nullptr;
    };
    own.memory_alloc = memory_alloc;
    own.memory_free = memory_free;
    fill_streams(own);
    own.copy = copy;
    own.supports = [](tn_device* d, const tn_op_request* r) { return cpu.supports(d->cpu, r); };
    own.plan_create = plan_create;
    own.extension = extension;
    if (auto* e = sdk::fill_table(api, own)) sdk::throw_error(e);
  });
}

}  // namespace

}  // namespace tenon::sim

extern "C" TN_EXPORT constexpr tn_plugin_info tn_plugin_entry =
    tenon::sdk::device_plugin("sim", "1.0", tenon::sim::init);
