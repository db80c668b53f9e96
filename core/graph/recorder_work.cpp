// How the recorder takes down what the host does between plans.
#include <algorithm>
#include <mutex>
#include <utility>

#include <tenon/core/graph/recorder.h>
#include <tenon/core/runtime/context.h>

namespace tenon::graph {

namespace {

HostWork::Form form_of(const Tensor& tensor) {
  const TensorImpl& t = impl_of(tensor);
  return {t.dtype, t.device, t.shape, t.strides};
}

uint64_t version_of(const Storage& s) { return s.version.load(std::memory_order_acquire); }

}  // namespace

bool Recorder::is_known(const Storage& storage, uint32_t& value) {
  std::lock_guard lock(lock_);
  const auto found = places_.find(&storage);
  if (found == places_.end() || found->second >= kBornOnHost) return false;
  value = found->second;
  return true;
}

// Registers a tensor whose memory was allocated without the recorder being told.
void Recorder::make_known(const Tensor& made) {
  std::lock_guard lock(lock_);
  places_[impl_of(made).storage.get()] = kBorn;
}

// Whether the same was done before in this part, and nobody has changed since what it is about.
bool Recorder::is_settled(const recording::HostWork& work) {
  std::vector<uint32_t> values;
  for (auto* tensors : {&work.reads, &work.changes})
    for (auto& t : *tensors)
      if (!is_known(*impl_of(t).storage, values.emplace_back())) return false;
  uint32_t newest = 0;
  for (const uint32_t value : values) newest = std::max(newest, last_writes_[value]);
  if (newest <= trace_.parts.back().first_node) return false;
  const TraceNode& node = trace_.nodes[newest - 1];
  return node.work && node.work->name == work.name && node.work->identity == work.identity &&
         node.num_inputs == values.size() &&
         std::equal(values.begin(), values.end(), trace_.inputs_of(node),
                    [](uint32_t value, const Access& access) { return value == access.value; });
}

std::vector<Tensor> Recorder::work(recording::HostWork&& work) {
  std::vector<Tensor> made;
  if (ignores()) {
    work.again(work.reads, work.changes, made);
    return made;
  }
  std::vector<std::pair<Storage*, uint64_t>> before;
  for (auto& t : work.changes) {
    Storage* const storage = impl_of(t).storage.get();
    const bool listed =
        std::any_of(before.begin(), before.end(), [&](auto& b) { return b.first == storage; });
    if (!listed) before.emplace_back(storage, version_of(*storage));
  }
  {
    struct Pause {
      int& depth;
      explicit Pause(int& depth) : depth(depth) { ++depth; }
      ~Pause() { --depth; }
    } const pause(work_depth_);
    work.again(work.reads, work.changes, made);
  }
  // Its own changes of versions are no plans'. Of values that are new here, it is the mark.
  bool changed = false;
  for (auto& [storage, version] : before) {
    const uint64_t count = version_of(*storage) - version;
    uint32_t value = 0;
    if (count && is_known(*storage, value)) version_marks_[value] += count;
    changed |= count != 0;
  }
  if (changed || !work.settles || !is_settled(work)) add_work(work, made);
  return made;
}

void Recorder::add_work(const recording::HostWork& work, const std::vector<Tensor>& made) {
  if (work.queues) note_versions(trace_.parts.back().versions);
  auto known = std::make_shared<HostWork>();
  known->name = work.name;
  known->identity = work.identity;
  known->content = work.content;
  known->queues = work.queues;
  known->again = work.again;
  known->num_reads = static_cast<uint32_t>(work.reads.size());
  known->num_changes = static_cast<uint32_t>(work.changes.size());
  TraceNode node;
  node.path = current_path();
  node.first_access = static_cast<uint32_t>(trace_.accesses.size());
  node.num_inputs = known->num_reads + known->num_changes;
  node.num_outputs = known->num_changes + static_cast<uint32_t>(made.size());
  node.first_scalar = static_cast<uint32_t>(trace_.scalars.size());
  for (auto& t : made) make_known(t);
  for (auto* tensors : {&work.reads, &work.changes, &made})
    for (auto& t : *tensors) known->forms.push_back(form_of(t));
  for (auto* tensors : {&work.reads, &work.changes, &work.changes, &made})
    for (auto& t : *tensors) trace_.accesses.push_back(access(impl_of(t)));
  if (work.queues) ++works_;
  node.work = std::move(known);
  add_node(std::move(node));
}

std::string TraceNode::describe() const {
  return work ? work->name : plan->describe(flat ? &shape : nullptr);
}

}  // namespace tenon::graph
