// Records what a thread queues while it calls a function, below autograd.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/base/spin_lock.h>
#include <tenon/core/graph/history.h>
#include <tenon/core/graph/trace.h>
#include <tenon/core/random.h>

namespace tenon::graph {

// A process has one recorder, because any thread may free memory that belongs to a recording. Only
// one thread at a time is recorded; functions of other threads run without being recorded.
class Recorder final : public recording::Listener, ForkMember {
 public:
  Recorder();
  static Recorder& instance();

  // Begins to record the calling thread, unless one is recorded already.
  bool begin(std::span<const Tensor* const> arguments);
  // Ends the recording and returns it. `results` and `history`, which may be null, are everything
  // that the function made and that still lives.
  Trace end(std::span<const Tensor> results, History* history);
  // Ends the recording because the function threw.
  void abandon() noexcept;

  void allocated(const Storage& storage, bool for_host) override;
  void freed(const Storage& storage) noexcept override;
  void launched(const Launch& launch, std::span<const Tensor* const> inputs,
                std::span<TensorImpl* const> outputs) override;
  std::vector<Tensor> work(recording::HostWork&& work) override;
  void drew(const RandomState& state) override;
  void begin_repeated() override { ++repeated_depth_; }
  void end_repeated() noexcept override { --repeated_depth_; }
  void asks_gradient(TensorImpl& leaf) override;
  void replaces_gradient(TensorImpl& leaf) override;
  void gets_history(TensorImpl& tensor) override;
  uint32_t handles_of(const Storage& storage) const override;
  void reads(const char* what) override;
  void refuse(const std::string& why) override;
  void begin_host_part(std::weak_ptr<const void> owner, std::function<void()> again) override;
  void describe_host_part(const char* name, recording::HostNumbers numbers) override;
  void end_host_part() noexcept override;

 private:
  void before_fork() override { lock_.lock(); }
  void after_fork(bool in_child) override;

  bool ignores() const { return host_depth_ > 0 || work_depth_ > 0 || !trace_.refusal.empty(); }
  static PlanEntry& entry_of(const Launch& launch);
  static TraceNode node_of(const Launch& launch, size_t first_access, std::vector<Scalar>& scalars);
  Access access(TensorImpl& tensor);
  void launched_by_host(const Launch& launch, std::span<const Tensor* const> inputs,
                        std::span<TensorImpl* const> outputs);
  uint32_t host_value_of(Storage& storage);
  uint32_t value_of(Storage& storage);
  Leaf& leaf_of(TensorImpl& leaf);
  void forget_host_places() noexcept;
  void add_node(TraceNode&& node);
  bool is_known(const Storage& storage, uint32_t& value);
  void make_known(const Tensor& made);
  bool is_settled(const recording::HostWork& work);
  void add_work(const recording::HostWork& work, const std::vector<Tensor>& made);
  void note_versions(std::vector<VersionChange>& changes);
  void mark_versions();
  void end_part();
  void keep_results(std::span<const Tensor> results);
  int32_t find_kept(const Tensor& tensor) const;
  Kept values_of(const Tensor& tensor);
  int32_t add_kept(const Tensor& tensor, Kept kept);
  void keep_held(History& history);
  int32_t argument_with(const TensorImpl& tensor) const;
  void refuse_passes_to_outside();
  void require_new_gradients();
  int32_t keep(const Tensor& tensor);
  bool all_are_known() const;
  void forget_ended_leaves();
  void note_leaves();
  void reset() noexcept;

  // Marks of storages that no plan has used yet.
  static constexpr uint32_t kBorn = kAbsent - 1, kBornOnHost = kAbsent - 2;

  mutable SpinLock lock_;  // of `places_` and the counts, which other threads change by freed()
  std::unordered_map<const Storage*, uint32_t> places_;  // values of storages that live
  uint64_t live_bytes_ = 0;
  std::unordered_map<const Storage*, uint32_t> host_places_;  // values of Trace::host, likewise

  Trace trace_;
  int host_depth_ = 0;
  bool made_on_host_ = false;  // a host part left memory behind that it made
  int work_depth_ = 0;         // the host does something that is a node
  int repeated_depth_ = 0;
  // The versions of values from outside when their part began, or at the last work that queues.
  std::vector<uint64_t> version_marks_;
  std::vector<uint32_t> last_writes_;  // of values: the number of nodes before and with the last
  uint32_t works_ = 0;                 // of the trace that queue
  std::vector<RandomState> draws_;
  std::vector<bool> draw_used_;
  std::vector<size_t> changed_leaves_;  // in this part
  std::vector<const TensorImpl*> arguments_;
  std::vector<Tensor> kept_;            // those of trace_.kept
  std::vector<uint32_t> held_handles_;  // of each: those that the history has
  History* history_ = nullptr;
};

}  // namespace tenon::graph
