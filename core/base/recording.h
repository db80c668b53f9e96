// The places at which the work of a thread can be recorded. What happens there is told to one
// listener, the recorder of core/graph: this room knows no more of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pthread.h>

#include <tenon/core/api.h>

namespace tenon {

struct Launch;
struct RandomState;
struct Storage;
class Tensor;
struct TensorImpl;

namespace recording {

// Returns a number that a host part has at present, for a storage that it changes: the option of
// this name, such as "lr"; "step", how many steps it has taken; or "group", the number of its group
// of parameters. Nothing if the storage is none of its own, or if there is no such number.
using HostNumbers =
    std::function<std::optional<double>(const Storage& memory, std::string_view name)>;
struct HostWork;  // core/runtime/host_work.h

// What can be told. All functions but `freed` are called by the thread that is recorded.
class Listener {
 public:
  // New memory, which the stream of its device writes, or first the host.
  virtual void allocated(const Storage& storage, bool for_host) = 0;
  // The last handle of the memory is gone. Any thread may call this.
  virtual void freed(const Storage& storage) noexcept = 0;
  // A plan was queued, with tensors that hold what its pointers lead to; null ones are absent.
  virtual void launched(const Launch& launch, std::span<const Tensor* const> inputs,
                        std::span<TensorImpl* const> outputs) = 0;
  // Does what the host itself does between plans, in each replay again, and returns the tensors
  // that it makes. Nothing else is told meanwhile.
  virtual std::vector<Tensor> work(HostWork&& work) = 0;
  // next_random() returned this state, or set_random_state() sets it.
  virtual void drew(const RandomState& state) = 0;
  // Until the end, something is computed that was computed before, with the random numbers that
  // were drawn then.
  virtual void begin_repeated() = 0;
  virtual void end_repeated() noexcept = 0;
  // Somebody asks for the gradient of a leaf, or is about to replace it.
  virtual void asks_gradient(TensorImpl& leaf) = 0;
  virtual void replaces_gradient(TensorImpl& leaf) = 0;
  // The tensor was changed in place, and so got a history.
  virtual void gets_history(TensorImpl& tensor) = 0;
  // How many handles of the recording itself the memory has.
  virtual uint32_t handles_of(const Storage& storage) const = 0;
  // Values are about to be read by `what`, such as "item". Throws a ValueError.
  virtual void reads(const char* what) = 0;
  // Something happens that cannot be repeated by running plans again.
  virtual void refuse(const std::string& why) = 0;
  // Until the end, the host does something that it does again in each replay, by `again`. `owner`
  // is what that needs; once it is gone, nothing is replayed any more.
  virtual void begin_host_part(std::weak_ptr<const void> owner, std::function<void()> again) = 0;
  // What the present host part is called, such as "Adam", and its numbers, which may be asked for
  // as long as the owner lives. Who stores a program needs them.
  virtual void describe_host_part(const char* name, HostNumbers numbers) = 0;
  virtual void end_host_part() noexcept = 0;

 protected:
  ~Listener() = default;
};

// The thread that is recorded, of which there is at most one in a process; 0 if there is none.
extern constinit std::atomic<pthread_t> recorded_thread;
// Whom to tell. It is set before the first recording, and stays.
extern constinit std::atomic<Listener*> listener;

inline bool any() { return recorded_thread.load(std::memory_order_acquire) != 0; }
// Returns the listener if the calling thread is recorded, otherwise null.
inline Listener* here() {
  const pthread_t recorded = recorded_thread.load(std::memory_order_acquire);
  return recorded && recorded == pthread_self() ? listener.load(std::memory_order_acquire)
                                                : nullptr;
}
// Does nothing unless the calling thread is recorded.
inline void reads(const char* what) {
  if (auto* told = here()) [[unlikely]]
    told->reads(what);
}
inline void refuse(const char* why) {
  if (auto* told = here()) [[unlikely]]
    told->refuse(why);
}

// The reported state on which a function may depend besides its arguments. As long as it stays the
// same, a function is assumed to do the same.
struct World {
  uint64_t changes = 0;  // how many there were of what does not come back: replaced parameters
  uint64_t modes = 0;    // a sum over what was switched, such as modules that are in eval mode
  bool operator==(const World&) const = default;
};
extern constinit std::atomic<uint64_t> changes, modes;
inline World world() {
  return {changes.load(std::memory_order_relaxed), modes.load(std::memory_order_relaxed)};
}
inline void changed() { changes.fetch_add(1, std::memory_order_relaxed); }
// What has this number was switched on or off. Once it is switched back, the world is as before.
void switched(uint64_t number, bool on);
// Returns a number that nothing else has, nor will have.
uint64_t new_number();
// The same for a flag, which has no room for a number: what is at its place.
void switched(const bool& flag, bool on);
// Flags that were switched and objects that were called go with this memory; others may take it.
void flags_are_gone(const void* begin, size_t bytes) noexcept;

}  // namespace recording
}  // namespace tenon
