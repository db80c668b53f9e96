// How programs are made of traces.
#include <algorithm>
#include <utility>

#include <tenon/core/dispatch/shares_memory.h>
#include <tenon/core/error.h>
#include <tenon/core/graph/memory_plan.h>
#include <tenon/core/graph/optimize.h>
#include <tenon/core/graph/program.h>
#include <tenon/core/runtime/context.h>

namespace tenon::graph {

Program::Program(Trace trace, Wiring wiring, const CompilePasses& passes)
    : recorded_(trace),
      recorded_wiring_(wiring),
      trace_(std::move(trace)),
      wiring_(std::move(wiring)),
      wants_graphs_(passes.device_graphs) {
  forget_arguments(recorded_, recorded_wiring_);
  optimize(trace_, wiring_, passes, notes_);
  trace_.host = {};
  schedule_ = make_schedule(trace_);
}

// Larger ones come one after the other where sizes grow; with room to grow, they are few.
Ref<Storage> SharedArenas::take(DeviceContext& context, uint64_t bytes) {
  for (auto& arena : largest_) {
    if (arena->context != &context) continue;
    if (arena->bytes < bytes) arena = context.memory->allocate(bytes + bytes / 4);
    return arena;
  }
  return largest_.emplace_back(context.memory->allocate(bytes));
}

std::unique_ptr<Program> Program::make(Trace trace, Wiring wiring, const CompilePasses& passes,
                                       std::string& why, SharedArenas* arenas) {
  std::unique_ptr<Program> program(new Program(std::move(trace), std::move(wiring), passes));
  if (!program->build(why, arenas)) return nullptr;
  return program;
}

Program::~Program() {
  constants_.wait();
  for (auto& frame : frames_)
    for (size_t d = 0; d < schedule_.devices.size(); ++d)
      wait_until_read(*schedule_.devices[d]->stream, frame->tickets[d]);
}

void Program::take_host_work(Trace& into, Trace later) {
  into.host = std::move(later.host);
  for (size_t p = 0; p < into.parts.size(); ++p) {
    into.parts[p].host_numbers = std::move(later.parts[p].host_numbers);
    into.parts[p].first_host_node = later.parts[p].first_host_node;
    into.parts[p].end_host_node = later.parts[p].end_host_node;
  }
}

Trace Program::recorded_with_memory() const {
  Trace trace = recorded_;
  for (size_t v = 0; v < trace.values.size(); ++v)
    if (trace_.values[v].held) trace.values[v].held = trace_.values[v].held;
  return trace;
}

uint64_t Program::fresh_bytes() const {
  uint64_t bytes = 0;
  for (auto& fresh : fresh_) bytes += fresh.bytes;
  return bytes;
}

uint64_t Program::arena_bytes() const {
  uint64_t bytes = 0;
  for (auto& arena : arenas_) bytes += arena ? arena->bytes : 0;
  return bytes;
}

bool Program::build(std::string& why, SharedArenas* shared) {
  find_written();
  find_devices();
  if (!find_changes(why)) return false;
  find_fresh();
  if (!find_places(why, shared)) return false;
  build_segments();
  find_lifetimes();
  find_neighbors();
  make_graphs();
  forget_arguments(trace_, wiring_);
  // Only the replayed form has handles to the memory that is used, by which it sees whether others
  // have some.
  for (size_t v = 0; v < trace_.values.size(); ++v)
    if (trace_.values[v].held) recorded_.values[v].held = {};
  input_storages_.resize(trace_.inputs.size());
  input_data_.resize(trace_.inputs.size());
  places_.resize(trace_.inputs.size());
  fresh_storages_.resize(fresh_.size());
  kept_tensors_.resize(trace_.kept.size());
  numbers.resize(trace_.num_numbers);
  return true;
}

namespace {

// The values that are used where they lie, and not through an input.
std::vector<bool> used_in_place(const Trace& trace, const Wiring& wiring) {
  std::vector<bool> used(trace.values.size());
  for (auto& n : trace.nodes)
    for (uint32_t i = 0; i < n.num_inputs + n.num_outputs; ++i) {
      const uint32_t value = trace.accesses[n.first_access + i].value;
      if (value != kAbsent && wiring.input_of_access[n.first_access + i] < 0) used[value] = true;
    }
  for (auto& kept : trace.kept) used[kept.value] = true;
  return used;
}

}  // namespace

void Program::find_written() {
  input_written_.resize(trace_.inputs.size());
  const std::vector<bool> used = used_in_place(trace_, wiring_);
  std::vector<bool> written(trace_.values.size());
  for (auto& n : trace_.nodes)
    for (uint32_t i = n.num_inputs; i < n.num_inputs + n.num_outputs; ++i) {
      const int32_t input = wiring_.input_of_access[n.first_access + i];
      const uint32_t value = trace_.accesses[n.first_access + i].value;
      if (input >= 0)
        input_written_[static_cast<size_t>(input)] = true;
      else if (value != kAbsent)
        written[value] = true;
    }
  for (size_t v = 0; v < used.size(); ++v)
    if (used[v] && !trace_.values[v].inside) {
      fixed_.push_back(trace_.values[v].held.get());
      fixed_written_.push_back(written[v]);
    }
}

void Program::find_devices() {
  device_of_value_.resize(trace_.values.size());
  const auto note = [&](const Access& access, uint32_t device) {
    if (access.value != kAbsent) device_of_value_[access.value] = device;
  };
  for (auto& kept : trace_.kept)
    device_of_value_[kept.value] =
        schedule_.device_of(context_of(trace_.values[kept.value].device));
  for (auto& n : trace_.nodes)
    for (uint32_t i = 0; i < n.num_inputs + n.num_outputs; ++i) {
      const auto& context = n.plan ? *n.plan->context : context_of(n.work->form_of(i).device);
      note(trace_.accesses[n.first_access + i], schedule_.device_of(context));
    }
}

bool Program::find_changes(std::string& why) {
  uint32_t works = 0;
  for (size_t p = 0; p < schedule_.parts.size(); ++p) {
    RunPart& part = parts_.emplace_back();
    for (auto& planned : schedule_.parts[p]) {
      RunGroup& group = part.groups.emplace_back();
      group.first_works = planned.first_works;
      group.work = planned.work;
      group.awaits = p > 0 || works > 0 || !planned.first_works.empty();
      for (auto& change : trace_.parts[p].versions)
        if (change.works == works && !find_change(change, group, why)) return false;
      if (planned.work >= 0) ++works;
    }
  }
  return true;
}

// Memory that is changed belongs to an input or to a tensor from outside; what is both would have
// to be told apart in each call.
bool Program::find_change(const VersionChange& change, RunGroup& group, std::string& why) {
  Storage* const storage = trace_.values[change.value].held.get();
  const auto fixed = std::find(fixed_.begin(), fixed_.end(), storage);
  Change found{.device = device_of_value_[change.value], .count = change.count};
  const auto lies_over = [&](const Storage* other) {
    return other != storage && lie_over(*storage, 0, storage->bytes, *other, 0, other->bytes);
  };
  if (fixed != fixed_.end() && std::any_of(fixed_.begin(), fixed_.end(), lies_over)) {
    why = "it changes memory that another tensor from outside uses, too";
    return false;
  }
  bool is_input = false;
  for (size_t k = 0; k < trace_.inputs.size(); ++k)
    if (!wiring_.pinned[k] && trace_.inputs[k].id == storage && input_written_[k]) {
      found.input = k;
      is_input = true;
    }
  if (is_input && fixed != fixed_.end()) {
    why = "it changes an argument that it uses from outside, too";
    return false;
  }
  if (!is_input && fixed == fixed_.end()) {
    why = "it changes memory that no operator of it uses";
    return false;
  }
  if (!is_input) found.fixed = storage;
  group.changes.push_back(found);
  return true;
}

void Program::find_fresh() {
  fresh_of_value_.assign(trace_.values.size(), -1);
  const auto add = [&](uint32_t v) -> Fresh& {
    const Value& value = trace_.values[v];
    fresh_of_value_[v] = static_cast<int32_t>(fresh_.size());
    return fresh_.emplace_back(
        Fresh{.value = v, .bytes = value.bytes, .device = device_of_value_[v]});
  };
  for (auto& kept : trace_.kept)
    if (trace_.values[kept.value].inside && fresh_of_value_[kept.value] < 0)
      add(kept.value).lasts = true;
  for (auto& node : trace_.nodes)
    for (uint32_t i = 0; node.work && i < node.num_inputs + node.num_outputs; ++i) {
      const uint32_t v = trace_.accesses[node.first_access + i].value;
      if (!trace_.values[v].inside) continue;
      Fresh& fresh = fresh_of_value_[v] < 0 ? add(v) : fresh_[fresh_of(v)];
      fresh.is_made |= i >= node.num_inputs + node.work->num_changes;
    }
  find_overwritten();
}

// Which new storages are the gradient of one leaf and nothing else.
void Program::find_overwritten() {
  std::vector<uint32_t> binds(trace_.leaves.size()), handles(trace_.kept.size()),
      tensors(trace_.values.size());
  for (auto& kept : trace_.kept) ++tensors[kept.value];
  for (auto& part : trace_.parts)
    for (auto& b : part.binds) {
      ++binds[b.leaf];
      if (b.kept >= 0) ++handles[static_cast<size_t>(b.kept)];
    }
  for (auto& result : trace_.results)
    if (result.kept >= 0) ++handles[static_cast<size_t>(result.kept)];
  for (auto& part : trace_.parts)
    for (auto& b : part.binds) {
      if (b.kept < 0 || binds[b.leaf] != 1 || trace_.leaves[b.leaf].asked) continue;
      const auto k = static_cast<size_t>(b.kept);
      if (handles[k] != 1 || tensors[trace_.kept[k].value] != 1) continue;
      Fresh& fresh = fresh_[fresh_of(trace_.kept[k].value)];
      if (fresh.is_made) continue;
      fresh.leaf = static_cast<int32_t>(b.leaf);
      fresh.kept = b.kept;
    }
}

bool Program::find_places(std::string& why, SharedArenas* shared) {
  arena_offset_.resize(trace_.values.size() + trace_.nodes.size());
  arenas_.resize(schedule_.devices.size());
  try {
    for (uint32_t d = 0; d < schedule_.devices.size(); ++d) find_places_on(d, shared);
    constants_.compute(trace_);
  } catch (const OutOfMemoryError& e) {
    why = e.what();
    return false;
  }
  return true;
}

// Gives each value of a device that ends with the call, and each workspace, a place in its arena.
void Program::find_places_on(uint32_t device, SharedArenas* shared) {
  constexpr uint32_t never = ~uint32_t{0};
  DeviceContext& context = *schedule_.devices[device];
  std::vector<Lifetime> lifetimes(trace_.values.size(), Lifetime{.bytes = 0, .first = never});
  for (size_t i = 0; i < trace_.nodes.size(); ++i) {
    const TraceNode& n = trace_.nodes[i];
    for (uint32_t k = 0; k < n.num_inputs + n.num_outputs; ++k) {
      const uint32_t v = trace_.accesses[n.first_access + k].value;
      if (v == kAbsent || device_of_value_[v] != device || !trace_.values[v].inside ||
          fresh_of_value_[v] >= 0 || trace_.values[v].constant)
        continue;
      Lifetime& l = lifetimes[v];
      l.bytes = trace_.values[v].bytes;
      l.first = std::min(l.first, static_cast<uint32_t>(i));
      l.last = static_cast<uint32_t>(i);
    }
  }
  std::vector<Lifetime> needed;
  std::vector<size_t> of;  // a value, or the number of values and a node
  for (size_t v = 0; v < lifetimes.size(); ++v)
    if (lifetimes[v].first != never) needed.push_back(lifetimes[v]), of.push_back(v);
  for (uint32_t i = 0; i < trace_.nodes.size(); ++i) {
    const PlanEntry* plan = trace_.nodes[i].plan.get();
    if (plan && plan->context == &context && plan->workspace_bytes)
      needed.push_back({plan->workspace_bytes, i, i}), of.push_back(lifetimes.size() + i);
  }
  const MemoryPlan plan = plan_memory(needed, context.caller_thread ? 64 : 512);
  if (plan.bytes)
    arenas_[device] =
        shared ? shared->take(context, plan.bytes) : context.memory->allocate(plan.bytes);
  for (size_t i = 0; i < of.size(); ++i) arena_offset_[of[i]] = plan.offsets[i];
}

Segment::Place Program::place_of(size_t at) const {
  const Access& access = trace_.accesses[at];
  if (access.value == kAbsent) return {};
  if (const int32_t input = wiring_.input_of_access[at]; input >= 0)
    return {nullptr, input, access.offset - trace_.inputs[static_cast<size_t>(input)].offset};
  const Value& value = trace_.values[access.value];
  if (!value.bytes) return {};
  if (const int32_t fresh = fresh_of_value_[access.value]; fresh >= 0)
    return {nullptr, static_cast<int32_t>(trace_.inputs.size()) + fresh, access.offset};
  if (value.constant) return {constants_.data_of(access.value) + access.offset, -1, 0};
  char* const data = value.inside
                         ? static_cast<char*>(arenas_[device_of_value_[access.value]]->data) +
                               arena_offset_[access.value]
                         : static_cast<char*>(value.held->data);
  return {data + access.offset, -1, 0};
}

// The place in `fixed_` of what an access leads to, or ~input. It is from outside.
int32_t Program::outside_of(size_t at) const {
  if (const int32_t input = wiring_.input_of_access[at]; input >= 0) return ~input;
  const Storage* storage = trace_.values[trace_.accesses[at].value].held.get();
  return static_cast<int32_t>(std::find(fixed_.begin(), fixed_.end(), storage) - fixed_.begin());
}

void Program::build_segments() {
  std::vector<bool> known(trace_.values.size()), changed(trace_.values.size());
  const auto note_work = [&](uint32_t i) {
    const TraceNode& node = trace_.nodes[i];
    for (uint32_t k = 0; k < node.num_outputs; ++k)
      known[trace_.outputs_of(node)[k].value] = changed[trace_.outputs_of(node)[k].value] = true;
  };
  for (size_t p = 0; p < parts_.size(); ++p) {
    // What the host does between two parts may have changed anything from outside.
    if (p > 0) changed.assign(changed.size(), true);
    for (size_t g = 0; g < parts_[p].groups.size(); ++g) {
      RunGroup& group = parts_[p].groups[g];
      for (const uint32_t work : group.first_works) note_work(work);
      const auto& devices = schedule_.parts[p][g].devices;
      group.segments = std::vector<RunSegment>(devices.size());
      for (size_t d = 0; d < devices.size(); ++d) {
        RunSegment& run = group.segments[d];
        build_segment(devices[d], run, known, changed);
        for (uint32_t k = 0; k < group.changes.size(); ++k)
          if (group.changes[k].device == run.device) run.changes.push_back(k);
      }
      if (group.work >= 0) note_work(static_cast<uint32_t>(group.work));
    }
  }
}

// New storages that do not last begin with the first group that uses them and end with the last.
void Program::find_lifetimes() {
  std::vector<RunGroup*> last(fresh_.size());
  const auto use = [&](RunGroup& group, uint32_t i) {
    const TraceNode& node = trace_.nodes[i];
    for (uint32_t k = 0; k < node.num_inputs + node.num_outputs; ++k) {
      const uint32_t value = trace_.accesses[node.first_access + k].value;
      if (value == kAbsent || fresh_of_value_[value] < 0) continue;
      const uint32_t fresh = fresh_of(value);
      if (!last[fresh] && !fresh_[fresh].lasts && !fresh_[fresh].is_made)
        group.begins.push_back(fresh);
      last[fresh] = &group;
    }
  };
  for (size_t p = 0; p < parts_.size(); ++p)
    for (size_t g = 0; g < parts_[p].groups.size(); ++g) {
      RunGroup& group = parts_[p].groups[g];
      for (const uint32_t work : group.first_works) use(group, work);
      for (auto& device : schedule_.parts[p][g].devices)
        for (const uint32_t node : device.nodes) use(group, node);
      if (group.work >= 0) use(group, static_cast<uint32_t>(group.work));
    }
  for (uint32_t fresh = 0; fresh < fresh_.size(); ++fresh)
    if (last[fresh] && !fresh_[fresh].lasts) last[fresh]->ends.push_back(fresh);
}

void Program::forget_arguments(Trace& trace, const Wiring& wiring) {
  const std::vector<bool> used = used_in_place(trace, wiring);
  for (size_t v = 0; v < trace.values.size(); ++v) {
    Value& value = trace.values[v];
    if (value.inside || used[v]) continue;
    value.held = {};
    value.id = nullptr;
  }
  for (size_t k = 0; k < trace.inputs.size(); ++k) {
    Input& input = trace.inputs[k];
    if (wiring.pinned[k]) continue;
    input.held = {};
    input.id = nullptr;
  }
}

}  // namespace tenon::graph
