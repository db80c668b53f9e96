// A wrapper that runs one model on several devices:
//   nn::DataParallel model(LeNet(), {"cuda:0", "cuda:1"});
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include <tenon/modules/module.h>

namespace tenon {
class NodeLanes;
class ReplicaScope;
}  // namespace tenon

namespace tenon::nn {

namespace detail {

// Returns `devices`, or all devices of the kind that the module is on if the list is empty. Throws
// a DeviceError for a device that is given twice, and a ValueError for weights that do not fit.
TENON_API std::vector<Device> choose_devices(ModuleRef module, std::vector<Device> devices,
                                             const std::vector<double>& weights);
// Throws a ValueError unless the number is above 0.
TENON_API void check_bucket_cap(double mebibytes);
// The rows that each device gets.
struct Split {
  struct Part {
    Device device;
    int64_t begin, size;
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;
  int64_t batch = -1;  // the size of the batch; -1 while no tensor with a dimension was seen
};
// Takes the size of the batch from an argument. Throws a ShapeError if another argument has another
// size.
TENON_API void find_batch(const Tensor& argument, Split& split);
// Divides the batch among the devices in proportion to the weights.
TENON_API void share_out(Split& split, const std::vector<Device>& devices,
                         const std::vector<double>& weights);
// Returns the rows of a tensor that belong to a part, on the device of the part.
TENON_API Tensor scatter_tensor(const Tensor& x, const Split& split, const Split::Part& part);
// Joins tensors along dimension 0 on one device.
TENON_API Tensor gather_tensors(const std::vector<Tensor>& outputs, Device device);

// The shares of devices, which follow their speeds: now and then it has the parts of a call
// computed one at a time, and measures how long the device of each is busy.
class TENON_API Balance {
 public:
  // `weights` are as in DataParallelOptions. If it is off, the shares stay as they are.
  Balance(std::vector<Device> devices, std::vector<double> weights, bool on)
      : devices_(std::move(devices)), weights_(std::move(weights)), on_(on) {}

  // Returns the present weights, as in DataParallelOptions: empty for equal shares.
  const std::vector<double>& weights() const { return weights_; }
  // Returns the shares of the devices, with a sum of 1.
  std::vector<double> shares() const;

  // Returns whether a call with this split is measured. Each call asks once.
  bool is_due(const Split& split);
  // Learns how many seconds each part of such a call took.
  void learn(const Split& split, std::span<const double> seconds);

 private:
  void change(std::vector<double> shares);

  std::vector<Device> devices_;
  std::vector<double> weights_;
  bool on_;
  std::vector<double> speeds_;                // the shares that were right at the last measurement
  std::vector<Split::Part> last_;             // of the call before
  uint64_t calls_ = 0, due_ = 1, pause_ = 1;  // calls that could have been measured
};

// The times of parts that have turns, one after the other.
class TENON_API PartTimes {
 public:
  // Waits until all devices of the split have nothing to do.
  explicit PartTimes(const Split& split);
  // Waits for the device of the part that had its turn, and begins the time of the next part.
  void turn_to(size_t part);
  // Waits for the device of the part that had its turn, which was the last.
  void stop();
  // Returns the time of each part.
  const std::vector<double>& seconds() const { return seconds_; }

 private:
  std::vector<Device> devices_;  // of the parts
  std::vector<double> seconds_;
  std::optional<size_t> part_;
  std::chrono::steady_clock::time_point began_;
};

// One call of a module on several devices. Each part begins with the parameters and buffers as they
// were before the call, and reads and changes its own. The call leaves them as its first part does,
// whether that changes them in place or assigns new buffers. Parts run one after the other or, if
// the module has batch normalizations with common statistics, in turns (modules/lockstep.h).
class TENON_API SplitCall {
 public:
  // Makes the module's tensors readable on all devices; `syncs` says whether backward passes sum
  // their gradients. Throws a DeviceError unless they are on the first device.
  SplitCall(ModuleRef module, const std::vector<Device>& devices, double bucket_cap_mb, bool syncs);
  ~SplitCall();
  SplitCall(const SplitCall&) = delete;
  SplitCall& operator=(const SplitCall&) = delete;
  // Calls work(0), …, work(parts - 1). With `times`, parts are measured, and do not overlap.
  void run(size_t parts, const std::function<void(size_t)>& work, PartTimes* times = nullptr);

 private:
  void set_sums(const std::vector<Tensor>& parameters, double bucket_cap_mb, bool syncs) const;
  void switch_to(size_t part);
  void end();

