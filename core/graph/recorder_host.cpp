// What is recorded while the host does something itself: plans that no replay runs, but from which
// a program that is stored can do without the host.
#include <mutex>
#include <utility>

#include <tenon/core/graph/recorder.h>

namespace tenon::graph {

void Recorder::begin_host_part(std::weak_ptr<const void> owner, std::function<void()> again) {
  if (host_depth_++ > 0 || !trace_.refusal.empty()) return;
  end_part();
  trace_.parts.back().owner = std::move(owner);
  trace_.parts.back().again = std::move(again);
  trace_.parts.back().first_host_node = static_cast<uint32_t>(trace_.host.nodes.size());
}

void Recorder::describe_host_part(const char* name, recording::HostNumbers numbers) {
  if (host_depth_ != 1 || !trace_.refusal.empty()) return;
  trace_.parts.back().host_name = name;
  trace_.parts.back().host_numbers = std::move(numbers);
}

// What the host made and keeps is there from the second call on.
void Recorder::forget_host_places() noexcept {
  std::lock_guard lock(lock_);
  std::erase_if(host_places_, [&](const auto& place) {
    const uint32_t at = place.second;
    const HostValue* value = at < kBornOnHost ? &trace_.host.values[at] : nullptr;
    if (value && (value->held || value->value != kAbsent)) return false;
    made_on_host_ = true;
    return true;
  });
}

void Recorder::end_host_part() noexcept {
  if (--host_depth_ > 0 || !trace_.refusal.empty()) return;
  const auto at = static_cast<uint32_t>(trace_.nodes.size());
  trace_.parts.back().end_host_node = static_cast<uint32_t>(trace_.host.nodes.size());
  forget_host_places();
  mark_versions();
  Part& part = trace_.parts.emplace_back();
  part.first_node = part.end_node = at;
}

// The value of a storage that this host part made and that is not used yet begins here.
uint32_t Recorder::host_value_of(Storage& storage) {
  std::lock_guard lock(lock_);
  const auto [found, fresh] = host_places_.try_emplace(&storage, kAbsent);
  if (found->second < kBornOnHost) return found->second;
  HostValue value{.value = kAbsent, .held = {}, .bytes = storage.bytes};
  if (fresh) {
    const auto known = places_.find(&storage);
    if (known == places_.end())
      value.held = Ref<Storage>::share(&storage);
    else if (known->second < kBornOnHost)
      value.value = known->second;
    else
      trace_.host.fault = "it uses a tensor of the function that no operator has computed";
  }
  found->second = static_cast<uint32_t>(trace_.host.values.size());
  trace_.host.values.push_back(std::move(value));
  return found->second;
}

void Recorder::launched_by_host(const Launch& launch, std::span<const Tensor* const> inputs,
                                std::span<TensorImpl* const> outputs) {
  HostPlans& host = trace_.host;
  host.nodes.push_back(node_of(launch, host.accesses.size(), host.scalars));
  const auto add = [&](const TensorImpl* t) {
    host.accesses.push_back(
        t ? Access{host_value_of(*t->storage), static_cast<uint64_t>(t->offset) * size_of(t->dtype)}
          : Access());
  };
  for (auto* t : inputs) add(t ? t->impl().get() : nullptr);
  for (auto* t : outputs) add(t);
}

}  // namespace tenon::graph
