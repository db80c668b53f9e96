#include <algorithm>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/dispatch/beside.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/accumulate.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/runtime/collectives.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/host_work.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/modules/parallel.h>
#include <tenon/modules/shares.h>

namespace tenon::nn::parallel {

namespace {

void require_some(std::span<const Tensor> tensors, const char* function) {
  if (tensors.empty()) throw ValueError(fmt::format("{}: no tensor was given", function));
  for (auto& t : tensors)
    if (!t.defined()) throw ValueError(fmt::format("{}: a tensor is undefined", function));
}

void require_alike(std::span<const Tensor> tensors, const char* function) {
  require_some(tensors, function);
  const Tensor& first = tensors[0];
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].shape() != first.shape())
      throw ShapeError(
          fmt::format("{}: tensor {} has shape {}, the first has {}; all have to have "
                      "the same",
                      function, i, tensors[i].shape(), first.shape()));
    if (tensors[i].dtype() != first.dtype())
      throw DTypeError(fmt::format("{}: tensor {} is {}, the first is {}; all have to be the same",
                                   function, i, tensors[i].dtype(), first.dtype()));
  }
}

std::vector<Device> devices_of(std::span<const Tensor> tensors) {
  std::vector<Device> devices;
  for (auto& t : tensors) devices.push_back(t.device());
  return devices;
}

void require_apart(std::span<const Tensor> tensors, const char* function) {
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (impl_of(tensors[i]).storage == impl_of(tensors[j]).storage)
        throw ValueError(fmt::format(
            "{}: tensors {} and {} share memory; each is replaced by the sum, so each needs memory "
            "of its own",
            function, j, i));
}

using Rows = std::vector<std::vector<Tensor>>;

// Sums rows on devices that a plugin joins, and notes in `summed` those that it did.
void sum_together(Communicator& communicator, const Rows& rows, std::span<const size_t> places,
                  std::vector<bool>& summed) {
  // The copies of a launch take so much memory of each device at most, or those of one row.
  constexpr uint64_t kMaxBytes = uint64_t{64} << 20;
  for (size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    std::vector<Members> copies;  // nothing else reads them
    for (uint64_t bytes = 0; end < places.size() && (end == begin || bytes < kMaxBytes); ++end) {
      Members& row = copies.emplace_back();
      for (auto& t : rows[places[end]]) row.push_back(t.clone(contiguous_format));
      bytes += static_cast<uint64_t>(row[0].numel()) * size_of(row[0].dtype());
    }
    const auto refused = all_reduce(communicator, copies);
    for (size_t k = 0; k < copies.size(); ++k) {
      if (std::find(refused.begin(), refused.end(), k) != refused.end()) continue;
      const size_t place = places[begin + k];
      for (size_t i = 0; i < copies[k].size(); ++i) Tensor(rows[place][i]).copy_(copies[k][i]);
      summed[place] = true;
    }
  }
}

// The same for rows in memory that each of the devices can use: they take turns at adding the
// others to member 0, where it lies, and work at once.
void sum_in_place(const Rows& rows, std::vector<bool>& summed) {
  std::vector<size_t> places;
  std::vector<Device> devices;  // of all these rows
  std::vector<InPlaceChange> changes;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto here = devices_of(rows[r]);
    const bool fits = !summed[r] && here.size() > 1 && rows[r][0].numel() > 0 &&
                      (devices.empty() ? share_memory(here) : devices == here) &&
                      std::all_of(rows[r].begin(), rows[r].end(), [](auto& t) {
                        return t.is_contiguous() && !impl_of(t).storage->adopted();
                      });
    if (!fits) continue;
    devices = here;
    places.push_back(r);
    changes.emplace_back(*impl_of(rows[r][0]).storage, context_of(here[0]));
  }
  for (Device device : devices) follow(context_of(device), devices);
  const auto worker = [&](size_t i) -> DeviceContext& {
    return context_of(devices[i % devices.size()]);
  };
  for (size_t i = 0; i < places.size(); ++i)
    summed[places[i]] = accumulate(worker(i), rows[places[i]]);
  for (size_t i = 0; i < places.size(); ++i) {
    if (!summed[places[i]]) continue;
    const auto& row = rows[places[i]];
    await_beside(*worker(i).stream, row[0]);
    for (size_t k = 1; k < row.size(); ++k)
      if (row[k].device() == row[0].device())
        Tensor(row[k]).copy_(row[0]);
      else
        copy_between_devices(row[0], row[k]);
  }
}

// Replaces the members of each row by their sum; those on the same devices in one launch.
void queue_sums_of(const Rows& rows) {
  const NoGrad guard;
  std::vector<bool> summed(rows.size());
  std::vector<std::vector<Device>> devices;
  for (auto& row : rows)
    devices.push_back(row[0].numel() == 0 ? std::vector<Device>() : devices_of(row));
  for (const auto& [communicator, places] : joined_rows(devices))
    sum_together(*communicator, rows, places, summed);
  sum_in_place(rows, summed);
  for (size_t r = 0; r < rows.size(); ++r) {
    if (summed[r] || rows[r].size() == 1) continue;
    const Tensor sum = reduce_add(rows[r], rows[r][0].device());
    for (auto& t : rows[r]) Tensor(t).copy_(sum.to(t.device()));
  }
}

