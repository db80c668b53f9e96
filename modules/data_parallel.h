// One model on many devices: `nn::DataParallel model(LeNet(), {"cuda:0", "cuda:1"});`
#pragma once

#include <optional>
#include <tuple>
#include <utility>

#include <tenon/modules/module.h>

namespace tenon::nn {

namespace detail {

TENON_API std::vector<Device> choose_devices(ModuleRef module, std::vector<Device> devices,
                                             const std::vector<double>& weights);
// Makes the model's tensors readable on all devices; DeviceError unless they live on the first.
TENON_API void prepare_replicas(ModuleRef module, const std::vector<Device>& devices);

// Which rows each device gets. Empty: no argument is a tensor with a batch dimension.
struct Split {
  struct Part {
    Device device;
    int64_t begin, size;
  };
  std::vector<Part> parts;
  int64_t batch = -1;
};
TENON_API void find_batch(const Tensor& argument, Split& split);
TENON_API void share_out(Split& split, const std::vector<Device>& devices,
                         const std::vector<double>& weights);
TENON_API Tensor scatter_tensor(const Tensor& x, const Split& split, const Split::Part& part);
TENON_API Tensor gather_tensors(const std::vector<Tensor>& outputs, Device device);

// Arguments are tensors, or std::vector, std::array, std::pair, std::tuple and std::optional of
// them; others are passed on as they are.
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

// The same value with every tensor in it replaced by change(tensor); a reference to it where it can
// hold none.
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
  std::vector<double> weights =
      {};  // the share of a batch that each device gets, in any unit; default: equal shares
};

// Runs any module on several devices at once: splits the batch (dimension 0 of every tensor
// argument) among them, calls module.forward for each part from this thread, and joins the results
// on the first device. Work on different devices overlaps, as it is queued. There is one model: its
// parameters live on devices[0], are read elsewhere as replicas, and gather all gradients, added in
// a fixed order.
//
// Where the batch does not divide, the first devices get one row more; a batch smaller than the
// number of devices uses fewer. Tensors without dimensions and arguments that are no tensors go to
// every device. `forward` may return a tensor or a std::vector, std::array, std::pair or std::tuple
// of them; scalars are joined to a vector. What layers change while running, such as running
// statistics, is kept from devices[0].
//
// `devices` defaults to all of the kind that the model is on. The model is moved to devices[0].
// DeviceError: a device given twice, or (when called) a model that was moved elsewhere. ShapeError:
// tensor arguments of different batch sizes.
template <class M>
struct DataParallel : Module<DataParallel<M>> {
  static constexpr bool is_wrapper = true;

  DataParallel(M model, std::vector<Device> devices = {}, DataParallelOptions options = {})
      : module(std::move(model)),
        options_(std::move(options)),
        devices_(detail::choose_devices(module, std::move(devices), options_.weights)) {
    nn::to(module, devices_[0]);
  }

  template <class... A>
  auto forward(const A&... args) {
    using Result = std::remove_cvref_t<decltype(module(args...))>;
    if (devices_.size() == 1) {
      auto move = [this](const Tensor& t) { return t.defined() ? t.to(devices_[0]) : t; };
      return Result(module(detail::map_tensors(args, move)...));
    }
    static_assert(detail::can_gather<Result>(),
                  "DataParallel joins tensors, and vectors, arrays, pairs and tuples of them; "
                  "forward returns "
                  "something else");
    detail::prepare_replicas(module, devices_);
    detail::Split split;
    auto look = [&](const Tensor& t) { detail::find_batch(t, split); };
    (detail::each_tensor(args, look), ...);
    detail::share_out(split, devices_, options_.weights);
    std::vector<Result> outputs;
    for (auto& part : split.parts) {
      DeviceGuard guard(part.device);
      auto scatter = [&](const Tensor& t) { return detail::scatter_tensor(t, split, part); };
      outputs.push_back(module(detail::map_tensors(args, scatter)...));
    }
    return detail::gather(outputs, devices_[0]);
  }

  const std::vector<Device>& devices() const { return devices_; }
  void fields(FieldVisitor& v) { v("module", module); }

  M module;

 private:
  DataParallelOptions options_;
  std::vector<Device> devices_;
};

// Wrapping what is wrapped already wraps it twice; without these it would be copied.
template <class M>
DataParallel(DataParallel<M>) -> DataParallel<DataParallel<M>>;
template <class M>
DataParallel(DataParallel<M>, std::vector<Device>, DataParallelOptions = {})
    -> DataParallel<DataParallel<M>>;

}  // namespace tenon::nn
