#include <algorithm>
#include <bit>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/log.h>
#include <tenon/plugins/host/backend.h>
#include <tenon/plugins/host/checked_api.h>
#include <tenon/plugins/host/checked_call.h>
#include <tenon/plugins/host/host_error.h>
#include <tenon/plugins/host/library_table.h>

namespace tenon {

bool is_inside_a_plugin() noexcept {
  return plugins::InsidePlugin::current() || plugins::library_on_this_stack();
}

}  // namespace tenon

namespace tenon::plugins {

constinit thread_local const InsidePlugin* InsidePlugin::current_ = nullptr;
constinit thread_local const char* InsidePlugin::work_ = nullptr;
constinit std::atomic<InsidePlugin::Watch (*)(InsidePlugin&) noexcept> InsidePlugin::begins_{
    nullptr};

namespace {

constexpr size_t kErrorSize = offsetof(tn_error, destroy) + sizeof(tn_error::destroy);
constexpr size_t kPlanSize = offsetof(tn_plan, cost_ns) + sizeof(tn_plan::cost_ns);
constexpr size_t kKindSize =
    offsetof(tn_memory_kind, alignment) + sizeof(tn_memory_kind::alignment);
constexpr uint64_t kLargestAlignment = uint64_t{1} << 30;
constexpr uint64_t kLargestGranularity = uint64_t{1} << 40;
constexpr uint64_t kLargestWorkspace = uint64_t{1} << 56;
// Far above what machines have. Whoever lists devices opens each of them.
constexpr uint32_t kMaxDevices = 1024;
constexpr size_t kMaxKinds = 64;
constexpr size_t kMaxDetails = 256;

// What to do about an exception.
constexpr const char* kCatch =
    "catch it in the plugin and return a tn_error, as tenon::sdk::guard does";

// Inside a catch block: what was caught.
std::string caught() {
  try {
    throw;
  } catch (const std::exception& e) {
    return fmt::format("out: {}", e.what());
  } catch (...) {
    return "of unknown type out";
  }
}

bool is_alignment(uint64_t bytes) {
  return std::has_single_bit(bytes) && bytes >= 64 && bytes <= kLargestAlignment;
}

// What is wrong with a memory kind, or nothing.
std::string fault_of(const tn_memory_kind* kind, size_t index) {
  if (!kind) return fmt::format("kind {} is NULL; *kinds must have *count kinds", index);
  if (kind->struct_size < kKindSize)
    return fmt::format(
        "kind {} says it has {} bytes, less than the {} bytes of ABI 1.0; set "
        "struct_size to sizeof(tn_memory_kind)",
        index, kind->struct_size, kKindSize);
  if (!is_alignment(kind->alignment))
    return fmt::format("kind {} has the alignment {}; it must be a power of two from 64 to 2^30",
                       index, kind->alignment);
  const bool granular = TN_HAS(tn_memory_kind, kind, granularity);
  if (granular && kind->granularity > kLargestGranularity)
    return fmt::format("kind {} has the granularity {}; it must be at most 2^40, or 0", index,
                       kind->granularity);
  return "";
}

std::string fault_of(const tn_memory_kind* const* kinds, size_t count) {
  if (!kinds || !count) return "offers no memory; give at least one kind";
  if (count > kMaxKinds)
    return fmt::format(
        "says that there are {} kinds of memory, more than the {} that a device may have; look at "
        "how *count is computed",
        count, kMaxKinds);
  std::string fault;
  for (size_t i = 0; fault.empty() && i < count; ++i) fault = fault_of(kinds[i], i);
  return fault;
}

// What is wrong with a plan, or nothing.
std::string fault_of(const tn_plan* plan) {
  if (!plan) return "reported success, but gave no plan; set *plan, or return a tn_error";
  if (plan->struct_size < kPlanSize)
    return fmt::format(
        "made a plan that says it has {} bytes, less than the {} bytes of ABI 1.0; set "
        "struct_size to sizeof(tn_plan)",
        plan->struct_size, kPlanSize);
  if (!plan->run) return "made a plan whose run is NULL; set it to the function that computes";
  if (!plan->destroy)
    return "made a plan whose destroy is NULL; set it to the function that frees the plan";
  if (plan->workspace_bytes > kLargestWorkspace)
    return fmt::format(
        "made a plan with a workspace of {} bytes, which no memory has; look at how "
        "workspace_bytes is computed",
        plan->workspace_bytes);
  return "";
}

}  // namespace

CheckedApi::CheckedApi(const BackendInfo& plugin)
    : plugin_(plugin), name_(plugin.name.c_str()), library_(plugin.library.c_str()) {}

tn_error* CheckedApi::broken(const char* function, std::string_view what,
                             tn_code code) const noexcept {
  try {
    return host_error(
        code, fmt::format("plugin {} ({}): {} {}", plugin_.name, plugin_.library, function, what));
  } catch (...) {
    return error_without_memory();
  }
}

// Where memory is short, which may be why a plugin throws, there is none for the text either.
tn_error* CheckedApi::thrown(const char* function) const noexcept {
  try {
    return broken(function, fmt::format("let an exception {}; {}", caught(), kCatch));
  } catch (...) {
    return error_without_memory();
  }
}

tn_error* CheckedApi::countless_details(const char* function, const tn_error& error) const noexcept
    try {
  tn_error without = error;
  without.num_details = 0;
  return broken(function,
                fmt::format("failed, with an error object that says it has {} details, more than "
                            "the {} that one may have; look at how num_details is computed: {}",
                            error.num_details, kMaxDetails, text_of(without)));
} catch (...) {
  return error_without_memory();
}

// What the plugin says becomes an error of the host's own, so that nobody else has to call the
// plugin to destroy it, which may go wrong as any other call. An object that is too short to have a
// `destroy` cannot be freed, nor can one without it.
tn_error* CheckedApi::readable(const char* function, tn_error* error) const noexcept {
  if (error->struct_size < kErrorSize)
    return broken(function,
                  "failed, with an error object that is too short to read; set its struct_size to "
                  "sizeof(tn_error)");
  if (!error->destroy)
    return broken(function,
                  "failed, with an error object without destroy; set it to the function that frees "
                  "the error");
  if (error->num_details && !error->details) {
    call_quietly("an error's destroy", [&] { error->destroy(error); });
    return broken(function,
                  "failed, with an error object whose details are NULL, but num_details is not 0; "
                  "set both or neither");
  }
  if (error->num_details > kMaxDetails) {
    tn_error* told = countless_details(function, *error);
    call_quietly("an error's destroy", [&] { error->destroy(error); });
    return told;
  }
  tn_error* own = copy_of(*error);
  call_quietly("an error's destroy", [&] { error->destroy(error); });
  return own;
}

tn_error* CheckedApi::checked(const char* function, const std::string& fault) const noexcept {
  return fault.empty() ? nullptr : broken(function, fault);
}

void CheckedApi::log_thrown(const char* function) const noexcept {
  tn_error* error = thrown(function);
  log_message(TN_LOG_WARNING, plugin_.name, error->message);
  error->destroy(error);
}

tn_error* CheckedApi::no_memory_to_say_how() { return error_without_memory(); }

// ---- devices ----

tn_error* CheckedApi::device_count(uint32_t* count) const noexcept {
  return call(
      "device_count", [&] { return table_.device_count(table_.backend, count); },
      [&]() -> std::string {
        if (*count <= kMaxDevices) return "";
        return fmt::format(
            "says that there are {} devices, more than the {} that one backend may have; look at "
            "how *count is computed, and offer more as logical ones (TN_DEVICE_LOGICAL)",
            *count, kMaxDevices);
      });
}

tn_error* CheckedApi::device_open(uint32_t index, tn_device** device) const noexcept {
  *device = nullptr;
  return call(
      "device_open", [&] { return table_.device_open(table_.backend, index, device); },
      must_give(device, "device"));
}

void CheckedApi::device_close(tn_device* device) const noexcept {
  call_quietly("device_close", [&] { table_.device_close(device); });
}

tn_error* CheckedApi::device_info(tn_device* device, tn_device_info* info) const noexcept {
  return call("device_info", [&] { return table_.device_info(device, info); });
}

// ---- memory ----

tn_error* CheckedApi::memory_kinds(tn_device* device, const tn_memory_kind* const** kinds,
                                   size_t* count) const noexcept {
  *kinds = nullptr;
  *count = 0;
  return call(
      "memory_kinds", [&] { return table_.memory_kinds(device, kinds, count); },
      [&] { return fault_of(*kinds, *count); });
}

tn_error* CheckedApi::memory_alloc(tn_device* device, uint32_t kind, uint64_t bytes,
                                   uint64_t alignment, void** memory) const noexcept {
  *memory = nullptr;
  bool misaligned = false;
  tn_error* error = call(
      "memory_alloc", [&] { return table_.memory_alloc(device, kind, bytes, memory); },
      [&]() -> std::string {
        if (!*memory)
          return "reported success, but gave no memory; set *memory, or return a tn_error";
        misaligned = reinterpret_cast<uintptr_t>(*memory) % alignment != 0;
        if (!misaligned) return "";
        return fmt::format(
            "gave the address {}, which is not aligned to the {} bytes of its kind; align it "
            "as tn_memory_kind.alignment says",
            *memory, alignment);
      });
  if (misaligned) memory_free(device, kind, std::exchange(*memory, nullptr), bytes);
  return error;
}

void CheckedApi::memory_free(tn_device* device, uint32_t kind, void* memory,
                             uint64_t bytes) const noexcept {
  release("memory_free", [&] { table_.memory_free(device, kind, memory, bytes); });
}

tn_error* CheckedApi::copy(tn_device* device, const tn_copy* copy,
                           tn_stream* stream) const noexcept {
  return call("copy", [&] { return table_.copy(device, copy, stream); });
}

// ---- plans ----

tn_error* CheckedApi::supports(tn_device* device, const tn_op_request* request) const noexcept {
  return call("supports", [&] { return table_.supports(device, request); });
}

tn_error* CheckedApi::plan_create(tn_device* device, const tn_op_request* request, tn_plan** plan,
                                  const Asked* asked) const noexcept {
  *plan = nullptr;
  std::string fault;
  tn_error* error = call(
      "plan_create", [&] { return table_.plan_create(device, request, plan); },
      [&] { return fault = fault_of(*plan); }, asked);
  if (!fault.empty() && *plan && (*plan)->struct_size >= kPlanSize && (*plan)->destroy)
    destroy(*plan);
  if (error) *plan = nullptr;  // what a refusal leaves there means nothing
  return error;
}

void CheckedApi::destroy(tn_plan* plan) const noexcept {
  call_quietly("a plan's destroy", [&] { plan->destroy(plan); });
}

// ---- the rest ----

const void* CheckedApi::extension(const char* name, uint32_t version) const noexcept {
  const void* found = nullptr;
  if (table_.extension)
    call_quietly("extension", [&] { found = table_.extension(table_.backend, name, version); });
  return found;
}

tn_error* CheckedApi::drain() const noexcept {
  return call("drain", [&] { return table_.drain(table_.backend); });
}

void CheckedApi::shutdown() const noexcept {
  call_quietly("shutdown", [&] { table_.shutdown(table_.backend); });
}

}  // namespace tenon::plugins
