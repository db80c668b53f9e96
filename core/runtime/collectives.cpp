#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include <fmt/core.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/runtime/collectives.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/host_work.h>
#include <tenon/core/runtime/order.h>
#include <tenon/core/runtime/plugin_stream.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/plugins/host/checked_extensions.h>

namespace tenon {

class Communicator {
 public:
  explicit Communicator(std::span<const Device> devices);

  const std::vector<Device> devices;
  std::vector<DeviceContext*> contexts;
  std::vector<PluginStream*> streams;
  std::optional<plugins::CheckedCollectives> api;
  tn_communicator* handle = nullptr;  // null if the devices cannot be joined
  ForkMutex mutex{ForkOrder::sessions};
};

namespace {

std::string names_of(std::span<const Device> devices) {
  std::string text;
  for (auto& d : devices) text += (text.empty() ? "" : ", ") + d.str();
  return text;
}

struct Communicators {
  ForkMutex mutex{ForkOrder::sessions};
  std::map<std::vector<uint64_t>, std::unique_ptr<Communicator>>
      all;  // includes those that cannot be joined, so that each is tried only once
  bool closed = false;
};
Communicators& communicators() {
  static constinit NeverDestroyed<Communicators> all;  // the communicators are closed at exit
  return all.get();
}

std::vector<uint64_t> key_of(std::span<const Device> devices) {
  std::vector<uint64_t> key;
  for (auto& d : devices) key.push_back(uint64_t{d.type_id()} << 32 | d.index());
  return key;
}

bool may_be_joined(std::span<const Device> devices) {
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].type_id() != devices[0].type_id()) return false;
    for (size_t j = 0; j < i; ++j)
      if (devices[i] == devices[j]) return false;
  }
  return devices.size() > 1;
}

uint64_t bytes_of(const Tensor& t) { return static_cast<uint64_t>(t.numel()) * size_of(t.dtype()); }

// Returns the rows whose values were computed. All members of other rows are poisoned, so that no
// device waits for another.
std::vector<const Members*> usable_rows(Communicator& c, std::span<const Members> rows,
                                        size_t read) {
  std::vector<const Members*> usable;
  for (auto& row : rows) {
    FailureLog::Pointer failure;
    for (size_t i = 0; i < read && !failure; ++i) {
      auto& t = impl_of(row[i]);
      if (c.streams[i]->failures.any() && !c.streams[i]->failures.lost())
        failure = c.streams[i]->failures.poisoned(t.data(), bytes_of(row[i]));
    }
    if (!failure) usable.push_back(&row);
    for (size_t i = 0; i < row.size() && failure; ++i)
      c.streams[i]->failures.poison(impl_of(row[i]).data(), bytes_of(row[i]), failure);
  }
  return usable;
}

// Whether the call has the first streams of the devices, or those for sums.
enum class On { device, beside };

std::vector<DeviceContext*> contexts_of(const Communicator& c, On on) {
  std::vector<DeviceContext*> all = c.contexts;
  if (on == On::beside)
    for (auto*& context : all) context = &context->extra(Extra::sums);
  return all;
}

// Queues call(pointers, row, streams) for each row, all in one launch. It changes the members from
// `first_written` on. Returns false if that failed.
template <class F>
bool queue(Communicator& c, std::span<const Members> rows, size_t first_written, const char* what,
           On on, F&& call) {
  recording::refuse("several devices take part in a collective");
  const size_t n = c.streams.size();
  const auto by = contexts_of(c, on);
  std::vector<PluginStream*> streams_used;
  for (auto* context : by)
    streams_used.push_back(static_cast<PluginStream*>(context->stream.get()));
  std::vector<InPlaceChange> changes;
  changes.reserve(rows.size() * n);
  for (auto& row : rows)
    for (size_t i = 0; i < n; ++i) {
      Storage& storage = *impl_of(row[i]).storage;
      await_values(*by[i], storage);
      if (i >= first_written) changes.emplace_back(storage, *by[i]);
    }
  const size_t num_read = first_written ? first_written : n;
  const auto usable = usable_rows(c, rows, num_read);
  if (usable.empty()) return true;

  std::lock_guard lock(c.mutex);
  const auto began = std::chrono::steady_clock::now();
  const auto watched = [&](size_t i, observe::DeviceWork* work, bool failed) {
    uint64_t bytes = 0;
    for (auto* row : usable) bytes += bytes_of((*row)[i]);
    observe::add_collective({*by[i], what, bytes, work}, began, failed);
  };
  auto failure = PluginStream::queue_together(
      streams_used, num_read, what,
      [&](tn_stream* const* streams) {
        std::vector<void*> pointers(n);  // first, because nothing would end the group if it failed
        tn_error* error = c.api->group_begin(c.handle);
        if (error) return error;
        for (auto* row : usable) {
          for (size_t i = 0; i < n; ++i) pointers[i] = impl_of((*row)[i]).data();
          if ((error = call(pointers.data(), (*row)[0], streams))) break;
        }
        tn_error* at_end = c.api->group_end(c.handle);
        if (error && at_end) at_end->destroy(at_end);
        return error ? error : at_end;
      },
      watched);
  for (auto* row : usable)
    for (size_t i = 0; i < n; ++i) {
      auto& t = impl_of((*row)[i]);
      if (i < first_written) {
        note_read(*by[i], *t.storage, streams_used[i]->last());
        continue;
      }
      note_written(*by[i], *t.storage, streams_used[i]->last());
      if (failure)
        c.streams[i]->failures.poison(t.data(), bytes_of((*row)[i]), failure);
      else if (c.streams[i]->failures.any())
        c.streams[i]->failures.clear_poison(t.data(), bytes_of((*row)[i]));
    }
  if (sync_mode())
    for (auto* s : streams_used) s->wait_for_call(s->last());
  return !failure;
}

}  // namespace

