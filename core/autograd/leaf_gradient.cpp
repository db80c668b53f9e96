#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <tenon/core/autograd/leaf_gradient.h>
#include <tenon/core/base/environment.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/beside.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/accumulate.h>
#include <tenon/core/runtime/collectives.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/host_work.h>

namespace tenon {

Tensor add_up(const Tensor& sum, Tensor more) {
  return sum.defined() ? add(sum, more) : std::move(more);
}

std::vector<Device> LeafGradient::devices() const {
  std::vector<Device> all;
  for (auto& [device, part] : parts) all.push_back(device);
  std::sort(all.begin(), all.end(), [&](Device a, Device b) {
    auto rank = [&](Device d) { return std::tuple(d != leaf->device, d.type_id(), d.index()); };
    return rank(a) < rank(b);
  });
  return all;
}

void LeafGradient::add_part(Tensor g) {
  const Device device = g.device();
  for (auto& [place, sum] : parts)
    if (place == device) {
      sum = add(sum, g);
      return;
    }
  parts.emplace_back(device, std::move(g));
}

Tensor LeafGradient::take_part(Device device) {
  auto it = std::find_if(parts.begin(), parts.end(), [&](auto& p) { return p.first == device; });
  Tensor part = std::move(it->second);
  parts.erase(it);
  return part;
}

Tensor LeafGradient::total() {
  Tensor sum;
  for (Device device : devices()) {
    Tensor part = take_part(device);
    Tensor here = device == leaf->device ? std::move(part) : part.to(leaf->device);
    sum = sum.defined() ? add(sum, here) : std::move(here);
  }
  return sum;
}

namespace {

// Returns a part that a sum may overwrite, because nobody else sees it and it has no gaps.
Tensor own_part(Tensor part) {
  auto& t = impl_of(part);
  return t.contiguous && t.refs == 1 && t.storage->refs == 1 && !t.storage->adopted()
             ? part
             : part.clone(contiguous_format);
}

std::vector<Tensor> take_row(LeafGradient& leaf, std::span<const Device> devices) {
  std::vector<Tensor> row;
  for (Device device : devices) row.push_back(own_part(leaf.take_part(device)));
  return row;
}

// Puts the first `count` members of a row back, before all other parts.
void put_back(LeafGradient& leaf, std::vector<Tensor>& row, size_t count) {
  for (size_t k = count; k-- > 0;)
    leaf.parts.emplace(leaf.parts.begin(), row[k].device(), std::move(row[k]));
}

// The devices that have parts, by kind.
std::map<uint32_t, std::vector<Device>> devices_by_kind(const LeafGradient& leaf) {
  std::map<uint32_t, std::vector<Device>> kinds;
  for (Device device : leaf.devices()) kinds[device.type_id()].push_back(device);
  return kinds;
}

}  // namespace

Tensor LeafGradient::local() {
  Tensor here;
  for (Device device : devices()) {
    Tensor part = take_part(device);
    if (device == leaf->device)
      here = std::move(part);
    else
      parts.emplace_back(device, own_part(std::move(part)));
  }
  return here;
}

namespace {
// Sums the parts of each kind of devices that a plugin joins.
void reduce_kinds(std::span<LeafGradient* const> leaves, bool beside) {
  std::vector<LeafGradient*> owners;  // of the rows
  std::vector<std::vector<Device>> places;
  for (LeafGradient* leaf : leaves)
    for (auto& [kind, devices] : devices_by_kind(*leaf)) {
      owners.push_back(leaf);
      places.push_back(devices);
    }
  for (const auto& [communicator, members] : joined_rows(places)) {
    std::vector<Members> rows;
    for (size_t i : members) rows.push_back(take_row(*owners[i], places[i]));
    const auto refused =
        beside ? all_reduce_beside(*communicator, rows) : all_reduce(*communicator, rows);
    for (size_t i = 0; i < members.size(); ++i) {
      const bool summed = std::find(refused.begin(), refused.end(), i) == refused.end();
      put_back(*owners[members[i]], rows[i], summed ? 1 : rows[i].size());
    }
  }
}

}  // namespace

void reduce_parts(std::span<LeafGradient> leaves) {
  std::vector<LeafGradient*> shared;
  for (LeafGradient& leaf : leaves)
    if (leaf.parts.size() > 1 && leaf.leaf->numel > 0 && !leaf.deferred) shared.push_back(&leaf);
  reduce_kinds(shared, false);
}

void Buckets::look_ahead(std::span<const Ref<Node>> roots) {
  if (!replicas_exist()) return;
  std::unordered_map<TensorImpl*, size_t> places;  // in ends_
  std::unordered_set<Node*> seen;
  std::vector<Node*> rest;
  for (auto& root : roots)
    if (seen.insert(root.get()).second) rest.push_back(root.get());
  while (!rest.empty()) {
    Node* const node = rest.back();
    rest.pop_back();
    for (auto& e : node->edges) {
      if (e.node && seen.insert(e.node.get()).second) rest.push_back(e.node.get());
      if (!e.leaf || !e.leaf->autograd->replicas) continue;
      const auto [it, fresh] = places.try_emplace(e.leaf.get(), ends_.size());
      if (fresh) ends_.push_back({node->sequence, e.leaf.get()});
      auto& end = ends_[it->second];
      end.sequence = std::min(end.sequence, node->sequence);
    }
  }
  std::stable_sort(ends_.begin(), ends_.end(),
                   [](const End& a, const End& b) { return a.sequence > b.sequence; });
}

namespace {
// Whether parts on these devices can be copied to that of the leaf without making this thread wait.
// A copy from the host to a device with streams of its own waits for the values.
bool copies_are_queued(Device leaf, std::span<const Device> devices) {
  const auto& to = context_of(leaf);
  return !check_settings().on &&
         (to.caller_thread || std::all_of(devices.begin(), devices.end(), [&](Device d) {
            return &context_of(d).backend == &to.backend;
          }));
}
}  // namespace

void Buckets::collect(size_t place) {
  if (place == leaves_.size()) return;  // no gradient came
  const LeafGradient& gradient = leaves_[place];
  const TensorImpl& leaf = *gradient.leaf;
  auto devices = gradient.devices();
  if (gradient.deferred || devices.size() < 2 || leaf.numel == 0) return;
  if (devices != devices_) {
    sum_bucket(true);
    devices_ = std::move(devices);
    joined_ = communicator_for(devices_);
    adds_in_place_ = !joined_ && share_memory(devices_);
  }
  if (!joined_ && !adds_in_place_ && !copies_are_queued(leaf.device, devices_)) return;
  bucket_.push_back(place);
  bytes_ += static_cast<uint64_t>(leaf.numel) * size_of(leaf.dtype);
  if (bytes_ >= leaf.autograd->replicas->gradient_sums().bucket_bytes) sum_bucket(true);
}

void Buckets::sum_bucket(bool overlaps) {
  if (bucket_.empty()) return;
  const PartPath part("sum of gradients");
  if (joined_)
    sum_by_collectives(overlaps && !check_settings().on);
  else if (adds_in_place_)
    sum_in_place(overlaps);
  else if (overlaps)  // else it is left to `total`
    sum_by_copies();
  bucket_.clear();
  bytes_ = 0;
}

void Buckets::sum_by_collectives(bool overlaps) {
  std::vector<Members> rows;
  for (size_t place : bucket_) rows.push_back(take_row(leaves_[place], devices_));
  const auto refused = overlaps ? all_reduce_beside(*joined_, rows) : all_reduce(*joined_, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    LeafGradient& leaf = leaves_[bucket_[i]];
    const bool summed = std::find(refused.begin(), refused.end(), i) == refused.end();
    put_back(leaf, rows[i], summed ? 1 : rows[i].size());
  }
}

void Buckets::sum_by_copies() {
  std::vector<LeafGradient*> leaves;
  for (size_t place : bucket_) leaves.push_back(&leaves_[place]);
  reduce_kinds(leaves, true);
  for (LeafGradient* leaf : leaves) {
    const ContextScope scope(context_of(leaf->leaf->device).extra(Extra::sums));
    Tensor sum = leaf->total();
    leaf->parts.emplace_back(sum.device(), std::move(sum));
  }
}

namespace {

// Adds the others of each row to its first member, on the stream of `by`. Returns for each row
// whether a plugin could.
std::vector<bool> queue_in_place(DeviceContext& by, std::span<const std::vector<Tensor>> rows) {
  std::vector<InPlaceChange> changes;
  for (auto& row : rows) changes.emplace_back(*impl_of(row[0]).storage, by);
  std::vector<bool> summed;
  for (auto& row : rows) summed.push_back(accumulate(by, row));
  return summed;
}

// A program makes the same sums again.
std::vector<bool> record_in_place(recording::Listener& recorder, DeviceContext& by,
                                  std::span<const std::vector<Tensor>> rows) {
  std::vector<Tensor> sums, others;
  for (auto& row : rows) {
    sums.push_back(row[0]);
    others.insert(others.end(), row.begin() + 1, row.end());
  }
  const auto summed = std::make_shared<std::vector<bool>>();
  const auto again = [&by, summed](std::span<const Tensor> reads, std::span<const Tensor> changes,
                                   std::vector<Tensor>&) {
    std::vector<std::vector<Tensor>> all;
    const size_t others = reads.size() / changes.size();  // of a row
    for (size_t i = 0; i < changes.size(); ++i) {
      auto& row = all.emplace_back(1, changes[i]);
      const auto first = reads.begin() + static_cast<ptrdiff_t>(i * others);
      row.insert(row.end(), first, first + static_cast<ptrdiff_t>(others));
    }
    *summed = queue_in_place(by, all);
  };
  recorder.work({.name = "sum of gradients",
                 .reads = std::move(others),
                 .changes = std::move(sums),
                 .again = again,
                 .identity = by.number});
  return *summed;
}

}  // namespace

void Buckets::sum_in_place(bool overlaps) {
  DeviceContext& first = context_of(devices_[0]);
  DeviceContext& by = overlaps ? first.extra(Extra::sums) : first;
  std::vector<std::vector<Tensor>> rows;
  for (size_t place : bucket_) rows.push_back(take_row(leaves_[place], devices_));
  auto* const recorder = recording::here();
  const auto summed = recorder ? record_in_place(*recorder, by, rows) : queue_in_place(by, rows);
  for (size_t i = 0; i < rows.size(); ++i)
    put_back(leaves_[bucket_[i]], rows[i], summed[i] ? 1 : rows[i].size());
}

}  // namespace tenon
