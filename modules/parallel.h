// The parts of DataParallel, for your own loop over several devices:
//
//   const std::vector<Device> devices = parse_devices("cuda:0,cuda:1");
//   auto nets = nn::parallel::replicate(net, devices);
//   std::deque<optim::SGD> optimizers;
//   for (auto& each : nets) optimizers.emplace_back(each.parameters(), 0.1);
//   for (auto [x, y] : loader) {
//     for (auto& optimizer : optimizers) optimizer.zero_grad();
//     auto parts = nn::parallel::split_and_load(x, y, devices);
//     for (size_t i = 0; i < parts.size(); ++i) {  // queued: all devices work at once
//       const auto& [px, py] = parts[i];           // sums, for parts may have fewer rows
//       (cross_entropy(nets[i](px), py, {.reduction = Reduction::sum}) / x.size(0)).backward();
//     }
//     nn::parallel::all_reduce_gradients_(nets);   // that of the mean over the whole batch
//     for (auto& optimizer : optimizers) optimizer.step();
//   }
//
// Nothing here waits for a device, except copies between `cpu` devices and those with streams of
// their own (cuda): one to such a device waits until its values are computed, and so does one of
// more than 64 MiB from there. Sums are added in the order of the list, so that every run has the
// same bits. Functions throw a ValueError for an undefined tensor and for an empty list.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include <tenon/modules/module.h>

namespace tenon::nn::parallel {

struct ScatterOptions {
  int64_t dim = 0;  // the dimension that is split; a negative one counts from the last
  // The share of each device, finite and at least 0, in any unit; by default all are equal. Shares
  // are rounded to whole elements of the dimension.
  std::vector<double> weights = {};
};

// Returns a part of x for each device, on that device, in the order of the dimension. If it cannot
// be divided evenly, the first parts are larger by one; parts may be empty. It is recorded by
// autograd. Throws a ValueError for weights that do not fit, a ShapeError for a tensor without
// dimensions, and an IndexError for a dimension that x does not have.
TENON_API std::vector<Tensor> scatter(const Tensor& x, std::span<const Device> devices,
                                      const ScatterOptions& options = {});

// Returns the parts joined along `dim` on a device, as cat does, with its errors; the parts may be
// on any devices. It is recorded by autograd. Throws a ShapeError for shapes that differ in other
// dimensions.
TENON_API Tensor gather(std::span<const Tensor> parts, Device device, int64_t dim = 0);

// Returns x on each of the devices: itself on its own device, and copies on the others. It is
// recorded by autograd: the gradient of x is the sum of theirs.
TENON_API std::vector<Tensor> broadcast(const Tensor& x, std::span<const Device> devices);

// Returns the sum of tensors of one shape and dtype, on a device. It is recorded by autograd.
// Throws a ShapeError or DTypeError for tensors that differ.
TENON_API Tensor reduce_add(std::span<const Tensor> tensors, Device device);

// Replaces each of the tensors, which are of one shape and dtype, by the sum of all; all get the
// same bits. The plugin computes it if it joins the devices (NCCL), and otherwise values are
// copied. It is not recorded. Throws the errors of reduce_add, and a ValueError for tensors that
// share memory.
TENON_API void all_reduce_(std::span<const Tensor> tensors);

// Returns the batch in parts, the examples x and the targets y, each part on its device. Both are
// split along dimension 0. A batch that has fewer rows than there are devices gives fewer parts.
// Throws a ShapeError for batches of different sizes or without dimension 0, also for undefined
// tensors.
TENON_API std::vector<std::pair<Tensor, Tensor>> split_and_load(const Tensor& x, const Tensor& y,
                                                                std::span<const Device> devices);

struct AllReduceGradientsOptions {
  bool mean = false;  // whether the sums are divided by the number of replicas
};

namespace detail {
TENON_API void require_devices(std::span<const Device> devices, const char* function);
TENON_API void all_reduce_gradients(const std::vector<std::vector<NamedTensor>>& replicas,
                                    const AllReduceGradientsOptions& options);
}  // namespace detail

// Returns a copy of the model for each device, on that device. The copies share nothing with the
// model nor with each other: each has parameters of its own, which stay equal as long as they get
// equal gradients (all_reduce_gradients_) and equal steps.
template <class M>
std::vector<M> replicate(const M& model, std::span<const Device> devices) {
  detail::require_devices(devices, "replicate");
  std::vector<M> replicas;
  replicas.reserve(devices.size());
  for (Device device : devices) {
    replicas.push_back(nn::clone(model));
    nn::to(replicas.back(), device);
  }
  return replicas;
}

// Sets the gradient of each parameter, in all replicas, to the sum over all replicas. A gradient
// that a replica does not have, because it saw no part of the batch, counts as zero; a parameter
// without any gradient gets none. Losses that are means over the part of a batch give sums of
// means: divide them by the number of parts, or ask for the mean. Fewer than two replicas are left
// as they are. Throws a ValueError for replicas of different models.
template <class M>
void all_reduce_gradients_(const std::vector<M>& replicas,
                           const AllReduceGradientsOptions& options = {}) {
  std::vector<std::vector<NamedTensor>> parameters;
  for (const M& replica : replicas)
    parameters.push_back(nn::named_parameters(const_cast<M&>(replica)));
  detail::all_reduce_gradients(parameters, options);
}

}  // namespace tenon::nn::parallel
