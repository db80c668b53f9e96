// What a program does in each call.
#include <algorithm>
#include <utility>

#include <tenon/core/base/module_path.h>
#include <tenon/core/graph/program.h>
#include <tenon/core/graph/replay.h>
#include <tenon/core/graph/segment_graphs.h>
#include <tenon/core/random.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/order.h>
#include <tenon/core/runtime/profile_log.h>

namespace tenon::graph {

namespace {
// What the stream of the device knows of it before anything is done.
void await(Storage& storage) {
  DeviceContext& context = storage.context->main;
  context.stream->tell_of(await_values(context, storage));
}
}  // namespace

void Program::take_inputs(std::span<const Tensor* const> arguments) {
  for (size_t k = 0; k < trace_.inputs.size(); ++k) {
    const TensorImpl* tensor = tensor_of(trace_.inputs[k], arguments);
    input_storages_[k] = tensor ? tensor->storage : Ref<Storage>();
    input_data_[k] = tensor ? static_cast<char*>(tensor->data()) : nullptr;
    if (tensor) await(*tensor->storage);
  }
  for (auto* storage : fixed_) await(*storage);
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
         storage.context == schedule_.devices[fresh.device] && gradient->dtype == kept.dtype &&
         gradient->offset == kept.offset && gradient->shape == kept.shape &&
         gradient->strides == kept.strides;
}

void Program::take_fresh() {
  for (size_t i = 0; i < fresh_.size(); ++i) {
    const Fresh& fresh = fresh_[i];
    if (!fresh.lasts || fresh.is_made) continue;
    if (fresh.leaf >= 0) {
      const TensorImpl& leaf = *trace_.leaves[static_cast<size_t>(fresh.leaf)].tensor;
      const Tensor none, &grad = leaf.autograd ? leaf.autograd->grad : none;
      if (may_overwrite(fresh, grad.impl().get())) {
        kept_tensors_[static_cast<size_t>(fresh.kept)] = grad;
        fresh_storages_[i] = impl_of(grad).storage;
        continue;
      }
    }
    fresh_storages_[i] = schedule_.devices[fresh.device]->memory->allocate(fresh.bytes);
  }
}

Frame& Program::free_frame() {
  constexpr size_t kMax = 64;
  const auto& devices = schedule_.devices;
  if (!frames_.empty()) {
    next_frame_ = (next_frame_ + 1) % frames_.size();
    Frame& oldest = *frames_[next_frame_];
    bool reached = true;
    for (size_t d = 0; d < devices.size(); ++d) {
      if (frames_.size() == kMax) devices[d]->stream->wait(oldest.tickets[d]);
      reached = reached && devices[d]->stream->reached(oldest.tickets[d]);
    }
    if (reached) return oldest;
  }
  auto made = std::make_unique<Frame>();
  for (auto& part : parts_)
    for (auto& group : part.groups)
      for (auto& run : group.segments)
        made->segments.push_back(std::make_unique<QueuedSegment>(run.segment, *made));
  made->bases.resize(trace_.inputs.size() + fresh_.size());
  made->storages.resize(made->bases.size());
  made->draws.resize(2 * size_t{trace_.num_draws});
  made->versions.resize(versioned_.size());
  made->tickets.resize(devices.size());
  return **frames_.insert(frames_.begin() + static_cast<ptrdiff_t>(next_frame_), std::move(made));
}

void Program::fill(Frame& frame) {
  std::copy(input_data_.begin(), input_data_.end(), frame.bases.begin());
  for (size_t k = 0; k < input_storages_.size(); ++k) frame.storages[k] = input_storages_[k].get();
  for (uint32_t i = 0; i < fresh_.size(); ++i)
    if (fresh_storages_[i]) set_base(i, frame);
  for (size_t i = 0; i < versioned_.size(); ++i)
    frame.versions[i] = outside(versioned_[i]).values_number();
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
      new TensorImpl(kept.dtype, schedule_.devices[device_of_value_[kept.value]]->device,
                     kept.shape, kept.strides, kept.offset,
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

Storage& Program::outside(int32_t place) const {
  return place >= 0 ? *fixed_[static_cast<size_t>(place)]
                    : *input_storages_[static_cast<size_t>(~place)];
}

void Program::set_base(uint32_t fresh, Frame& frame) const {
  const Storage& storage = *fresh_storages_[fresh];
  frame.bases[input_data_.size() + fresh] = static_cast<char*>(storage.data);
  frame.storages[input_data_.size() + fresh] = &storage;
}

void Program::take(uint32_t fresh, Ref<Storage> storage, Frame& frame) {
  fresh_storages_[fresh] = std::move(storage);
  set_base(fresh, frame);
}

Storage& Program::storage_of(const Change& change) const {
  return change.fixed ? *change.fixed : *input_storages_[change.input];
}

void Program::run_segment(RunSegment& run, const RunGroup& group, Frame& frame) {
  DeviceContext& context = *run.context;
  if (group.awaits) {
    for (const int32_t place : run.outside) await_values(context, outside(place));
    for (const uint32_t fresh : run.fresh) await_values(context, *fresh_storages_[fresh]);
    for (const uint32_t fresh : run.written) await_uses(context, *fresh_storages_[fresh]);
  }
  QueuedSegment& queued = *frame.segments[run.place];
  const uint64_t ticket = run.graphs ? run.graphs->run(queued) : context.stream->run_all(queued);
  frame.tickets[run.device] = ticket;
  for (const int32_t place : run.outside) note_read(context, outside(place), ticket);
  for (const uint32_t change : run.changes)
    note_written(context, storage_of(group.changes[change]), ticket);
  for (const uint32_t fresh : run.written)
    fresh_storages_[fresh]->write_ticket.store(ticket, std::memory_order_release);
}

Tensor Program::tensor_at(size_t at, const HostWork::Form& form) const {
  const Access& access = trace_.accesses[at];
  Ref<Storage> storage;
  uint64_t offset = access.offset;
  if (const int32_t input = wiring_.input_of_access[at]; input >= 0) {
    const auto k = static_cast<size_t>(input);
    storage = input_storages_[k];
    offset -= trace_.inputs[k].offset;
    if (storage->data)
      offset += static_cast<uint64_t>(input_data_[k] - static_cast<char*>(storage->data));
  } else if (const int32_t fresh = fresh_of_value_[access.value]; fresh >= 0) {
    storage = fresh_storages_[static_cast<size_t>(fresh)];
  } else {
    storage = trace_.values[access.value].held.ref();
  }
  return Tensor(Ref<TensorImpl>::adopt(
      new TensorImpl(form.dtype, form.device, form.shape, form.strides,
                     static_cast<int64_t>(offset / size_of(form.dtype)), std::move(storage))));
}

void Program::run_work(uint32_t i, Frame& frame) {
  const TraceNode& node = trace_.nodes[i];
  const HostWork& work = *node.work;
  std::vector<Tensor> tensors, made;
  tensors.reserve(node.num_inputs);
  for (uint32_t k = 0; k < node.num_inputs; ++k)
    tensors.push_back(tensor_at(node.first_access + k, work.forms[k]));
  const ModulePath queued_by(node.path);
  const std::span<const Tensor> all = tensors;
  work.again(all.first(work.num_reads), all.subspan(work.num_reads), made);
  for (size_t k = 0; k < made.size(); ++k) {
    const uint32_t value = trace_.outputs_of(node)[work.num_changes + k].value;
    take(fresh_of(value), impl_of(made[k]).storage, frame);
  }
}

void Program::run_group(RunGroup& group, Frame& frame) {
  for (const uint32_t fresh : group.begins)
    take(fresh, schedule_.devices[fresh_[fresh].device]->memory->allocate(fresh_[fresh].bytes),
         frame);
  for (const uint32_t work : group.first_works) run_work(work, frame);
  for (auto& change : group.changes)
    changing_.emplace_back(storage_of(change), *schedule_.devices[change.device]);
  for (auto& run : group.segments) run_segment(run, group, frame);
  changing_.clear();
  for (auto& change : group.changes)
    storage_of(change).version.fetch_add(change.count - 1, std::memory_order_release);
  if (sync_mode())
    for (auto& run : group.segments) run.context->stream->wait_for_call(frame.tickets[run.device]);
  if (group.work >= 0) run_work(static_cast<uint32_t>(group.work), frame);
  for (const uint32_t fresh : group.ends) fresh_storages_[fresh] = {};
}

void Program::run_part(size_t i, Frame& frame) {
  for (auto& group : parts_[i].groups) run_group(group, frame);
  bind(trace_.parts[i]);
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
