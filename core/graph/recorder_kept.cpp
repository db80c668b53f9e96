// What a recorder notes about tensors that outlive a call.
#include <algorithm>
#include <utility>

#include <tenon/core/dispatch/written.h>
#include <tenon/core/graph/recorder.h>

namespace tenon::graph {

int32_t Recorder::find_kept(const Tensor& tensor) const {
  const auto known =
      std::find_if(kept_.begin(), kept_.end(), [&](const Tensor& t) { return t.is_same(tensor); });
  return known == kept_.end() ? -1 : static_cast<int32_t>(known - kept_.begin());
}

Kept Recorder::values_of(const Tensor& tensor) {
  const TensorImpl& t = impl_of(tensor);
  Kept kept;
  kept.value = value_of(*t.storage);
  kept.dtype = t.dtype;
  kept.shape = t.shape, kept.strides = t.strides, kept.offset = t.offset;
  return kept;
}

int32_t Recorder::add_kept(const Tensor& tensor, Kept kept) {
  kept_.push_back(tensor);
  held_handles_.push_back(0);
  trace_.kept.push_back(std::move(kept));
  return static_cast<int32_t>(kept_.size()) - 1;
}

// Returns the argument of whose memory the tensor is a part, or -1.
int32_t Recorder::argument_with(const TensorImpl& tensor) const {
  const uint64_t begin = static_cast<uint64_t>(tensor.offset) * size_of(tensor.dtype),
                 end = tensor.numel ? bytes_up_to_end(tensor) : begin;
  for (auto& input : trace_.inputs)
    if (input.argument >= 0 && input.id == tensor.storage.get() && begin >= input.offset &&
        end <= input.offset + input.extent)
      return input.argument;
  return -1;
}

// Tensors that gradient rules will read are added behind the results, except arguments, which each
// call brings itself. all_are_known counts one handle for each result, so one of the history's
// handles is not counted here.
void Recorder::keep_held(History& history) {
  for (auto& kept : history.kept_tensors()) {
    kept.argument = argument_with(*kept.tensor);
    if (kept.argument >= 0) continue;
    const Tensor tensor(Ref<TensorImpl>::share(kept.tensor));
    int32_t place = find_kept(tensor);
    if (place < 0) place = add_kept(tensor, values_of(tensor));
    held_handles_[static_cast<size_t>(place)] += kept.handles - 1;
    trace_.results.emplace_back().kept = place;
    ++trace_.num_following;
  }
}

void Recorder::gets_history(TensorImpl& tensor) {
  if (ignores() || trace_.values[value_of(*tensor.storage)].inside) return;
  refuse(
      "an argument, or a tensor from outside, is changed in place and gets a history by that; "
      "change it under NoGrad, or by a value that is detached");
}

uint32_t Recorder::handles_of(const Storage& storage) const {
  const auto count = [&](const auto& all) {
    return std::count_if(all.begin(), all.end(),
                         [&](auto& each) { return each.held.get() == &storage; });
  };
  return static_cast<uint32_t>(count(trace_.inputs) + count(trace_.values) +
                               count(trace_.host.values));
}

// A backward pass inside the function would continue through the history of an argument, into nodes
// that a program does not know.
void Recorder::refuse_passes_to_outside() {
  const bool history = std::any_of(arguments_.begin(), arguments_.end(), [](const TensorImpl* t) {
    return t && t->autograd && t->autograd->node;
  });
  for (auto& part : trace_.parts)
    for (auto& bind : part.binds)
      if (history && bind.kept >= 0)
        return refuse(
            "an argument has a history, and a backward pass is inside; pass detach(), or return "
            "the loss and call backward() outside");
}

// Whether each tensor that was made inside the function and still lives is a result or a gradient.
// Any other owner of one would not get a new tensor from a replay. The recorder itself has one more
// handle of each kept tensor.
bool Recorder::all_are_known() const {
  std::vector<uint32_t> handles(kept_.size(), 1), tensors(trace_.values.size());
  for (auto& result : trace_.results)
    if (result.kept >= 0) ++handles[static_cast<size_t>(result.kept)];
  for (auto& leaf : trace_.leaves)
    for (size_t i = 0; i < kept_.size(); ++i)
      if (leaf.tensor && leaf.tensor->autograd && kept_[i].is_same(leaf.tensor->autograd->grad))
        ++handles[i];
  for (size_t i = 0; i < kept_.size(); ++i) {
    const uint32_t value = trace_.kept[i].value;
    const uint32_t known = handles[i] + held_handles_[i];
    if (trace_.values[value].inside && kept_[i].impl()->refs != known) return false;
    ++tensors[value];
  }
  std::lock_guard lock(lock_);
  for (auto& [storage, place] : places_) {
    if (place >= kBornOnHost) return false;
    if (trace_.values[place].inside && storage->refs != tensors[place]) return false;
  }
  return true;
}

}  // namespace tenon::graph
