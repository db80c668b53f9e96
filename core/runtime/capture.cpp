#include <algorithm>
#include <mutex>

#include <fmt/core.h>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/capture.h>
#include <tenon/core/runtime/check/graph.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/order.h>
#include <tenon/core/runtime/plugin_stream.h>
#include <tenon/core/runtime/retry_until_memory.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

void Capture::touch(Storage& storage, bool written) {
  if (storage.allocator == &memory_ || !storage.data) return;
  auto [it, fresh] = outside.try_emplace(&storage, Ref<Storage>(), false);
  if (fresh) it->second.first = Ref<Storage>::share(&storage);
  it->second.second |= written;
}

void Capture::note(std::span<const Tensor* const> inputs, std::span<TensorImpl* const> outputs) {
  for (auto* t : inputs)
    if (t) touch(*impl_of(*t).storage, false);
  for (auto* t : outputs)
    if (t) touch(*t->storage, true);
}

Recording::Recording(DeviceContext& c, const plugins::CheckedCapture& api, tn_graph* graph,
                     Allocator& memory, const Capture& capture)
    : context(c),
      operators(capture.operators),
      stream_(static_cast<PluginStream&>(*c.stream)),
      api_(api),
      graph_(graph),
      memory_(memory) {
  for (auto& [storage, use] : capture.outside) (use.second ? written_ : read_).push_back(use.first);
  if (memory.checked()) check_ = std::make_unique<checked::GraphCheck>(c, memory, read_, written_);
  // An in-place change also reads what it changes.
  for (auto& s : written_) read_.push_back(s);
  for (auto& s : memory_.live_storages()) written_.push_back(s);
  poison_results(std::make_shared<const Failure>(Failure{
      TN_CODE_INVALID_ARGUMENT,
      fmt::format("this tensor is made by a stream graph of {} that has not been replayed yet",
                  c.device)}));
  context.plans->pin();
  context.add_recording(this);
}

Recording::~Recording() {
  context.remove_recording(this);
  close();
  context.plans->unpin();
  read_.clear();
  written_.clear();
  memory_.release();
}

void Recording::close() {
  std::lock_guard lock(mutex_);
  if (!graph_ || stream_.closed()) return;
  // The device may run it until then.
  retry_until_memory([&] { stream_.wait(last_replay_); });
  api_.destroy(std::exchange(graph_, nullptr));
}

void Recording::poison_results(const FailureLog::Pointer& failure) {
  for (auto& s : written_)
    if (s->allocator == &memory_) stream_.failures.poison(s->data, s->bytes, failure);
}

void Recording::replay() {
  std::lock_guard lock(mutex_);
  stream_.require_open();
  stream_.refuse_while_capturing("a stream graph cannot be replayed");
  std::vector<InPlaceChange> changes;
  changes.reserve(written_.size());
  for (auto& s : written_) changes.emplace_back(*s, context);
  for (auto& s : read_) await_values(context, *s);
  FailureLog::Pointer failure;
  if (stream_.failures.any())
    for (auto& s : read_)
      if (!failure && !stream_.failures.lost())
        failure = stream_.failures.poisoned(s->data, s->bytes);
  const bool skipped = failure != nullptr;
  if (!skipped) failure = stream_.replay(api_, graph_, last_replay_, check_.get());
  for (auto& s : read_)
    if (!skipped) note_read(context, *s, last_replay_);
  for (auto& s : written_) {
    if (!skipped) note_written(context, *s, last_replay_);
    // If nothing was queued, memory from before the capture keeps its values.
    if (s->allocator != &memory_) continue;
    if (stream_.failures.any()) stream_.failures.clear_poison(s->data, s->bytes);
    if (failure) stream_.failures.poison(s->data, s->bytes, failure);
  }
  if (sync_mode()) stream_.wait_for_call(last_replay_);
}

}  // namespace tenon
