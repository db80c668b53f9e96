#include <algorithm>
#include <utility>

#include <tenon/core/graph/program.h>
#include <tenon/core/graph/replay.h>
#include <tenon/core/random.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/order.h>
#include <tenon/core/runtime/profile_log.h>

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

// ---- a replay

void Program::take_inputs(std::span<const Tensor* const> arguments) {
  DeviceStream& stream = *context_.stream;
  for (size_t k = 0; k < trace_.inputs.size(); ++k) {
    const TensorImpl* tensor = tensor_of(trace_.inputs[k], arguments);
    input_storages_[k] = tensor ? tensor->storage : Ref<Storage>();
    input_data_[k] = tensor ? static_cast<char*>(tensor->data()) : nullptr;
    if (tensor) stream.tell_of(await_values(context_, *tensor->storage));
  }
  for (auto* storage : fixed_) stream.tell_of(await_values(context_, *storage));
}

// A gradient of the last call that nobody else has, and that this call replaces by another like it,
// gives its memory to that.
bool Program::may_overwrite(const Fresh& fresh, const TensorImpl* gradient) const {
  if (!gradient || gradient->refs.load(std::memory_order_acquire) != 1 || gradient->autograd)
    return false;
  const Storage& storage = *gradient->storage;
  const Kept& kept = trace_.kept[static_cast<size_t>(fresh.kept)];
  return storage.refs.load(std::memory_order_acquire) == 1 && !storage.adopted() &&
         !storage.exported.load(std::memory_order_relaxed) && storage.bytes == fresh.bytes &&
         storage.context == &context_ && gradient->dtype == kept.dtype &&
         gradient->offset == kept.offset && gradient->shape == kept.shape &&
         gradient->strides == kept.strides;
}

void Program::take_fresh() {
  for (size_t i = 0; i < fresh_.size(); ++i) {
    const Fresh& fresh = fresh_[i];
    if (fresh.leaf >= 0) {
      const TensorImpl& leaf = *trace_.leaves[static_cast<size_t>(fresh.leaf)].tensor;
      const Tensor none, &grad = leaf.autograd ? leaf.autograd->grad : none;
      if (may_overwrite(fresh, grad.impl().get())) {
        kept_tensors_[static_cast<size_t>(fresh.kept)] = grad;
        fresh_storages_[i] = impl_of(grad).storage;
        continue;
      }
    }
    fresh_storages_[i] = context_.memory->allocate(fresh.bytes);
  }
}

Frame& Program::free_frame() {
  constexpr size_t kMost = 64;
  if (!frames_.empty()) {
    next_frame_ = (next_frame_ + 1) % frames_.size();
    Frame& oldest = *frames_[next_frame_];
    if (frames_.size() == kMost) context_.stream->wait(oldest.ticket);
    if (context_.stream->reached(oldest.ticket)) return oldest;
  }
  auto made = std::make_unique<Frame>();
  for (auto& part : parts_)
    made->segments.push_back(std::make_unique<QueuedSegment>(part.segment, *made));
  made->bases.resize(trace_.inputs.size() + fresh_.size());
  made->draws.resize(2 * size_t{trace_.num_draws});
  made->versions.resize(versioned_.size());
  return **frames_.insert(frames_.begin() + static_cast<ptrdiff_t>(next_frame_), std::move(made));
}

void Program::fill(Frame& frame) {
  std::copy(input_data_.begin(), input_data_.end(), frame.bases.begin());
  for (size_t i = 0; i < fresh_.size(); ++i)
    frame.bases[input_data_.size() + i] = static_cast<char*>(fresh_storages_[i]->data);
  for (size_t i = 0; i < versioned_.size(); ++i) {
    const int32_t source = versioned_[i];
    Storage& storage = source >= 0 ? *fixed_[static_cast<size_t>(source)]
                                   : *input_storages_[static_cast<size_t>(~source)];
    frame.versions[i] = storage.values_number();
  }
  for (uint32_t i = 0; i < trace_.num_draws; ++i) {
    RandomState state;
    if (generator)
      state = *generator, ++generator->offset;
    else
      state = next_random();
    frame.draws[2 * i].i = static_cast<int64_t>(state.seed);
    frame.draws[2 * i + 1].i = static_cast<int64_t>(state.offset);
  }
  frame.numbers = numbers;
  frame.queued_ns = profiling::queued_now();
}