Communicator::Communicator(std::span<const Device> joined) : devices(joined.begin(), joined.end()) {
  std::vector<tn_device*> handles;
  for (auto& d : devices) {
    auto& context = context_of(d);
    handles.push_back(context.handle);
    contexts.push_back(&context);
    if (auto* s = dynamic_cast<PluginStream*>(context.stream.get())) streams.push_back(s);
  }
  auto& backend = context_of(devices[0]).backend;
  if (streams.size() == devices.size()) api = plugins::CheckedCollectives::of(backend.api());
  std::string reason = "the plugin does not offer " TN_EXT_COLLECTIVES;
  if (api)
    if (tn_error* e = api->communicator_create(handles.data(), handles.size(), &handle))
      handle = nullptr, reason = take_failure(e).message;
  close_before_new_libraries();
  if (!handle)
    log_message(TN_LOG_INFO, "tenon",
                fmt::format("{} are not joined ({}): sums and broadcasts use copies",
                            names_of(devices), reason));
}

Communicator* communicator_for(std::span<const Device> devices) {
  if (!may_be_joined(devices)) return nullptr;
  auto& c = communicators();
  std::lock_guard lock(c.mutex);
  if (c.closed) return nullptr;
  auto& known = c.all[key_of(devices)];
  if (!known) known = std::make_unique<Communicator>(devices);
  return known->handle ? known.get() : nullptr;
}

std::vector<JoinedRows> joined_rows(std::span<const std::vector<Device>> devices_of_rows) {
  std::map<std::vector<uint64_t>, JoinedRows> groups;
  for (size_t i = 0; i < devices_of_rows.size(); ++i) {
    const std::vector<Device>& devices = devices_of_rows[i];
    const auto [group, fresh] = groups.try_emplace(key_of(devices));
    if (fresh) group->second.communicator = communicator_for(devices);
    if (group->second.communicator) group->second.rows.push_back(i);
  }
  std::vector<JoinedRows> joined;
  for (auto& [key, group] : groups)
    if (group.communicator) joined.push_back(std::move(group));
  return joined;
}

namespace {
std::vector<size_t> queue_sums(Communicator& c, std::span<const Members> rows, On on) {
  // Members of the rows that the plugin refused; nothing of them was queued.
  std::vector<const void*> refused;
  refused.reserve(rows.size());  // not in a group, which would stay open if that failed
  queue(c, rows, 0, "all_reduce", on,
        [&](void* const* members, const Tensor& t, tn_stream* const* streams) -> tn_error* {
          tn_error* error =
              c.api->all_reduce(c.handle, members, members, static_cast<uint64_t>(t.numel()),
                                static_cast<tn_dtype>(t.dtype()), TN_REDUCE_SUM, streams);
          if (!error || error->code != TN_CODE_UNSUPPORTED) return error;
          error->destroy(error);
          refused.push_back(members[0]);
          return nullptr;
        });
  std::vector<size_t> places;
  for (size_t i = 0; i < rows.size(); ++i)
    if (std::find(refused.begin(), refused.end(), impl_of(rows[i][0]).data()) != refused.end())
      places.push_back(i);
  return places;
}

std::vector<Members> rows_of(std::span<const Tensor> members, size_t of_a_row) {
  std::vector<Members> rows;
  for (size_t i = 0; i < members.size(); i += of_a_row)
    rows.emplace_back(members.begin() + static_cast<ptrdiff_t>(i),
                      members.begin() + static_cast<ptrdiff_t>(i + of_a_row));
  return rows;
}

// A program sums the same rows again.
std::vector<size_t> sum(Communicator& c, std::span<const Members> rows, On on) {
  auto* const recorder = recording::here();
  if (!recorder || rows.empty()) return queue_sums(c, rows, on);
  std::vector<Tensor> members;
  for (auto& row : rows) members.insert(members.end(), row.begin(), row.end());
  const auto refused = std::make_shared<std::vector<size_t>>();
  const auto again = [&c, on, refused](std::span<const Tensor>, std::span<const Tensor> changes,
                                       std::vector<Tensor>&) {
    *refused = queue_sums(c, rows_of(changes, c.devices.size()), on);
  };
  recorder->work({.name = "all_reduce",
                  .reads = {},
                  .changes = std::move(members),
                  .again = again,
                  .identity = reinterpret_cast<uint64_t>(&c) + (on == On::beside)});
  return *refused;
}
}  // namespace

std::vector<size_t> all_reduce(Communicator& c, std::span<const Members> rows) {
  return sum(c, rows, On::device);
}
std::vector<size_t> all_reduce_beside(Communicator& c, std::span<const Members> rows) {
  return sum(c, rows, On::beside);
}

bool broadcast(Communicator& c, std::span<const Members> rows) {
  return queue(c, rows, 1, "broadcast", On::device,
               [&](void* const* members, const Tensor& t, tn_stream* const* streams) {
                 return c.api->broadcast(c.handle, members, static_cast<uint64_t>(t.numel()),
                                         static_cast<tn_dtype>(t.dtype()), 0, streams);
               });
}

void close_communicators() {
  auto& c = communicators();
  std::lock_guard lock(c.mutex);
  c.closed = true;
  for (auto& [key, communicator] : c.all)
    if (communicator->handle && !communicator->streams[0]->closed())
      communicator->api->communicator_destroy(std::exchange(communicator->handle, nullptr));
}

}  // namespace tenon
