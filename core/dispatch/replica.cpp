#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include <tenon/core/base/per_thread.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/runtime/collectives.h>
#include <tenon/core/runtime/host_work.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {
thread_local uint64_t current_scope TENON_FAST_TLS = 0;
std::atomic<uint64_t> scopes{0};
constinit std::atomic<uint64_t> sets{0};  // that exist

// The values of a parameter or buffer where it lives, which detach() is not inside a part of a call
// on several devices, without its replicas: an operator that gets them does not come back here.
Tensor own_values(const Tensor& primary) {
  const TensorImpl& t = impl_of(primary);
  return Tensor(Ref<TensorImpl>::adopt(
      new TensorImpl(t.dtype, t.device, t.shape, t.strides, t.offset, t.storage)));
}
}  // namespace

ReplicaScope::ReplicaScope() noexcept
    : outer_(std::exchange(current_scope, scopes.fetch_add(1) + 1)) {}
ReplicaScope::~ReplicaScope() { current_scope = outer_; }
bool ReplicaScope::active() { return current_scope != 0; }
uint64_t ReplicaScope::current() { return current_scope; }
void ReplicaScope::continue_in(uint64_t scope) { current_scope = scope; }

void allow_replicas(const Tensor& tensor) {
  auto& meta = checked_impl(tensor, "allow_replicas").meta();
  if (!meta.replicas) meta.replicas = std::make_shared<ReplicaSet>();
}

void set_gradient_sums(const Tensor& tensor, GradientSums how) {
  const std::pair<Tensor, GradientSums> one[] = {{tensor, how}};
  set_gradient_sums(one);
}

void set_gradient_sums(std::span<const std::pair<Tensor, GradientSums>> parameters) {
  std::vector<std::pair<std::shared_ptr<ReplicaSet>, GradientSums>> all;
  uint64_t identity = 0;
  for (auto& [tensor, how] : parameters) {
    if (!has_replicas(tensor)) continue;
    all.emplace_back(impl_of(tensor).autograd->replicas, how);
    identity = identity * 31 + how.bucket_bytes * 2 + how.deferred;
  }
  const auto set = [all = std::move(all)](std::span<const Tensor>, std::span<const Tensor>,
                                          std::vector<Tensor>&) {
    for (auto& [replicas, how] : all) replicas->set_gradient_sums(how);
  };
  std::vector<Tensor> none;
  auto* const recorder = recording::here();
  if (!recorder) return set({}, {}, none);
  recorder->work({.name = "choice of how gradients are summed",
                  .reads = {},
                  .changes = {},
                  .again = set,
                  .identity = identity,
                  .queues = false});
}

bool defers_gradient_sums(const Tensor& tensor) {
  return has_replicas(tensor) && impl_of(tensor).autograd->replicas->gradient_sums().deferred;
}

bool replicas_exist() { return sets.load(std::memory_order_relaxed) != 0; }

ReplicaSet::ReplicaSet() { sets.fetch_add(1, std::memory_order_relaxed); }
ReplicaSet::~ReplicaSet() { sets.fetch_sub(1, std::memory_order_relaxed); }

bool has_replicas(const Tensor& tensor) {
  auto& t = checked_impl(tensor, "has_replicas");
  return t.autograd && t.autograd->replicas;
}

ReplicaSet::Replica* ReplicaSet::find(Device device) {
  for (auto& r : replicas_)
    if (r.device == device) return &r;
  return nullptr;
}

std::vector<Tensor> ReplicaSet::stale_on(const Tensor& primary, std::span<const Device> devices) {
  std::lock_guard lock(mutex_);
  bool stale = false;
  for (auto& d : devices) {
    auto* r = find(d);
    stale |= !r || !r->is_current(primary);
  }
  std::vector<Tensor> all;
  if (!stale) return all;
  for (auto& d : devices) {
    if (!find(d))
      replicas_.push_back(
          {d, allocate_tensor(primary.shape(), primary.dtype(), d), ~uint64_t{0}, 0});
    all.push_back(find(d)->values);
  }
  return all;
}

void ReplicaSet::refreshed(uint64_t version, std::span<const Tensor> values) {
  std::lock_guard lock(mutex_);
  for (auto& v : values)
    if (auto* r = find(v.device()); r && r->values.is_same(v)) {
      r->version = version;
      r->own_version = v.version();
    }
}

Tensor ReplicaSet::known_on(Device device) {
  std::lock_guard lock(mutex_);
  auto* r = find(device);
  return r ? r->values : Tensor();
}

bool ReplicaSet::was_read_on(Device device) {
  std::lock_guard lock(mutex_);
  auto* r = find(device);
  return r && current_scope && r->scope == current_scope;
}

// A program asks again in each call whether the replica is out of date.
Tensor ReplicaSet::on(const Tensor& primary, Device device) {
  auto* const recorder = recording::here();
  if (!recorder) [[likely]]
    return bring(primary, device);
  const Tensor known = known_on(device);
  if (!known.defined()) {
    recorder->refuse("a replica of a parameter or buffer is made, as only a first call does");
    return bring(primary, device);
  }
  if (was_read_on(device)) return known;
  const auto again = [set = shared_from_this(), device, scope = current_scope](
                         std::span<const Tensor> reads, std::span<const Tensor>,
                         std::vector<Tensor>&) {
    if (current_scope == scope) return void(set->bring(reads[0], device));
    const ReplicaScope later;  // in a replay, that one is over
    set->bring(reads[0], device);
  };
  recorder->work({.name = "refresh of a replica",
                  .reads = {own_values(primary)},
                  .changes = {known},
                  .again = again,
                  .identity = reinterpret_cast<uint64_t>(this),
                  .settles = true});
  return known;
}

