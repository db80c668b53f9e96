#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/plugins/host/checked_call.h>
#include <tenon/plugins/host/checked_extensions.h>

namespace tenon::plugins {

namespace {

// Each stream of a device asks for some tables, but a fault of a table is reported only once.
void warn_once(const CheckedApi& api, const std::string& text) {
  struct Told {
    ForkMutex mutex{ForkOrder::tables};
    std::set<std::pair<std::string, std::string>> warnings;
  };
  static constinit NeverDestroyed<Told> told;
  {
    Told& all = told.get();
    std::lock_guard lock(all.mutex);
    if (!all.warnings.emplace(api.name(), text).second) return;
  }
  log_message(TN_LOG_WARNING, api.name(), text);
}

// Returns the table, or null if it is not offered or cannot be used; `needed` is the size that a
// table must have, and `functions` finds what it lacks.
template <class Table, class Missing>
const Table* usable_table(const CheckedApi& api, const char* name, size_t needed,
                          Missing&& missing) {
  const auto* table = static_cast<const Table*>(api.extension(name, 1));
  if (!table) return nullptr;
  std::string fault;
  if (table->struct_size < needed)
    fault = fmt::format(
        "says it has {} bytes, less than the {} bytes of version 1; set struct_size to its size",
        table->struct_size, needed);
  else
    for (auto& [function, is_missing] : missing(*table))
      if (is_missing) fault += fmt::format("{}{}", fault.empty() ? "lacks " : ", ", function);
  if (fault.empty()) return table;
  if (fault.starts_with("lacks")) fault += "; offer all of its functions, or no table";
  warn_once(api, fmt::format("its table {} is not used: it {}", name, fault));
  return nullptr;
}

}  // namespace

// ---- collectives ----

std::optional<CheckedCollectives> CheckedCollectives::of(const CheckedApi& api) {
  auto missing = [](const tn_collectives& t) {
    return std::vector<std::pair<const char*, bool>>{
        {"communicator_create", !t.communicator_create},
        {"communicator_destroy", !t.communicator_destroy},
        {"all_reduce", !t.all_reduce},
        {"broadcast", !t.broadcast},
        {"group_begin", !t.group_begin},
        {"group_end", !t.group_end}};
  };
  constexpr size_t needed = offsetof(tn_collectives, group_end) + sizeof(void*);
  if (auto* t = usable_table<tn_collectives>(api, TN_EXT_COLLECTIVES, needed, missing))
    return CheckedCollectives(api, *t);
  return std::nullopt;
}

tn_error* CheckedCollectives::communicator_create(tn_device* const* devices, size_t count,
                                                  tn_communicator** communicator) const noexcept {
  *communicator = nullptr;
  return api_->call(
      "communicator_create",
      [&] {
        return table_->communicator_create(api_->table().backend, devices, count, communicator);
      },
      must_give(communicator, "communicator"));
}

void CheckedCollectives::communicator_destroy(tn_communicator* communicator) const noexcept {
  api_->release("communicator_destroy", [&] { table_->communicator_destroy(communicator); });
}

tn_error* CheckedCollectives::all_reduce(tn_communicator* communicator, const void* const* inputs,
                                         void* const* outputs, uint64_t elements, tn_dtype dtype,
                                         tn_reduce_op op,
                                         tn_stream* const* streams) const noexcept {
  return api_->call("all_reduce", [&] {
    return table_->all_reduce(communicator, inputs, outputs, elements, dtype, op, streams);
  });
}

tn_error* CheckedCollectives::broadcast(tn_communicator* communicator, void* const* buffers,
                                        uint64_t elements, tn_dtype dtype, uint32_t root,
                                        tn_stream* const* streams) const noexcept {
  return api_->call("broadcast", [&] {
    return table_->broadcast(communicator, buffers, elements, dtype, root, streams);
  });
}

tn_error* CheckedCollectives::group_begin(tn_communicator* communicator) const noexcept {
  return api_->call("group_begin", [&] { return table_->group_begin(communicator); });
}

tn_error* CheckedCollectives::group_end(tn_communicator* communicator) const noexcept {
  return api_->call("group_end", [&] { return table_->group_end(communicator); });
}

// ---- stream capture ----

std::optional<CheckedCapture> CheckedCapture::of(const CheckedApi& api) {
  auto missing = [](const tn_stream_capture& t) {
    return std::vector<std::pair<const char*, bool>>{
        {"begin", !t.begin}, {"end", !t.end}, {"launch", !t.launch}, {"destroy", !t.destroy}};
  };
  constexpr size_t needed = offsetof(tn_stream_capture, destroy) + sizeof(void*);
  if (auto* t = usable_table<tn_stream_capture>(api, TN_EXT_STREAM_CAPTURE, needed, missing))
    return CheckedCapture(api, *t);
  return std::nullopt;
}

tn_error* CheckedCapture::begin(tn_stream* stream) const noexcept {
  return api_->call("a capture's begin", [&] { return table_->begin(stream); });
}

tn_error* CheckedCapture::end(tn_stream* stream, tn_graph** graph) const noexcept {
  *graph = nullptr;
  return api_->call(
      "a capture's end", [&] { return table_->end(stream, graph); }, must_give(graph, "graph"));
}

tn_error* CheckedCapture::launch(tn_graph* graph, tn_stream* stream) const noexcept {
  return api_->call("a capture's launch", [&] { return table_->launch(graph, stream); });
}

void CheckedCapture::destroy(tn_graph* graph) const noexcept {
  api_->release("a capture's destroy", [&] { table_->destroy(graph); });
}

tn_capture_flags CheckedCapture::flags() const {
  return TN_HAS(tn_stream_capture, table_, flags) ? table_->flags : 0;
}

// ---- profiling ----

std::optional<CheckedProfiling> CheckedProfiling::of(const CheckedApi& api) {
  auto missing = [](const tn_profiling& t) {
    return std::vector<std::pair<const char*, bool>>{{"elapsed", !t.elapsed}};
  };
  constexpr size_t needed = offsetof(tn_profiling, elapsed) + sizeof(void*);
  if (auto* t = usable_table<tn_profiling>(api, TN_EXT_PROFILING, needed, missing))
    return CheckedProfiling(api, *t);
  return std::nullopt;
}

tn_error* CheckedProfiling::elapsed(tn_event* begin, tn_event* end,
                                    double* milliseconds) const noexcept {
  *milliseconds = 0;
  return api_->call("elapsed", [&] { return table_->elapsed(begin, end, milliseconds); });
}

}  // namespace tenon::plugins
