// How plans become the arrays of a segment.
#include <algorithm>

#include <tenon/core/graph/program.h>
#include <tenon/core/graph/replay.h>
#include <tenon/core/runtime/context.h>

namespace tenon::graph {

void Segment::add(const TraceNode& node, const Scalar* scalars, const std::vector<Place>& places,
                  char* workspace) {
  starts_.push_back({static_cast<uint32_t>(pointers_.size()),
                     static_cast<uint32_t>(scalars_.size()),
                     static_cast<uint32_t>(versions_.size())});
  for (auto& place : places) {
    const auto slot = static_cast<uint32_t>(pointers_.size());
    if (place.base >= 0) patches_.push_back({slot, place.base, place.offset});
    pointers_.push_back(place.fixed);
  }
  if (node.draw >= 0)
    draws_.push_back({static_cast<uint32_t>(scalars_.size()), static_cast<uint32_t>(node.draw)});
  for (auto& living : node.living)
    numbers_.push_back({static_cast<uint32_t>(scalars_.size()) + living.scalar, living.number});
  for (uint32_t i = 0; i < node.num_scalars; ++i) scalars_.push_back(scalars[i].value);
  if (node.plan->wants_versions) versions_.resize(versions_.size() + node.num_inputs);
  Launch launch{};
  launch.plan = node.plan.get();
  launch.num_inputs = node.num_inputs, launch.num_outputs = node.num_outputs;
  launch.num_scalars = node.num_scalars;
  launch.workspace = workspace;
  launch.outputs_hold_values = node.outputs_hold_values;
  launches_.push_back(launch);
  shapes_.push_back(node.shape);
  paths_.push_back(node.path);
  cost_ns_ += node.plan->cost_ns;
  cost_unknown_ |= node.plan->cost_ns == 0;
}

void Segment::add_version(uint32_t input, uint32_t storage) {
  wanted_.push_back({starts_.back().versions + input, storage});
}

// From here on the arrays stay where they are.
void Segment::finish() {
  if (cost_unknown_) cost_ns_ = 0;
  for (size_t i = 0; i < launches_.size(); ++i) {
    Launch& l = launches_[i];
    l.inputs = pointers_.data() + starts_[i].pointers;
    l.outputs = l.inputs + l.num_inputs;
    l.scalars = scalars_.data() + starts_[i].scalars;
    if (l.plan->flattened) l.shape = &shapes_[i];
    if (l.plan->wants_versions) l.input_versions = versions_.data() + starts_[i].versions;
  }
}

void Segment::prepare(const Frame& frame) noexcept {
  for (auto& patch : patches_)
    pointers_[patch.slot] = frame.bases[static_cast<size_t>(patch.base)] + patch.offset;
  for (auto& draw : draws_)
    std::copy_n(frame.draws.data() + 2 * size_t{draw.draw}, 2, scalars_.data() + draw.slot);
  for (auto& n : numbers_) scalars_[n.slot] = frame.numbers[n.number];
  for (auto& version : wanted_) versions_[version.slot] = frame.versions[version.storage];
  for (auto& launch : launches_) launch.queued_ns = frame.queued_ns;
}

std::vector<Segment::Sources> Segment::sources() const {
  std::vector<Sources> all(launches_.size());
  const auto launch_of = [&](uint32_t slot, uint32_t Starts::*start) -> Sources& {
    const auto behind =
        std::upper_bound(starts_.begin(), starts_.end(), slot,
                         [&](uint32_t at, const Starts& s) { return at < s.*start; });
    return all[static_cast<size_t>(behind - starts_.begin()) - 1];
  };
  for (auto& patch : patches_)
    launch_of(patch.slot, &Starts::pointers).places.push_back(patch.base);
  for (auto& n : numbers_)
    launch_of(n.slot, &Starts::scalars).places.push_back(~static_cast<int32_t>(n.number));
  for (auto& draw : draws_) launch_of(draw.slot, &Starts::scalars).others = true;
  for (size_t i = 0; i < launches_.size(); ++i) all[i].others |= launches_[i].plan->wants_versions;
  return all;
}

void wait_until_read(DeviceStream& stream, uint64_t ticket) noexcept {
  if (!ticket || stream.closed()) return;
  // A worker reads frames when it comes to them; waiting for one needs nothing that could fail.
  if (!stream.native()) return stream.wait(ticket);
  try {
    stream.wait(ticket);
  } catch (...) {
  }
}

void QueuedSegment::forget(FailureLog& failures, size_t launch) const {
  const auto first =
      std::lower_bound(segment.births.begin(), segment.births.end(), launch,
                       [](const Segment::Birth& b, size_t at) { return b.launch < at; });
  for (auto birth = first; birth != segment.births.end() && birth->launch == launch; ++birth) {
    const Segment::Place& place = birth->place;
    const char* data =
        place.base < 0 ? place.fixed : frame.bases[static_cast<size_t>(place.base)] + place.offset;
    failures.clear_poison(data, birth->bytes);
  }
}

// ---- of the nodes of a trace

void Program::add_node(Segment& segment, uint32_t i, uint32_t device) const {
  const TraceNode& node = trace_.nodes[i];
  std::vector<Segment::Place> places;
  for (uint32_t k = 0; k < node.num_inputs + node.num_outputs; ++k)
    places.push_back(place_of(node.first_access + k));
  char* const workspace = node.plan->workspace_bytes ? static_cast<char*>(arenas_[device]->data) +
                                                           arena_offset_[trace_.values.size() + i]
                                                     : nullptr;
  segment.add(node, trace_.scalars.data() + node.first_scalar, places, workspace);
}

// Inputs that no node has changed before have the number of values that their storage has now; of
// others nothing is said.
void Program::want_versions(Segment& segment, const TraceNode& node,
                            const std::vector<bool>& changed) {
  for (uint32_t i = 0; i < node.num_inputs; ++i) {
    const Access& access = trace_.accesses[node.first_access + i];
    if (access.value == kAbsent || trace_.values[access.value].inside || changed[access.value])
      continue;
    segment.add_version(i, static_cast<uint32_t>(versioned_.size()));
    versioned_.push_back(outside_of(node.first_access + i));
  }
}

void Program::build_segment(const DeviceNodes& nodes, RunSegment& run, std::vector<bool>& known,
                            std::vector<bool>& changed) {
  run.device = nodes.device;
  run.context = schedule_.devices[nodes.device];
  run.place = num_segments_++;
  for (uint32_t at = 0; at < nodes.nodes.size(); ++at) {
    const TraceNode& node = trace_.nodes[nodes.nodes[at]];
    add_node(run.segment, nodes.nodes[at], nodes.device);
    if (node.plan->wants_versions) want_versions(run.segment, node, changed);
    for (uint32_t k = 0; k < node.num_inputs + node.num_outputs; ++k) {
      const Access& access = trace_.accesses[node.first_access + k];
      if (access.value == kAbsent) continue;
      if (k >= node.num_inputs) changed[access.value] = true;
      const Value& value = trace_.values[access.value];
      if (known[access.value] || !value.inside || value.constant) continue;
      known[access.value] = true;
      Segment::Place place = place_of(node.first_access + k);
      if (place.fixed) place.fixed -= access.offset;
      place.offset = 0;
      run.segment.births.push_back({at, place, trace_.values[access.value].bytes});
    }
  }
  run.segment.finish();
  list_storages(nodes, run);
}

namespace {
template <class T>
void add_once(std::vector<T>& list, T item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}
}  // namespace

void Program::list_storages(const DeviceNodes& nodes, RunSegment& run) const {
  for (const uint32_t i : nodes.nodes) {
    const TraceNode& node = trace_.nodes[i];
    for (uint32_t k = 0; k < node.num_inputs + node.num_outputs; ++k) {
      const size_t at = node.first_access + k;
      const uint32_t value = trace_.accesses[at].value;
      if (value == kAbsent) continue;
      if (!trace_.values[value].inside) {
        add_once(run.outside, outside_of(at));
      } else if (fresh_of_value_[value] >= 0) {
        add_once(run.fresh, fresh_of(value));
        if (k >= node.num_inputs) add_once(run.written, fresh_of(value));
      }
    }
  }
}

}  // namespace tenon::graph
