#include <atomic>
#include <mutex>
#include <utility>

#include <tenon/core/base/per_thread.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/runtime/collectives.h>
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
  if (has_replicas(tensor)) impl_of(tensor).autograd->replicas->set_gradient_sums(how);
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

Tensor ReplicaSet::on(const Tensor& primary, Device device) {
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

void refresh_replicas(std::span<const Tensor> tensors, std::span<const Device> devices) {
  NoGrad guard;
  std::vector<Device> joined;
  for (auto& d : devices)
    if (d.type_id() == devices[0].type_id()) joined.push_back(d);
  auto* communicator = communicator_for(joined);
  if (!communicator) return;
  std::vector<Members> rows;
  std::vector<std::pair<const Tensor*, uint64_t>> primaries;
  for (auto& t : tensors) {
    if (!has_replicas(t) || t.device() != joined[0] || !t.is_contiguous() || t.numel() == 0)
      continue;
    const uint64_t version = t.version();
    auto members = impl_of(t).autograd->replicas->stale_on(t, std::span(joined).subspan(1));
    if (members.empty()) continue;
    members.insert(members.begin(), own_values(t));
    rows.push_back(std::move(members));
    primaries.emplace_back(&t, version);
  }
  if (rows.empty() || !broadcast(*communicator, rows)) return;
  for (size_t i = 0; i < rows.size(); ++i)
    impl_of(*primaries[i].first)
        .autograd->replicas->refreshed(primaries[i].second, std::span(rows[i]).subspan(1));
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

}  // namespace tenon