// A program makes the same sums again.
void sum_rows(const Rows& rows) {
  auto* const recorder = recording::here();
  if (!recorder) return queue_sums_of(rows);
  std::vector<Tensor> members;
  std::vector<size_t> sizes;
  for (auto& row : rows) {
    sizes.push_back(row.size());
    for (auto& t : row) members.push_back(t.detach());
  }
  const auto again = [sizes](std::span<const Tensor>, std::span<const Tensor> changes,
                             std::vector<Tensor>&) {
    Rows all;
    for (auto next = changes.begin(); const size_t size : sizes) {
      all.emplace_back(next, next + static_cast<ptrdiff_t>(size));
      next += static_cast<ptrdiff_t>(size);
    }
    queue_sums_of(all);
  };
  recorder->work(
      {.name = "sums over devices", .reads = {}, .changes = std::move(members), .again = again});
}

}  // namespace

void detail::require_devices(std::span<const Device> devices, const char* function) {
  if (devices.empty())
    throw ValueError(fmt::format("{}: the list of devices is empty; name at least one", function));
}

std::vector<Tensor> scatter(const Tensor& x, std::span<const Device> devices,
                            const ScatterOptions& options) {
  detail::require_devices(devices, "scatter");
  require_some(std::span(&x, 1), "scatter");
  nn::detail::check_weights("scatter", options.weights, devices.size());
  if (x.dim() == 0)
    throw ShapeError("scatter: a tensor without dimensions cannot be split; broadcast copies it");
  if (options.dim < -x.dim() || options.dim >= x.dim())
    throw IndexError(
        fmt::format("scatter: dimension {} of a tensor of shape {}; it has to be in "
                    "[{}, {}]",
                    options.dim, x.shape(), -x.dim(), x.dim() - 1));
  const int64_t dim = options.dim < 0 ? options.dim + x.dim() : options.dim;
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (int64_t end : nn::detail::share_ends(x.size(dim), devices.size(), options.weights)) {
    parts.push_back(x.narrow(dim, begin, end - begin).to(devices[parts.size()]));
    begin = end;
  }
  return parts;
}

Tensor gather(std::span<const Tensor> parts, Device device, int64_t dim) {
  require_some(parts, "gather");
  std::vector<Tensor> here;
  for (auto& part : parts) here.push_back(part.to(device));
  return cat(here, dim);
}

std::vector<Tensor> broadcast(const Tensor& x, std::span<const Device> devices) {
  detail::require_devices(devices, "broadcast");
  require_some(std::span(&x, 1), "broadcast");
  std::vector<Tensor> copies;
  for (Device device : devices) copies.push_back(x.to(device));
  return copies;
}

Tensor reduce_add(std::span<const Tensor> tensors, Device device) {
  require_alike(tensors, "reduce_add");
  Tensor sum = tensors[0].to(device);
  for (auto& t : tensors.subspan(1)) sum = sum + t.to(device);
  return sum;
}

void all_reduce_(std::span<const Tensor> tensors) {
  require_alike(tensors, "all_reduce_");
  require_apart(tensors, "all_reduce_");
  sum_rows({{tensors.begin(), tensors.end()}});
}

std::vector<std::pair<Tensor, Tensor>> split_and_load(const Tensor& x, const Tensor& y,
                                                      std::span<const Device> devices) {
  detail::require_devices(devices, "split_and_load");
  for (auto* t : {&x, &y})
    if (!t->defined() || t->dim() == 0)
      throw ShapeError(
          "split_and_load: examples and targets need a dimension 0, which is the batch");
  if (x.size(0) != y.size(0))
    throw ShapeError(fmt::format("split_and_load: {} examples (shape {}) and {} targets (shape {})",
                                 x.size(0), x.shape(), y.size(0), y.shape()));
  // An empty batch is one empty part.
  const auto used =
      static_cast<size_t>(std::clamp<int64_t>(x.size(0), 1, static_cast<int64_t>(devices.size())));
  const auto xs = scatter(x, devices.first(used)), ys = scatter(y, devices.first(used));
  std::vector<std::pair<Tensor, Tensor>> parts;
  for (size_t i = 0; i < used; ++i) parts.emplace_back(xs[i], ys[i]);
  return parts;
}

void detail::all_reduce_gradients(const std::vector<std::vector<NamedTensor>>& replicas,
                                  const AllReduceGradientsOptions& options) {
  if (replicas.size() < 2) return;
  const NoGrad guard;
  for (size_t r = 1; r < replicas.size(); ++r)
    if (!std::equal(replicas[r].begin(), replicas[r].end(), replicas[0].begin(), replicas[0].end(),
                    [](auto& a, auto& b) {
                      return a.name == b.name && a.tensor.shape() == b.tensor.shape();
                    }))
      throw ValueError(
          fmt::format("all_reduce_gradients_: replica {} has other parameters than the "
                      "first; all have to be copies of one model",
                      r));
  Rows rows;
  std::vector<std::pair<Tensor, Tensor>> missing;  // a parameter without a gradient, and zeros
  for (size_t i = 0; i < replicas[0].size(); ++i) {
    const bool any = std::any_of(replicas.begin(), replicas.end(), [&](auto& parameters) {
      return parameters[i].tensor.grad().defined();
    });
    if (!any) continue;
    auto& row = rows.emplace_back();
    for (auto& parameters : replicas) {
      const Tensor& p = parameters[i].tensor;
      row.push_back(p.grad().defined() ? p.grad() : zeros_like(p));
      if (!p.grad().defined()) missing.emplace_back(p, row.back());
    }
    require_alike(row, "all_reduce_gradients_");
    require_apart(row, "all_reduce_gradients_");
  }
  for (auto& [p, zero] : missing) p.set_grad(zero);
  sum_rows(rows);
  if (!options.mean) return;
  for (auto& row : rows)
    for (Tensor& g : row) g.copy_(g / static_cast<double>(replicas.size()));
}

}  // namespace tenon::nn::parallel
