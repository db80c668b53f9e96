#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/recorded_calls.h>
#include <tenon/core/dispatch/record.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/dispatch/written.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/graph/recorder.h>

namespace tenon::graph {

Recorder::Recorder() : ForkMember(ForkOrder::tables) { join(); }

Recorder& Recorder::instance() {
  static constinit NeverDestroyed<Recorder> recorder;
  return recorder.get();
}

void Recorder::after_fork(bool in_child) {
  // The thread that was recorded may not exist here.
  if (in_child && recording::recorded_thread.load() != pthread_self()) {
    recording::recorded_thread.store(0);
    places_.clear();
    host_places_.clear();
    host_depth_ = 0;
  }
  lock_.unlock();
}

namespace {

constexpr const char* kDrawnBefore = "it uses random numbers that were drawn before the call";

uint64_t offset_of(const TensorImpl& t) {
  return static_cast<uint64_t>(t.offset) * size_of(t.dtype);
}

Input input_of(const TensorImpl& t) {
  Input input;
  input.id = t.storage.get();
  input.held = t.storage;
  input.offset = offset_of(t);
  input.extent = t.numel ? bytes_up_to_end(t) - input.offset : 0;
  return input;
}

}  // namespace

bool Recorder::begin(std::span<const Tensor* const> arguments) {
  pthread_t nobody = 0;
  recording::listener.store(this, std::memory_order_release);
  if (!recording::recorded_thread.compare_exchange_strong(nobody, pthread_self())) return false;
  try {
    recording::calls_begin();
    trace_ = Trace();
    trace_.parts.emplace_back();
    for (size_t i = 0; i < arguments.size(); ++i) {
      arguments_.push_back(arguments[i]->impl().get());
      if (!arguments[i]->defined()) continue;
      Input& input = trace_.inputs.emplace_back(input_of(impl_of(*arguments[i])));
      input.argument = static_cast<int32_t>(i);
    }
  } catch (...) {
    abandon();
    throw;
  }
  return true;
}

// Another thread may be recorded as soon as this one is not, so that comes last. Tensors end after
// it: what they hold may be anything.
void Recorder::reset() noexcept {
  const std::vector<Tensor> ended = std::exchange(kept_, {});
  {
    std::lock_guard lock(lock_);
    places_.clear();
    host_places_.clear();
    live_bytes_ = 0;
  }
  host_depth_ = work_depth_ = 0;
  made_on_host_ = false;
  version_marks_.clear();
  last_writes_.clear();
  works_ = 0;
  draws_.clear();
  draw_used_.clear();
  changed_leaves_.clear();
  held_handles_.clear();
  history_ = nullptr;
  arguments_.clear();
  recording::recorded_thread.store(0, std::memory_order_release);
}

void Recorder::abandon() noexcept {
  const Trace ended = std::exchange(trace_, Trace());
  reset();
}

// ---- memory

void Recorder::allocated(const Storage& storage, bool for_host) {
  if (work_depth_ > 0) return;  // the work reports what it makes
  std::lock_guard lock(lock_);
  if (host_depth_ > 0) {  // what the host makes counts as from outside
    host_places_[&storage] = kBorn;
    return;
  }
  places_[&storage] = for_host ? kBornOnHost : kBorn;
}

void Recorder::freed(const Storage& storage) noexcept {
  std::lock_guard lock(lock_);
  host_places_.erase(&storage);
  const auto found = places_.find(&storage);
  if (found == places_.end()) return;
  if (found->second < kBornOnHost) live_bytes_ -= storage.bytes;
  places_.erase(found);
}

uint32_t Recorder::value_of(Storage& storage) {
  std::lock_guard lock(lock_);
  const auto [found, fresh] = places_.try_emplace(&storage, kAbsent);
  uint32_t& place = found->second;
  if (place < kBornOnHost) return place;
  Value value{.inside = !fresh, .id = &storage, .held = {}, .bytes = storage.bytes};
  value.device = storage.context->device;
  if (place == kBornOnHost) refuse("it uses a tensor that the host filled meanwhile");
  if (fresh)
    value.held = Ref<Storage>::share(&storage);
  else
    live_bytes_ += storage.bytes;
  trace_.inside_bytes = std::max(trace_.inside_bytes, live_bytes_);
  place = static_cast<uint32_t>(trace_.values.size());
  trace_.values.push_back(std::move(value));
  version_marks_.push_back(storage.version.load(std::memory_order_acquire));
  last_writes_.push_back(0);
  return place;
}

Access Recorder::access(TensorImpl& tensor) {
  return {value_of(*tensor.storage), offset_of(tensor)};
}

// ---- work

PlanEntry& Recorder::entry_of(const Launch& launch) {
  return const_cast<PlanEntry&>(static_cast<const PlanEntry&>(*launch.plan));
}

// Adds the numbers; the accesses are to be the next.
TraceNode Recorder::node_of(const Launch& launch, size_t first_access,
                            std::vector<Scalar>& scalars) {
  PlanEntry& entry = entry_of(launch);
  TraceNode node;
  node.plan = Ref<PlanEntry>::share(&entry);
  node.path = current_path();
  node.outputs_hold_values = launch.outputs_hold_values;
  node.flat = entry.flattened;
  if (launch.shape) node.shape = *launch.shape;
  node.first_access = static_cast<uint32_t>(first_access);
  node.num_inputs = launch.num_inputs, node.num_outputs = launch.num_outputs;
  node.first_scalar = static_cast<uint32_t>(scalars.size());
  node.num_scalars = launch.num_scalars;
  const auto* first = reinterpret_cast<const Scalar*>(launch.scalars);
  scalars.insert(scalars.end(), first, first + launch.num_scalars);
  return node;
}

void Recorder::launched(const Launch& launch, std::span<const Tensor* const> inputs,
                        std::span<TensorImpl* const> outputs) {
  if (work_depth_ > 0) return;
  if (host_depth_ > 0 && trace_.refusal.empty()) return launched_by_host(launch, inputs, outputs);
  if (ignores()) return;
  auto& entry = entry_of(launch);
  if (entry.context != &entry.context->main) return refuse("a plan runs beside the others");
  if (trace_.nodes.empty()) trace_.device = entry.device;
  if (entry.context->stream->capturing()) return refuse("a stream graph is captured");
  TraceNode node = node_of(launch, trace_.accesses.size(), trace_.scalars);
  node.repeated = repeated_depth_ > 0;
  for (auto* t : inputs) trace_.accesses.push_back(t ? access(impl_of(*t)) : Access());
  for (auto* t : outputs) trace_.accesses.push_back(t ? access(*t) : Access());
  if (entry.call.op->draws) {
    const Scalar* const scalars = trace_.scalars.data() + node.first_scalar;
    for (size_t i = draws_.size(); i-- > 0 && node.draw < 0;)
      if (draws_[i].seed == static_cast<uint64_t>(scalars[0].value.i) &&
          draws_[i].offset == static_cast<uint64_t>(scalars[1].value.i))
        node.draw = static_cast<int32_t>(i);
    if (node.draw < 0) return refuse(kDrawnBefore);
    draw_used_[static_cast<size_t>(node.draw)] = true;
  }
  add_node(std::move(node));
}

void Recorder::add_node(TraceNode&& node) {
  trace_.nodes.push_back(std::move(node));
  const auto count = static_cast<uint32_t>(trace_.nodes.size());
  const TraceNode& added = trace_.nodes.back();
  for (uint32_t i = 0; i < added.num_outputs; ++i) {
    const uint32_t value = trace_.outputs_of(added)[i].value;
    if (value == kAbsent) continue;
    trace_.values[value].written = true;
    last_writes_[value] = count;
  }
}

void Recorder::drew(const RandomState& state) {
  // A replay draws all its numbers before the first part, and those of a step would come behind.
  if (host_depth_ > 0 && trace_.refusal.empty())
    trace_.refusal = "the step of an optimizer draws random numbers or sets them" + path_suffix();
  if (ignores()) return;
  if (repeated_depth_ > 0) {
    if (std::find(draws_.begin(), draws_.end(), state) == draws_.end()) refuse(kDrawnBefore);
    return;
  }
  draws_.push_back(state);
  draw_used_.push_back(false);
}

void Recorder::refuse(const std::string& why) {
  if (!ignores()) trace_.refusal = why + path_suffix();
}

void Recorder::reads(const char* what) {
  if (ignores()) return;
  std::string after;
  if (!trace_.nodes.empty()) after = fmt::format(", after {}", trace_.nodes.back().describe());
  throw ValueError(
      fmt::format("{} is read inside a function that tenon::compile records{}{}: a program runs "
                  "without the host, which could not decide by it. Return the tensor and read it "
                  "outside, choose by where(), or leave the reading out of the function",
                  what, path_suffix(), after));
}

// ---- gradients

Leaf& Recorder::leaf_of(TensorImpl& leaf) {
  for (auto& known : trace_.leaves)
    if (known.tensor.get() == &leaf) return known;
  Leaf& added = trace_.leaves.emplace_back();
  added.tensor = Ref<TensorImpl>::share(&leaf);
  added.shared = leaf.autograd && leaf.autograd->replicas;
  return added;
}

void Recorder::asks_gradient(TensorImpl& leaf) {
  if (ignores() || (leaf.autograd && leaf.autograd->node)) return;
  Leaf& found = leaf_of(leaf);
  if (found.replaced || found.asked) return;
  if (found.shared && !leaf.autograd->replicas->held.empty())
    return refuse("gradients are summed that an earlier pass left on several devices (no_sync)");
  found.asked = true;
  if (!leaf.autograd || !leaf.autograd->grad.defined()) return;
  const TensorImpl& grad = impl_of(leaf.autograd->grad);
  found.had = true;
  found.shape = grad.shape, found.strides = grad.strides;
  Input& input = trace_.inputs.emplace_back(input_of(grad));
  input.leaf = static_cast<int32_t>(&found - trace_.leaves.data());
}

void Recorder::replaces_gradient(TensorImpl& leaf) {
  if (ignores()) return;
  if (leaf.autograd && leaf.autograd->node)
    return refuse("a tensor that is no leaf has a gradient");
  if (is_hooked(leaf)) return refuse("a leaf has a hook, which a program would not call");
  Leaf& found = leaf_of(leaf);
  found.replaced = true;
  const auto place = static_cast<size_t>(&found - trace_.leaves.data());
  if (std::find(changed_leaves_.begin(), changed_leaves_.end(), place) == changed_leaves_.end())
    changed_leaves_.push_back(place);
}

// ---- parts

void Recorder::mark_versions() {
  for (size_t i = 0; i < trace_.values.size(); ++i)
    if (!trace_.values[i].inside)
      version_marks_[i] = trace_.values[i].held->version.load(std::memory_order_acquire);
}

// What versions were added since the marks.
void Recorder::note_versions(std::vector<VersionChange>& changes) {
  for (size_t i = 0; i < trace_.values.size(); ++i) {
    if (trace_.values[i].inside) continue;
    const uint64_t now = trace_.values[i].held->version.load(std::memory_order_acquire);
    if (now != version_marks_[i])
      changes.push_back({static_cast<uint32_t>(i), now - version_marks_[i], works_});
    version_marks_[i] = now;
  }
}

void Recorder::end_part() {
  Part& part = trace_.parts.back();
  part.end_node = static_cast<uint32_t>(trace_.nodes.size());
  note_versions(part.versions);
  for (const size_t place : changed_leaves_) {
    const TensorImpl& leaf = *trace_.leaves[place].tensor;
    const bool has = leaf.autograd && leaf.autograd->grad.defined();
    part.binds.push_back({static_cast<uint32_t>(place), has ? keep(leaf.autograd->grad) : -1});
  }
  changed_leaves_.clear();
}

// ---- the end

// Returns the number of a tensor that lives on after the call.
int32_t Recorder::keep(const Tensor& tensor) {
  if (const int32_t known = find_kept(tensor); known >= 0) return known;
  const TensorImpl& t = impl_of(tensor);
  Kept kept = values_of(tensor);
  if (t.autograd) {
    if (t.autograd->replicas || is_hooked(t) || t.autograd->retained)
      refuse("a result has hooks, replicas, or a gradient that it retains");
    if (!history_ || !history_->covers(t)) {
      if (t.autograd->node) {
        kept.node = spent_history_like(tensor);
        if (!kept.node) refuse("a gradient has a history of its own, by create_graph");
      }
      kept.requires_grad = t.autograd->requires_grad;
      kept.output = t.autograd->output;
    }
  }
  return add_kept(tensor, std::move(kept));
}

// A leaf that only the recorder still holds has ended with the call.
void Recorder::forget_ended_leaves() {
  for (Leaf& leaf : trace_.leaves)
    if (leaf.tensor.ref().unique()) leaf = Leaf();
  std::erase_if(changed_leaves_, [&](size_t place) { return !trace_.leaves[place].tensor; });
  for (Part& part : trace_.parts)
    std::erase_if(part.binds, [&](const Bind& b) { return !trace_.leaves[b.leaf].tensor; });
}

void Recorder::keep_results(std::span<const Tensor> results) {
  for (auto& tensor : results) {
    Result& result = trace_.results.emplace_back();
    if (!tensor.defined()) continue;
    TensorImpl& t = impl_of(tensor);
    const auto same = std::find(arguments_.begin(), arguments_.end(), &t);
    if (same != arguments_.end())
      result.argument = static_cast<int32_t>(same - arguments_.begin());
    else if (trace_.values[value_of(*t.storage)].inside || t.refs == 1)
      result.kept = keep(tensor);
    else
      result.outside = tensor.impl();
  }
}

// The gradients that parts leave are new tensors: a program makes them again.
void Recorder::require_new_gradients() {
  for (auto& part : trace_.parts)
    for (auto& bind : part.binds)
      if (bind.kept >= 0 &&
          !trace_.values[trace_.kept[static_cast<size_t>(bind.kept)].value].inside)
        refuse("a tensor from outside is set as a gradient");
}

// Which arguments are leaves that the call asked for gradients, or gave some.
void Recorder::note_leaves() {
  for (Input& input : trace_.inputs)
    for (size_t i = 0; input.argument >= 0 && i < trace_.leaves.size(); ++i)
      if (trace_.leaves[i].tensor.get() == arguments_[static_cast<size_t>(input.argument)])
        input.is_leaf = static_cast<int32_t>(i);
}

Trace Recorder::end(std::span<const Tensor> results, History* history) {
  forget_ended_leaves();
  if (trace_.refusal.empty()) {
    history_ = history;
    end_part();
    keep_results(results);
    if (history) keep_held(*history);
    require_new_gradients();
    refuse_passes_to_outside();
    if (!all_are_known())
      refuse(
          "a tensor that was made inside is kept by something that is no result and no gradient; "
          "return it instead");
    if (std::find(draw_used_.begin(), draw_used_.end(), false) != draw_used_.end())
      refuse("random numbers are drawn that no operator uses");
    trace_.num_draws = static_cast<uint32_t>(draws_.size());
    for (size_t i = 0; i < kept_.size(); ++i) {
      const Storage& storage = *impl_of(kept_[i]).storage;
      trace_.kept[i].version = storage.version.load(std::memory_order_acquire);
      trace_.kept[i].written = storage.written.load(std::memory_order_relaxed);
    }
  }
  note_leaves();
  if (made_on_host_) trace_.host.fault = "it made its state in the call that was recorded";
  Trace done = std::move(trace_);
  reset();
  return done;
}

}  // namespace tenon::graph