Tensor Program::tensor_for(int32_t place) {
  Tensor& tensor = kept_tensors_[static_cast<size_t>(place)];
  if (tensor.defined()) return tensor;
  const Kept& kept = trace_.kept[static_cast<size_t>(place)];
  const int32_t fresh = fresh_of_value_[kept.value];
  tensor = Tensor(Ref<TensorImpl>::adopt(
      new TensorImpl(kept.dtype, context_.device, kept.shape, kept.strides, kept.offset,
                     fresh >= 0 ? fresh_storages_[static_cast<size_t>(fresh)]
                                : trace_.values[kept.value].held.ref())));
  if (kept.requires_grad) {
    AutogradMeta& meta = impl_of(tensor).meta();
    meta.requires_grad = true;
    meta.node = kept.node;
    meta.output = kept.output;
  }
  return tensor;
}

void Program::bind(const Part& part) {
  for (auto& b : part.binds) {
    const Tensor leaf(trace_.leaves[b.leaf].tensor.ref());
    const Tensor grad = b.kept >= 0 ? tensor_for(b.kept) : Tensor();
    if (!leaf.grad().is_same(grad)) Tensor(leaf).set_grad(grad);
  }
}

void Program::run_part(size_t i, Frame& frame) {
  RunPart& part = parts_[i];
  DeviceStream& stream = *context_.stream;
  const auto storage_of = [&](const Change& change) -> Storage& {
    return change.fixed ? *change.fixed : *input_storages_[change.input];
  };
  for (auto& change : part.changes) changing_.emplace_back(storage_of(change), context_);
  if (!part.segment.empty()) {
    const uint64_t ticket = stream.run_all(*frame.segments[i]);
    frame.ticket = ticket;
    for (auto& storage : input_storages_)
      if (storage) note_read(context_, *storage, ticket);
    for (auto* storage : fixed_) note_read(context_, *storage, ticket);
    for (auto& change : part.changes) note_written(context_, storage_of(change), ticket);
    for (auto& storage : fresh_storages_)
      storage->write_ticket.store(ticket, std::memory_order_release);
  }
  changing_.clear();
  for (auto& change : part.changes)
    storage_of(change).version.fetch_add(change.count - 1, std::memory_order_release);
  bind(trace_.parts[i]);
  if (sync_mode() && !part.segment.empty()) stream.wait_for_call(frame.ticket);
  if (trace_.parts[i].again) trace_.parts[i].again();
}

void Program::return_results(std::span<const Tensor* const> arguments,
                             std::vector<Tensor>& results) {
  for (auto& result : trace_.results)
    results.push_back(result.kept >= 0       ? tensor_for(result.kept)
                      : result.argument >= 0 ? *arguments[static_cast<size_t>(result.argument)]
                                             : Tensor(result.outside.ref()));
}

// New tensors have the versions that eager execution leaves.
void Program::set_versions() {
  overwritten_.clear();
  for (auto& kept : trace_.kept)
    if (const int32_t fresh = fresh_of_value_[kept.value]; fresh >= 0) {
      Storage& storage = *fresh_storages_[static_cast<size_t>(fresh)];
      storage.version.store(kept.version, std::memory_order_release);
      storage.written.store(kept.written, std::memory_order_relaxed);
    }
}

void Program::forget_call() {
  for (auto& storage : fresh_storages_) storage = {};
  for (auto& storage : input_storages_) storage = {};
  for (auto& tensor : kept_tensors_) tensor = Tensor();
  changing_.clear();
  overwritten_.clear();
}

void Program::run(std::span<const Tensor* const> arguments, std::vector<Tensor>& results) {
  struct Forget {
    Program& program;
    ~Forget() { program.forget_call(); }
  } const forget{*this};
  const FirstStreams as_recorded;
  take_inputs(arguments);
  take_fresh();
  Frame& frame = free_frame();
  results.reserve(trace_.results.size());
  for (auto& tensor : kept_tensors_)
    if (tensor.defined()) overwritten_.emplace_back(*impl_of(tensor).storage);
  fill(frame);
  for (size_t i = 0; i < parts_.size(); ++i) run_part(i, frame);
  set_versions();
  return_results(arguments, results);
  ++replays;
}

}  // namespace tenon::graph