  ModuleRef module_;
  std::vector<NamedTensor> before_;  // the buffers before the call
  // The buffers of each part that began and does not have its turn: of all that take turns, and
  // otherwise of the first.
  std::vector<std::optional<std::vector<NamedTensor>>> left_;
  std::optional<size_t> part_;  // whose buffers the module has
  const bool in_turns_, nested_;
  std::unique_ptr<ReplicaScope> scope_;
  PartTimes* times_ = nullptr;
  std::unique_ptr<NodeLanes> lanes_;
};

// Arguments may be tensors, or std::vector, std::array, std::pair, std::tuple and std::optional of
// tensors; other arguments are passed on unchanged.
template <class T>
concept TensorLike = std::is_convertible_v<const T&, const Tensor&>;
template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; };
template <class T>
concept OptionalLike = requires { typename Holder<T>::Item; } &&
                       std::is_same_v<T, std::optional<typename Holder<T>::Item>>;

template <class T, class Visit>
void each_tensor(const T& value, Visit& visit) {
  if constexpr (TensorLike<T>)
    visit(static_cast<const Tensor&>(value));
  else if constexpr (TupleLike<T>)
    std::apply([&](const auto&... items) { (each_tensor(items, visit), ...); }, value);
  else if constexpr (OptionalLike<T>)
    value ? each_tensor(*value, visit) : void();
  else if constexpr (List<T>::value)
    for (const auto& item : value) each_tensor(item, visit);
}

// Returns a copy of the value with every tensor in it replaced by change(tensor), or a reference to
// the value if its type cannot contain tensors.
template <class T, class Change>
decltype(auto) map_tensors(const T& value, Change& change) {
  if constexpr (TensorLike<T>) {
    return change(static_cast<const Tensor&>(value));
  } else if constexpr (TupleLike<T>) {
    T copy = value;
    std::apply([&](auto&... items) { ((items = map_tensors(items, change)), ...); }, copy);
    return copy;
  } else if constexpr (List<T>::value) {
    T copy = value;
    for (auto&& item : copy) item = map_tensors(item, change);
    return copy;
  } else if constexpr (OptionalLike<T>) {
    T copy = value;
    if (copy) *copy = map_tensors(*copy, change);
    return copy;
  } else {
    return (value);
  }
}

template <class T>
constexpr bool can_gather() {
  if constexpr (TensorLike<T>)
    return true;
  else if constexpr (TupleLike<T>)
    return []<size_t... I>(std::index_sequence<I...>) {
      return (can_gather<std::tuple_element_t<I, T>>() && ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  else if constexpr (List<T>::value)
    return can_gather<typename T::value_type>();
  else
    return false;
}

template <class T>
T gather(const std::vector<T>& outputs, Device device) {
  std::vector<std::vector<Tensor>> parts;  // each output's tensors, in the order of the walk
  for (auto& output : outputs) {
    auto keep = [&tensors = parts.emplace_back()](const Tensor& t) { tensors.push_back(t); };
    each_tensor(output, keep);
    if (parts.back().size() != parts.front().size())
      throw ValueError(
          "DataParallel: forward returned lists of different lengths on different devices");
  }
  size_t i = 0;
  auto join = [&](const Tensor&) {
    std::vector<Tensor> pieces;
    for (auto& part : parts) pieces.push_back(part[i]);
    ++i;
    return gather_tensors(pieces, device);
  };
  return map_tensors(outputs.front(), join);
}

}  // namespace detail

struct DataParallelOptions {
  // The share of a batch that each device gets, in any unit; by default all shares are equal. There
  // is a finite weight of at least 0 for each device. Shares are rounded to rows. If that leaves
  // none for the first device, it gets those of the next one, because it has the model; its weight
  // has to be above 0.
  std::vector<double> weights = {};
  // Whether the shares follow the speeds of the devices, beginning with `weights`. The second call
  // of a size, and others that become rarer while nothing changes (one in 256), compute their parts
  // one after the other and wait for each, so that its time is known. Only the forward pass is
  // measured. Shares that make calls faster by 3 percent are adopted, and logged (TENON_LOG=info).
  // As sums depend on the shares, runs differ by rounding; shares() given as weights, without
  // balance, stay as they are. A weight of 0 does not change, nor does the share of a device that
  // gets no row.
  bool balance = false;
  // The size of a bucket in mebibytes, above 0. Gradients that several devices compute are summed
  // while the backward pass still runs, as soon as those of a bucket are finished. Smaller buckets
  // overlap more, larger ones take less time to queue.
  double bucket_cap_mb = 25;
};

// The guard of DataParallel::no_sync: while one lives, calls of the wrapper that made it do not sum
// gradients.
class [[nodiscard]] NoSync {
 public:
  // The number of guards of a wrapper. A copy of the wrapper begins with none.
  struct Count {
    int value = 0;
    Count() = default;
    Count(const Count&) {}
    Count& operator=(const Count&) { return *this; }
  };
  // Adds a guard to the number of its wrapper.
  TENON_API explicit NoSync(Count& count);
  // Takes over the place of another guard.
  NoSync(NoSync&& from) noexcept : count_(std::exchange(from.count_, nullptr)) {}
  TENON_API ~NoSync();
  NoSync& operator=(NoSync&&) = delete;

 private:
  Count* count_;  // null after a move
};

// Runs any module on several devices at once. A call splits the batch, which is dimension 0 of
// every tensor argument, among the devices, calls module.forward for each part, one after the other
// from this thread, and joins the results on the first device. If the model has layers with common
// statistics (SyncBatchNorm), the parts take turns instead, each on a thread of its own. Work on
// different devices overlaps, because it is queued. There is one model: its parameters are on
// devices[0] and are read on other devices as replicas, and all gradients are added to theirs in a
// fixed order.
//
// If the batch cannot be divided evenly, the first devices get one row more; a batch smaller than
// the number of devices uses fewer devices. Tensors without dimensions and other arguments go to
// every device. `forward` may return a tensor or a std::vector, std::array, std::pair or std::tuple
// of tensors; scalars are joined to a vector. Buffers that a
// module changes or assigns while it runs, such as running statistics, begin each device's part
// with the values from before the call, and end the call as the first device's part leaves them. A
// tensor that a module reads on several devices has to be a Parameter or a Buffer.
//
// `devices` defaults to all devices of the kind that the model is on. The constructor moves the
// model to devices[0]. It throws a DeviceError for a device that is given twice, and a ValueError
// for an option outside its range; a call throws a DeviceError for a model that was moved
// elsewhere, and a ShapeError for tensor arguments of different batch sizes.
template <class M>
struct DataParallel : Module<DataParallel<M>> {
  static constexpr bool is_wrapper = true;

  // Wraps a model, which is copied unless it is moved here, for these devices.
  DataParallel(M model, std::vector<Device> devices = {}, DataParallelOptions options = {})
      : module(std::move(model)),
        devices_(detail::choose_devices(module, std::move(devices), options.weights)),
        balance_(devices_, std::move(options.weights), options.balance),
        bucket_cap_mb_(options.bucket_cap_mb) {
    detail::check_bucket_cap(bucket_cap_mb_);
    nn::to(module, devices_[0]);
  }

  // Returns the joined results of the model's forward for the parts of the batch, on devices[0].
  template <class... A>
  auto forward(const A&... args) {
    using Result = std::remove_cvref_t<decltype(module(args...))>;
    if (devices_.size() == 1) {
      auto move = [this](const Tensor& t) { return t.defined() ? t.to(devices_[0]) : t; };
      return Result(module(detail::map_tensors(args, move)...));
    }
    static_assert(detail::can_gather<Result>(),
                  "DataParallel joins tensors, and vectors, arrays, pairs and tuples of them; "
                  "forward returns something else");
    detail::SplitCall call(module, devices_, bucket_cap_mb_, no_sync_.value == 0);
    detail::Split split;
    auto look = [&](const Tensor& t) { detail::find_batch(t, split); };
    (detail::each_tensor(args, look), ...);
    detail::share_out(split, devices_, balance_.weights());
    std::optional<detail::PartTimes> times;
    if (balance_.is_due(split)) times.emplace(split);
    std::vector<std::optional<Result>> results(split.parts.size());
    const auto work = [&](size_t i) {
      auto& part = split.parts[i];
      DeviceGuard guard(part.device);
      auto scatter = [&](const Tensor& t) { return detail::scatter_tensor(t, split, part); };
      results[i].emplace(module(detail::map_tensors(args, scatter)...));
    };
    call.run(split.parts.size(), work, times ? &*times : nullptr);
    if (times) balance_.learn(split, times->seconds());
    std::vector<Result> outputs;
    for (auto& result : results) outputs.push_back(std::move(*result));
    return detail::gather(outputs, devices_[0]);
  }

  // Returns a guard in whose lifetime calls do not sum gradients, as PyTorch's no_sync:
  //   { auto guard = model.no_sync(); loss(model(x), y).backward(); }
  // Backward passes through such calls leave the gradients of each device where they are and add
  // them up there, and the next pass through another call sums them together with its own: several
  // small batches cost one exchange between the devices. To read grad() or take a step before that
  // makes the whole sum at that moment; zero_grad() and set_grad() drop what is left. Parameters
  // that have hooks are summed in every pass, because a hook sees the sum, and so are gradients
  // that create_graph records; grad({loss}, …) still returns sums. The wrapper must stay where it
  // is while the guard lives.
  NoSync no_sync() { return NoSync(no_sync_); }
  // Returns the devices that the model runs on.
  const std::vector<Device>& devices() const { return devices_; }
  // Returns the share of a batch that each of them gets now; their sum is 1.
  std::vector<double> shares() const { return balance_.shares(); }
  void fields(FieldVisitor& v) { v("module", module); }

  M module;

 private:
  std::vector<Device> devices_;
  detail::Balance balance_;
  double bucket_cap_mb_;
  NoSync::Count no_sync_;
};

// Wrap a wrapped model twice. Without these deduction guides it would be copied.
template <class M>
DataParallel(DataParallel<M>) -> DataParallel<DataParallel<M>>;
template <class M>
DataParallel(DataParallel<M>, std::vector<Device>, DataParallelOptions = {})
    -> DataParallel<DataParallel<M>>;

}  // namespace tenon::nn
