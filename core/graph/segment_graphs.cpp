#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/graph/program.h>
#include <tenon/core/graph/segment_graphs.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/observe.h>

namespace tenon::graph {

SegmentGraphs::SegmentGraphs(DeviceContext& context, const Segment& segment,
                             GraphRefusals& refusals)
    : context_(context), refusals_(refusals) {
  std::map<int32_t, uint32_t> known;
  const auto launches = segment.launches();
  for (auto& sources : segment.sources()) {
    const Launch& launch = launches[plans_.size()];
    Plan& plan = plans_.emplace_back();
    // A plan of another plugin may do things with this device's stream that cannot be recorded.
    plan.alone = sources.others || launch.plan->api != &context.backend.api();
    for (const int32_t place : sources.places) {
      const auto [at, is_new] = known.emplace(place, static_cast<uint32_t>(sources_.size()));
      if (is_new) sources_.push_back({.place = place});
      plan.sources.push_back(at->second);
    }
  }
}

size_t SegmentGraphs::num_graphs() const {
  return static_cast<size_t>(
      std::count_if(runs_.begin(), runs_.end(), [](const Run& run) { return bool(run.graph); }));
}
size_t SegmentGraphs::num_plans() const {
  size_t plans = 0;
  for (auto& run : runs_) plans += run.graph ? run.end - run.first : 0;
  return plans;
}

// Plans are run one by one while somebody watches them, or waits after each to learn which failed.
uint64_t SegmentGraphs::run(QueuedSegment& queued) {
  std::erase_if(replaced_, [](auto& graph) { return graph->is_done(); });
  if (refusals_.for_good) drop_all();
  if (refusals_.for_good || sync_mode() || observe::watched())
    return context_.stream->run_all(queued);
  ++replays_;
  look_at(queued.frame);
  queued.prepare();
  drop_changed();
  if (replays_ >= next_look_) make_graphs(queued);
  size_t next = 0;
  for (auto& run : runs_) {
    run_plans(queued, next, run.first);
    if (!launch(run, queued)) run_plans(queued, run.first, run.end);
    next = run.end;
  }
  run_plans(queued, next, plans_.size());
  return context_.stream->last();
}

void SegmentGraphs::run_plans(const QueuedSegment& queued, size_t first, size_t end) {
  DeviceStream& stream = *context_.stream;
  const auto launches = queued.launches();
  for (size_t i = first; i < end; ++i) {
    if (stream.failures.any()) [[unlikely]]
      queued.forget(stream.failures, i);
    const ModulePath queued_by(queued.path(i));
    stream.run(launches[i]);
  }
}

// Memory that another allocator owns may be returned to the system without being counted here.
void SegmentGraphs::look_at(const Frame& frame) {
  for (auto& source : sources_) {
    uint64_t bits = 0;
    if (source.place < 0) {
      bits = static_cast<uint64_t>(frame.numbers[static_cast<size_t>(~source.place)].i);
    } else {
      const auto base = static_cast<size_t>(source.place);
      const Storage* storage = frame.storages[base];
      bits = reinterpret_cast<uintptr_t>(frame.bases[base]);
      source.may_go = !storage || storage->allocator != context_.memory.get();
    }
    if (source.bits == bits)
      ++source.same;
    else
      source.bits = bits, source.before = std::exchange(source.same, 0);
  }
}

bool SegmentGraphs::is_steady(const Plan& plan) const {
  return !plan.alone && std::all_of(plan.sources.begin(), plan.sources.end(), [&](uint32_t at) {
    const Source& source = sources_[at];
    return source.same >= source.needs && !source.may_go;
  });
}

// A graph replaces many launches by one, but that one takes longer than the launch of a plan. So
// short runs of plans are left out.
std::vector<SegmentGraphs::Run> SegmentGraphs::steady_runs() const {
  std::vector<Run> all;
  for (size_t first = 0; first < plans_.size();) {
    size_t end = first;
    std::map<uint32_t, uint64_t> sources;
    for (; end < plans_.size() && is_steady(plans_[end]); ++end)
      for (const uint32_t at : plans_[end].sources) sources[at] = sources_[at].bits;
    if (end - first >= kFewest)
      all.push_back({first, end, {sources.begin(), sources.end()}, nullptr});
    first = end + 1;
  }
  return all;
}

void SegmentGraphs::make_graphs(const QueuedSegment& queued) try {
  next_look_ = replays_ + interval_;
  if (interval_ == kLongest) after_change_ = 1;
  interval_ = std::min(4 * interval_, kLongest);
  std::vector<Run> now = steady_runs();
  replaced_.reserve(replaced_.size() + runs_.size() + now.size());
  for (auto& run : now)
    for (auto& before : runs_)
      if (before.first == run.first && before.end == run.end && before.sources == run.sources)
        run.graph = std::move(before.graph);
  drop_all();
  runs_ = std::move(now);
  for (auto& run : runs_)
    if (!run.graph && !refusals_.for_good) record(run, queued);
} catch (const std::bad_alloc&) {
  refuse("no memory", {});
}

void SegmentGraphs::record(Run& run, const QueuedSegment& queued) {
  LaunchGraph::Refusal refusal;
  run.graph = LaunchGraph::record(*context_.stream, queued, run.first, run.end, refusal);
  if (run.graph || refusal.why.empty()) return;
  if (!refusal.launch) {
    // Other work at the same time may have made the recording fail, so it is tried again.
    if (++refusals_.failed >= kMaxFailed) return refuse("the recording failed: ", refusal.why);
    next_look_ = replays_ + 1;
    return;
  }
  const Launch& launch = queued.launches()[*refusal.launch];
  refusals_.plans.push_back(
      fmt::format("{}: {}", launch.plan->describe(launch.shape), refusal.why));
  if (refusals_.plans.size() > kMaxRefused)
    return refuse("too many operators cannot be recorded, such as ", refusals_.plans.back());
  plans_[*refusal.launch].alone = true;
  next_look_ = replays_ + 1;
}

// Memory that was returned to the system may have been allocated again at the same address.
void SegmentGraphs::drop_changed() {
  const uint64_t frees = context_.memory->stats().system_frees;
  const bool returned = std::exchange(frees_, frees) != frees;
  bool changed = false;
  for (auto& run : runs_) {
    if (!run.graph || (!has_changed(run) && (!returned || run.sources.empty()))) continue;
    drop(run);
    changed = true;
  }
  if (!changed) return;
  next_look_ = std::min(next_look_, replays_ + after_change_);
  after_change_ = std::min(2 * after_change_, kLongest);
  interval_ = 4;
}

// A graph that was launched often enough has paid for its recording, and the next one will too, so
// that is made soon. Addresses change now and then: when the function itself runs between replays,
// gradients may get other memory.
bool SegmentGraphs::has_changed(const Run& run) {
  constexpr uint64_t kMaxNeeded = 64, kPays = 4;
  bool changed = false;
  for (auto& [at, bits] : run.sources) {
    Source& source = sources_[at];
    if (source.bits == bits && !source.may_go) continue;
    const bool has_paid = source.bits != bits && source.before >= kPays * source.needs;
    source.needs = has_paid ? kSteady : std::min(4 * source.needs, kMaxNeeded);
    changed = true;
  }
  return changed;
}

void SegmentGraphs::drop_all() {
  for (auto& run : runs_)
    if (run.graph) drop(run);
  runs_.clear();
}

// If an input was never computed, the graph is not launched: then each plan finds out for itself
// whether it can still run.
bool SegmentGraphs::launch(Run& run, const QueuedSegment& queued) {
  if (!run.graph || refusals_.for_good) return false;
  std::string why;
  if (run.graph->launch(queued, why)) return true;
  if (!why.empty()) refuse("a launch failed: ", why);
  return false;
}

void SegmentGraphs::refuse(const char* what, const std::string& why) noexcept {
  refusals_.for_good = true;
  try {
    refusals_.why = what + why;
  } catch (const std::bad_alloc&) {  // plans run one by one then, and no reason is told
  }
}

// ---- of a program

void Program::make_graphs() {
  graph_refusals_.resize(schedule_.devices.size());
  for (auto& part : parts_)
    for (auto& group : part.groups)
      for (auto& run : group.segments)
        if (wants_graphs_ && run.segment.size() >= SegmentGraphs::kFewest &&
            can_record(*run.context->stream))
          run.graphs = std::make_unique<SegmentGraphs>(*run.context, run.segment,
                                                       graph_refusals_[run.device]);
}

std::vector<std::string> Program::graph_notes() const {
  std::vector<std::string> notes;
  for (size_t d = 0; d < schedule_.devices.size(); ++d) {
    size_t plans = 0, in_graphs = 0, graphs = 0;
    bool may_have_some = false;
    for (auto& part : parts_)
      for (auto& group : part.groups)
        for (auto& run : group.segments) {
          if (run.device != d) continue;
          plans += run.segment.size();
          if (!run.graphs) continue;
          may_have_some = true;
          in_graphs += run.graphs->num_plans();
          graphs += run.graphs->num_graphs();
        }
    if (!may_have_some) continue;
    const std::string& name = schedule_.devices[d]->name;
    const GraphRefusals& refusals = graph_refusals_[d];
    notes.push_back(refusals.for_good
                        ? fmt::format("device graphs of {}: none, because {}", name, refusals.why)
                        : fmt::format("device graphs of {}: {}, for {} of {} plans", name, graphs,
                                      in_graphs, plans));
    for (auto& refused : refusals.plans)
      notes.push_back(
          fmt::format("in no device graph, because it cannot be recorded: {}", refused));
  }
  return notes;
}

}  // namespace tenon::graph
