// Helpers for what every backend's table needs: the end of `init`, device_info, memory and
// copies of a device that computes in the host's memory, and plans of the kernels that registered
// themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <tenon/plugins/sdk/sdk.h>

#pragma GCC visibility push(hidden)

namespace tenon::sdk {

// Hands `table` over at the end of an `init`, as much of it as the host has room for, and sets
// struct_size to that. Returns an error for a host that has less room than ABI 1.0 gives, and for a
// plugin in which two kernels are registered for one operator.
inline tn_error* fill_table(tn_backend_api* api, const tn_backend_api& table) noexcept {
  return guard([&] {
    if (api->struct_size < TN_BACKEND_API_SIZE_1_0)
      unsupported("the host's table has {} bytes, ABI 1.0 needs {}", api->struct_size,
                  TN_BACKEND_API_SIZE_1_0);
    if (const char* op = Kernel::registered_twice())
      throw Error(
          TN_CODE_INTERNAL,
          text("two kernels are registered for operator \"{}\"; which of them is used would "
               "depend on the order in which they were linked",
               op));
    const size_t room = std::min(api->struct_size, sizeof table);
    std::memcpy(static_cast<void*>(api), &table, room);
    api->struct_size = room;
  });
}

// Holds what a device says about itself; see tn_device_info. Sizes of memory are in bytes, and 0
// where they are not known.
struct DeviceFacts {
  tn_device_flags flags = 0;
  std::string_view name;
  uint64_t memory_total = 0, memory_free = 0;
  uint32_t threads = 0;
  std::string_view architecture = {}, driver = {};
};

namespace detail {
// Writes as much of `text` as fits, cut between two characters of UTF-8 and ended by a NUL.
template <size_t N>
void put_text(char (&to)[N], std::string_view text) {
  size_t size = std::min(text.size(), N - 1);
  if (size < text.size())
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  std::copy_n(text.data(), size, to);
  to[size] = '\0';
}
}  // namespace detail

// Answers device_info. It writes no more than info->struct_size, the room that the caller has, and
// sets that to what it wrote.
inline void fill_info(tn_device_info* info, const DeviceFacts& facts) noexcept {
  tn_device_info own{};
  own.struct_size = std::min(info->struct_size, sizeof own);
  own.flags = facts.flags;
  detail::put_text(own.name, facts.name);
  own.memory_total = facts.memory_total;
  own.memory_free = facts.memory_free;
  own.threads = facts.threads;
  detail::put_text(own.architecture, facts.architecture);
  detail::put_text(own.driver, facts.driver);
  std::memcpy(static_cast<void*>(info), &own, own.struct_size);
}

// ---- A device whose memory is the host's: functions for its table ------------------------------

// Offers one kind of memory, that of the host, aligned to 64 bytes.
inline tn_error* host_memory_kinds(tn_device*, const tn_memory_kind* const** kinds,
                                   size_t* count) noexcept {
  static constexpr tn_memory_kind kHost{sizeof(tn_memory_kind), "host",
                                        TN_MEMORY_HOST_VISIBLE | TN_MEMORY_DEVICE_LOCAL, 64, 0};
  static constexpr const tn_memory_kind* kTable[] = {&kHost};
  *kinds = kTable;
  *count = 1;
  return nullptr;
}

// Allocates memory of the host, aligned to 64 bytes. Returns TN_CODE_OUT_OF_MEMORY if there is
// none, and TN_CODE_INVALID_ARGUMENT for another kind than 0.
inline tn_error* host_memory_alloc(tn_device*, uint32_t kind, uint64_t bytes,
                                   void** memory) noexcept {
  return guard([&] {
    if (kind != 0) throw Error(TN_CODE_INVALID_ARGUMENT, text("there is no memory kind {}", kind));
    void* made = bytes <= SIZE_MAX - 63 ? std::aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr;
    if (!made)
      throw Error(TN_CODE_OUT_OF_MEMORY, text("cannot allocate {} bytes", bytes),
                  {{"bytes", std::to_string(bytes)}});
    *memory = made;
  });
}

// Frees what host_memory_alloc has allocated.
inline void host_memory_free(tn_device*, uint32_t, void* memory, uint64_t) noexcept {
  std::free(memory);
}

// Copies on the thread that calls it, for devices without streams. Those with the streams of
// sdk/streams.h queue the copy instead.
inline tn_error* host_copy(tn_device*, const tn_copy* copy, tn_stream*) noexcept {
  if (copy->bytes > 0) std::memcpy(copy->dst, copy->src, copy->bytes);
  return nullptr;
}

// ---- Plans
// ---------------------------------------------------------------------------------------

// The plan_create of a plugin whose kernels register themselves.
inline tn_error* plan_of_kernels(tn_device* device, const tn_op_request* request,
                                 tn_plan** plan) noexcept {
  return guard([&] { *plan = create_plan(device, *request); });
}

// ---- An overlay of kernels that register themselves ------------------------------------------

// Fills the table of an overlay that keeps nothing for each device, whose index is that of the
// device below, at the end of its `init`. Its kernels register themselves.
inline tn_error* fill_overlay(tn_backend_api* api) noexcept {
  static char kDevice;  // never read; a device is a pointer other than null
  tn_backend_api table{};
  table.device_open = [](tn_backend*, uint32_t, tn_device** device) noexcept -> tn_error* {
    *device = reinterpret_cast<tn_device*>(&kDevice);
    return nullptr;
  };
  table.device_close = [](tn_device*) noexcept {};
  table.supports = supports_by_creating;
  table.plan_create = plan_of_kernels;
  return fill_table(api, table);
}

// Returns what `tn_plugin_entry` of a plugin with devices is: `extern "C" TN_EXPORT constexpr
// tn_plugin_info tn_plugin_entry = device_plugin("name", "1.0", init);`.
constexpr tn_plugin_info device_plugin(const char* name, const char* version,
                                       decltype(tn_plugin_info::init) init) {
  return {sizeof(tn_plugin_info),
          TN_PLUGIN_MAGIC,
          TN_ABI_MAJOR,
          TN_ABI_MINOR,
          name,
          version,
          TN_PLUGIN_DEVICE,
          nullptr,
          0,
          init};
}
// Returns the same of an overlay over the backend `over`. One of a higher priority is asked before
// the others over the same backend.
constexpr tn_plugin_info overlay_plugin(const char* name, const char* version, const char* over,
                                        int32_t priority, decltype(tn_plugin_info::init) init) {
  return {sizeof(tn_plugin_info),
          TN_PLUGIN_MAGIC,
          TN_ABI_MAJOR,
          TN_ABI_MINOR,
          name,
          version,
          TN_PLUGIN_OVERLAY,
          over,
          priority,
          init};
}

}  // namespace tenon::sdk

#pragma GCC visibility pop
