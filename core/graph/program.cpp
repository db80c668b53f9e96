// How programs are made of traces.
#include <algorithm>
#include <utility>

#include <tenon/core/error.h>
#include <tenon/core/graph/memory_plan.h>
#include <tenon/core/graph/optimize.h>
#include <tenon/core/graph/program.h>
#include <tenon/core/runtime/context.h>

namespace tenon::graph {

namespace {
DeviceContext& context_for(const Trace& trace) {
  return trace.nodes.empty() ? context_of(Device()) : *trace.nodes[0].plan->context;
}
}  // namespace

Program::Program(Trace trace, Wiring wiring, const CompilePasses& passes)
    : recorded_(trace),
      recorded_wiring_(wiring),
      trace_(std::move(trace)),
      wiring_(std::move(wiring)),
      context_(context_for(trace_)) {
  forget_arguments(recorded_, recorded_wiring_);
  optimize(trace_, wiring_, passes, notes_);
  trace_.host = {};
}

std::unique_ptr<Program> Program::make(Trace trace, Wiring wiring, const CompilePasses& passes,
                                       std::string& why) {
  std::unique_ptr<Program> program(new Program(std::move(trace), std::move(wiring), passes));
  if (!program->build(why)) return nullptr;
  return program;
}

Program::~Program() {
  uint64_t last = constants_.ticket();
  for (auto& frame : frames_) last = std::max(last, frame->ticket);
  if (last && !context_.stream->closed()) context_.stream->wait(last);
}

void Program::take_host_work(Trace later) {
  recorded_.host = std::move(later.host);
  for (size_t p = 0; p < recorded_.parts.size(); ++p) {
    recorded_.parts[p].host_numbers = std::move(later.parts[p].host_numbers);
    recorded_.parts[p].first_host_node = later.parts[p].first_host_node;
    recorded_.parts[p].end_host_node = later.parts[p].end_host_node;
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

bool Program::build(std::string& why) {
  find_written();
  if (!find_changes(why)) return false;
  find_fresh();
  if (!find_places(why)) return false;
  build_segments();
  find_overlaps();
  forget_arguments(trace_, wiring_);
  // Of the memory that is used, the replayed form alone has handles, by which it sees whether
  // others have some.
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
  for (auto& n : trace_.nodes)
    for (uint32_t i = 0; i < n.num_outputs; ++i) {
      const int32_t input = wiring_.input_of_access[n.first_access + n.num_inputs + i];
      if (input >= 0) input_written_[static_cast<size_t>(input)] = true;
    }
  const std::vector<bool> used = used_in_place(trace_, wiring_);
  std::vector<bool> written(trace_.values.size());
  for (auto& n : trace_.nodes)
    for (uint32_t i = n.num_inputs; i < n.num_inputs + n.num_outputs; ++i) {
      const uint32_t value = trace_.accesses[n.first_access + i].value;
      if (value != kAbsent && wiring_.input_of_access[n.first_access + i] < 0)
        written[value] = true;
    }
  for (size_t v = 0; v < used.size(); ++v)
    if (used[v] && !trace_.values[v].inside) {
      fixed_.push_back(trace_.values[v].held.get());
      fixed_written_.push_back(written[v]);
    }
}

// Memory that is changed belongs to an input or to a tensor from outside; what is both would have
// to be told apart in each call.
bool Program::find_changes(std::string& why) {
  parts_ = std::vector<RunPart>(trace_.parts.size());
  for (size_t p = 0; p < parts_.size(); ++p)
    for (auto& change : trace_.parts[p].versions) {
      Storage* const storage = trace_.values[change.value].held.get();
      const auto fixed = std::find(fixed_.begin(), fixed_.end(), storage);
      Change found{.count = change.count};
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
      parts_[p].changes.push_back(found);
    }
  return true;
}

void Program::find_fresh() {
  fresh_of_value_.assign(trace_.values.size(), -1);
  std::vector<uint32_t> tensors(trace_.values.size());
  for (auto& kept : trace_.kept) {
    ++tensors[kept.value];
    const Value& value = trace_.values[kept.value];
    if (!value.inside || fresh_of_value_[kept.value] >= 0) continue;
    fresh_of_value_[kept.value] = static_cast<int32_t>(fresh_.size());
    fresh_.push_back({.value = kept.value, .bytes = value.bytes});
  }
  std::vector<uint32_t> binds(trace_.leaves.size()), handles(trace_.kept.size());
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
      Fresh& fresh = fresh_[static_cast<size_t>(fresh_of_value_[trace_.kept[k].value])];
      fresh.leaf = static_cast<int32_t>(b.leaf);
      fresh.kept = b.kept;
    }
}

// Gives each value that ends with the call, and each workspace, a place in the arena.
bool Program::find_places(std::string& why) {
  constexpr uint32_t never = ~uint32_t{0};
  std::vector<Lifetime> lifetimes(trace_.values.size(), Lifetime{.bytes = 0, .first = never});
  for (size_t i = 0; i < trace_.nodes.size(); ++i) {
    const TraceNode& n = trace_.nodes[i];
    for (uint32_t k = 0; k < n.num_inputs + n.num_outputs; ++k) {
      const uint32_t v = trace_.accesses[n.first_access + k].value;
      if (v == kAbsent || !trace_.values[v].inside || fresh_of_value_[v] >= 0 ||
          trace_.values[v].constant)
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
  for (uint32_t i = 0; i < trace_.nodes.size(); ++i)
    if (const uint64_t bytes = trace_.nodes[i].plan->workspace_bytes)
      needed.push_back({bytes, i, i}), of.push_back(lifetimes.size() + i);
  const MemoryPlan plan = plan_memory(needed, context_.caller_thread ? 64 : 512);
  try {
    if (plan.bytes) arena_ = context_.memory->allocate(plan.bytes);
    constants_.compute(trace_, context_);
  } catch (const OutOfMemoryError& e) {
    why = e.what();
    return false;
  }
  arena_offset_.resize(lifetimes.size() + trace_.nodes.size());
  for (size_t i = 0; i < of.size(); ++i) arena_offset_[of[i]] = plan.offsets[i];
  return true;
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
  char* const data = value.inside ? static_cast<char*>(arena_->data) + arena_offset_[access.value]
                                  : static_cast<char*>(value.held->data);
  return {data + access.offset, -1, 0};
}

void Program::add_node(Segment& segment, const TraceNode& node, uint64_t workspace) {
  std::vector<Segment::Place> places;
  for (uint32_t i = 0; i < node.num_inputs + node.num_outputs; ++i)
    places.push_back(place_of(node.first_access + i));
  char* const memory =
      node.plan->workspace_bytes ? static_cast<char*>(arena_->data) + workspace : nullptr;
  segment.add(node, trace_.scalars.data() + node.first_scalar, places, memory);
}

// Inputs that no node has changed before have the number of values that their storage has now; of
// others nothing is said.
void Program::want_versions(Segment& segment, const TraceNode& node,
                            const std::vector<bool>& changed) {
  for (uint32_t i = 0; i < node.num_inputs; ++i) {
    const Access& access = trace_.accesses[node.first_access + i];
    if (access.value == kAbsent || trace_.values[access.value].inside || changed[access.value])
      continue;
    const int32_t input = wiring_.input_of_access[node.first_access + i];
    const auto fixed =
        std::find(fixed_.begin(), fixed_.end(), trace_.values[access.value].held.get());
    const int32_t source = input >= 0 ? ~input : static_cast<int32_t>(fixed - fixed_.begin());
    segment.add_version(i, static_cast<uint32_t>(versioned_.size()));
    versioned_.push_back(source);
  }
}

void Program::build_segments() {
  std::vector<bool> known(trace_.values.size()), changed(trace_.values.size());
  for (size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = trace_.parts[p];
    // What the host does between two parts may have changed anything from outside.
    if (p > 0) changed.assign(changed.size(), true);
    Segment& segment = parts_[p].segment;
    for (uint32_t i = part.first_node; i < part.end_node; ++i) {
      const TraceNode& node = trace_.nodes[i];
      add_node(segment, node, arena_offset_[trace_.values.size() + i]);
      if (node.plan->wants_versions) want_versions(segment, node, changed);
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
        segment.births.push_back({i - part.first_node, place, trace_.values[access.value].bytes});
      }
    }
    segment.finish();
  }
}

void Program::find_overlaps() {
  for (size_t a = 0; a < trace_.inputs.size(); ++a)
    for (size_t b = a + 1; b < trace_.inputs.size(); ++b) {
      const Input &x = trace_.inputs[a], &y = trace_.inputs[b];
      if (x.id == y.id && x.offset < y.offset + y.extent && y.offset < x.offset + x.extent)
        overlaps_.push_back({a, b, static_cast<int64_t>(y.offset - x.offset)});
    }
}

// The memory of a call's arguments is not needed any more, unless a program is pinned to it.
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