Tensor ReplicaSet::bring(const Tensor& primary, Device device) {
  NoGrad guard;
  auto source = [&] { return own_values(primary).contiguous(); };
  std::lock_guard lock(mutex_);
  // The version is read before the values, so that a change by another thread in between makes the
  // replica out of date.
  const uint64_t version = primary.version();
  if (auto* r = find(device)) {
    const bool read_in_scope = current_scope && r->scope == current_scope;
    if (!read_in_scope && !r->is_current(primary)) {
      copy_between_devices(source(), r->values);
      r->version = version;
      r->own_version = r->values.version();
    }
    r->scope = current_scope;
    return r->values;
  }
  Tensor values = copy_to_device(source(), device);
  replicas_.push_back({device, values, version, values.version(), current_scope});
  return replicas_.back().values;
}

namespace {

using Sets = std::vector<std::shared_ptr<ReplicaSet>>;

// Refreshes what is out of date of the replicas of `primaries` on the devices from the second on.
void broadcast_stale(Communicator& communicator, std::span<const Tensor> primaries,
                     const Sets& sets, std::span<const Device> devices) {
  NoGrad guard;
  std::vector<Members> rows;
  std::vector<std::pair<size_t, uint64_t>> refreshed;  // their places and versions
  for (size_t i = 0; i < primaries.size(); ++i) {
    const uint64_t version = primaries[i].version();
    auto members = sets[i]->stale_on(primaries[i], devices.subspan(1));
    if (members.empty()) continue;
    members.insert(members.begin(), own_values(primaries[i]));
    rows.push_back(std::move(members));
    refreshed.emplace_back(i, version);
  }
  if (rows.empty() || !broadcast(communicator, rows)) return;
  for (size_t i = 0; i < rows.size(); ++i)
    sets[refreshed[i].first]->refreshed(refreshed[i].second, std::span(rows[i]).subspan(1));
}

// All replicas on these devices; none if one is missing.
std::vector<Tensor> all_replicas(const Sets& sets, std::span<const Device> devices) {
  std::vector<Tensor> all;
  for (auto& set : sets)
    for (auto& device : devices) {
      all.push_back(set->known_on(device));
      if (!all.back().defined()) return {};
    }
  return all;
}

}  // namespace

void refresh_replicas(std::span<const Tensor> tensors, std::span<const Device> devices) {
  std::vector<Device> joined;
  for (auto& d : devices)
    if (d.type_id() == devices[0].type_id()) joined.push_back(d);
  auto* communicator = communicator_for(joined);
  if (!communicator) return;
  std::vector<Tensor> primaries;
  Sets sets;
  for (auto& t : tensors) {
    if (!has_replicas(t) || t.device() != joined[0] || !t.is_contiguous() || t.numel() == 0)
      continue;
    primaries.push_back(own_values(t));
    sets.push_back(impl_of(t).autograd->replicas);
  }
  auto* const recorder = recording::here();
  auto replicas =
      recorder ? all_replicas(sets, std::span(joined).subspan(1)) : std::vector<Tensor>();
  if (replicas.empty()) return broadcast_stale(*communicator, primaries, sets, joined);
  const auto again = [=, sets = std::move(sets)](std::span<const Tensor> reads,
                                                 std::span<const Tensor>, std::vector<Tensor>&) {
    broadcast_stale(*communicator, reads, sets, joined);
  };
  recorder->work({.name = "broadcast of parameters",
                  .reads = std::move(primaries),
                  .changes = std::move(replicas),
                  .again = again,
                  .identity = reinterpret_cast<uint64_t>(communicator)});
}

Device device_read_on(const Tensor& tensor) {
  auto& t = impl_of(tensor);
  return t.autograd && t.autograd->replicas && device_guard_active() ? default_device() : t.device;
}

Device device_of_call(std::span<const Tensor* const> inputs) {
  const Tensor* movable = nullptr;
  for (auto* input : inputs) {
    if (!input) continue;
    auto& t = impl_of(*input);
    if (!t.autograd || !t.autograd->replicas) return t.device;
    if (!movable) movable = input;
  }
  if (movable && !device_guard_active()) return impl_of(*movable).device;
  return default_device();
}

bool changes_replica(const Tensor& tensor) {
  return current_scope && device_guard_active() && has_replicas(tensor) &&
         tensor.device() != default_device();
}

Tensor replica_to_change(const Tensor& tensor) { return resolve_replica(tensor, default_device()); }

Tensor ReplicaSet::changed_on(Device device) {
  std::lock_guard lock(mutex_);
  auto* r = find(device);
  const bool changed = r && r->scope == current_scope && r->own_version != r->values.version();
  return changed ? r->values : Tensor();
}

Tensor changed_replica(const Tensor& tensor) {
  return changes_replica(tensor) ? impl_of(tensor).autograd->replicas->changed_on(default_device())
                                 : Tensor();
}

Tensor resolve_replica(const Tensor& tensor, Device device) {
  auto& t = impl_of(tensor);
  if (t.device == device || !t.autograd || !t.autograd->replicas) return tensor;
  return t.autograd->replicas->on(tensor, device);
}

bool execute_on_guard_device(const Call& call, std::vector<Tensor>& outputs) {
  const auto may_be_elsewhere = [](const Tensor* t) {
    return t && impl_of(*t).autograd && impl_of(*t).autograd->replicas;
  };
  if (!device_guard_active() ||
      std::none_of(call.inputs.begin(), call.inputs.end(), may_be_elsewhere))
    return false;
  std::vector<Tensor> owned(call.inputs.size());
  std::vector<const Tensor*> used(call.inputs.size());
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.has(i)) used[i] = &(owned[i] = resolve_replica(call.in(i), default_device()));
  call.op.execute(call.with_inputs(used), outputs);
  return true;
}

}  // namespace tenon
