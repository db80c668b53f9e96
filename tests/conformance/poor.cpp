// "poor": a device with streams that offers seven operators in f32, and no conversions, on the
// cpu's own kernels. TENON_TEST_FAULT makes one of them wrong: what checks backends has to find
// that although this device can neither convert nor add up its results.
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <dlfcn.h>

#include <tenon/plugins/sdk/backend.h>
#include <tenon/plugins/sdk/queued_plan.h>
#include <tenon/plugins/sdk/streams.h>

namespace sdk = tenon::sdk;

struct tn_stream : sdk::ThreadStream {};
struct tn_event : sdk::ThreadEvent {};

namespace {

tn_backend_api cpu;  // the cpu plugin's table
tn_device* inner = nullptr;

constexpr std::string_view kOffered[] = {
    "fill", "copy", "add", "mul", "relu", "softmax", "softmax_backward"};

bool is_asked(std::string_view fault) {
  const char* asked = std::getenv("TENON_TEST_FAULT");
  return asked && fault == asked;
}

void require_offered(const sdk::Request& request) {
  for (auto name : kOffered) {
    if (request.op() != name) continue;
    for (size_t i = 0; i < request.num_inputs(); ++i)
      if (request.has_input(i) && request.input(i).dtype != TN_F32)
        sdk::unsupported("poor computes in f32 only");
    if (request.output(0).dtype != TN_F32) sdk::unsupported("poor computes in f32 only");
    return;
  }
  sdk::unsupported("poor does not have it");
}

// What is wrong with the elements of the first output, once they are computed.
void spoil(std::string_view op, float* y, int64_t n) {
  if (op == "add" && is_asked("wrong sums"))
    for (int64_t i = 0; i < n; ++i) y[i] += 1;
  if (op == "softmax_backward" && is_asked("wrong gradient"))
    for (int64_t i = 0; i < n; ++i) y[i] *= 1.01f;
  while (op == "relu" && is_asked("never ends")) std::this_thread::sleep_for(std::chrono::hours(1));
}

tn_error* plan_create(tn_device*, const tn_op_request* asked, tn_plan** plan) {
  return sdk::guard([&] {
    const sdk::Request request(*asked);
    require_offered(request);
    tn_plan* made = nullptr;
    if (tn_error* error = cpu.plan_create(inner, asked, &made)) sdk::throw_error(error);
    std::shared_ptr<tn_plan> below(made, [](tn_plan* p) { p->destroy(p); });
    const int64_t n = sdk::is_contiguous(request.output(0)) ? sdk::numel(request.output(0)) : 0;
    tn_plan* const whole = sdk::make_plan(
        [below, n, op = std::string(request.op())](const tn_run& run) {
          if (tn_error* error = below->run(below.get(), &run)) sdk::throw_error(error);
          spoil(op, static_cast<float*>(run.outputs[0]), n);
        },
        {made->workspace_bytes, made->cost_ns});
    *plan = sdk::make_queued_plan(
        whole, *asked, [](tn_stream* stream, auto task) { stream->push(std::move(task)); });
  });
}

tn_error* device_count(tn_backend*, uint32_t* count) {
  *count = 2;
  return nullptr;
}
tn_error* device_open(tn_backend*, uint32_t index, tn_device** device) {
  static int opened[2];
  if (index >= 2) return sdk::make_error(TN_CODE_UNAVAILABLE, "there are 2 devices");
  *device = reinterpret_cast<tn_device*>(&opened[index]);
  return nullptr;
}
void device_close(tn_device*) {}
tn_error* device_info(tn_device*, tn_device_info* info) {
  sdk::fill_info(info, {.name = "poor"});
  return nullptr;
}

tn_error* init(const tn_host* host, tn_backend_api* api) {
  return sdk::guard([&] {
    void* library = dlopen(TENON_CPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw sdk::Error(TN_CODE_UNAVAILABLE, dlerror());
    auto* entry = static_cast<const tn_plugin_info*>(dlsym(library, TN_PLUGIN_ENTRY_NAME));
    cpu.struct_size = sizeof cpu;
    if (tn_error* error = entry->init(host, &cpu)) sdk::throw_error(error);
    if (tn_error* error = cpu.device_open(cpu.backend, 0, &inner)) sdk::throw_error(error);
    tn_backend_api table{};
    table.device_count = device_count;
    table.device_open = device_open;
    table.device_close = device_close;
    table.device_info = device_info;
    table.memory_kinds = sdk::host_memory_kinds;
    table.memory_alloc = sdk::host_memory_alloc;
    table.memory_free = sdk::host_memory_free;
    sdk::fill_streams(table);
    table.copy = sdk::queue_host_copy<>;
    table.supports = sdk::supports_by_creating;
    table.plan_create = plan_create;
    if (tn_error* error = sdk::fill_table(api, table)) sdk::throw_error(error);
  });
}

}  // namespace

extern "C" TN_EXPORT constexpr tn_plugin_info tn_plugin_entry =
    tenon::sdk::device_plugin("poor", "1.0", init);
