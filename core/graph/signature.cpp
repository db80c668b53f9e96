// What two calls have to have in common for one program.
#include <algorithm>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/graph/compiled_state.h>
#include <tenon/core/layout.h>

namespace tenon::graph {

namespace {

bool same_autocast(const std::vector<Autocast::Setting>& settings) {
  const Autocast* guard = innermost_autocast;
  for (auto& setting : settings) {
    if (!guard || guard->setting() != setting) return false;
    guard = guard->outer();
  }
  return !guard;
}

// Whether all is the same but shapes and strides.
bool is_like(const ArgumentKind& kind, const TensorImpl* t) {
  if (!t || !kind.defined) return !t && !kind.defined;
  return t->dtype == kind.dtype && t->device == kind.device &&
         (t->autograd && t->autograd->requires_grad) == kind.grad;
}

// Returns whether dimension `d` of so many is one of those that `dimensions` lists.
bool is_listed(std::span<const int64_t> dimensions, size_t d, size_t rank) {
  const auto at = static_cast<int64_t>(d), from_end = at - static_cast<int64_t>(rank);
  return std::any_of(dimensions.begin(), dimensions.end(),
                     [&](int64_t listed) { return listed == at || listed == from_end; });
}

}  // namespace

bool Signature::fits_around(size_t count) const {
  return grad == grad_enabled() && guarded == device_guard_active() && device == default_device() &&
         tensors.size() == count && same_autocast(autocast);
}

bool Signature::fits(std::span<const Tensor* const> arguments,
                     std::span<const int64_t> of_call) const {
  if (!fits_around(arguments.size()) ||
      !std::equal(sizes.begin(), sizes.end(), of_call.begin(), of_call.end()))
    return false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorImpl* t = arguments[i]->impl().get();
    if (!is_like(tensors[i], t)) return false;
    if (t && (t->shape != tensors[i].shape || t->strides != tensors[i].strides)) return false;
  }
  return true;
}

bool DynamicSignature::fits(std::span<const Tensor* const> arguments) const {
  if (!of_one.fits_around(arguments.size())) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentKind& kind = of_one.tensors[i];
    const TensorImpl* t = arguments[i]->impl().get();
    if (!is_like(kind, t)) return false;
    if (!t) continue;
    const size_t rank = kind.shape.size();
    if (t->shape.size() != rank) return false;
    bool has_dynamic = false;
    for (size_t d = 0; d < rank; ++d) {
      const bool dynamic = all_dimensions || is_listed(dimensions, d, rank);
      if (!dynamic && t->shape[d] != kind.shape[d]) return false;
      has_dynamic = has_dynamic || dynamic;
    }
    if (has_dynamic ? t->contiguous != is_contiguous(kind.shape, kind.strides) ||
                          t->format != suggested_format(kind.shape, kind.strides)
                    : t->strides != kind.strides)
      return false;
  }
  return true;
}

std::optional<Sizes> dynamic_sizes(std::span<const Tensor* const> arguments,
                                   std::span<const int64_t> dimensions) {
  Sizes sizes;
  for (auto* argument : arguments) {
    if (!argument->defined()) continue;
    const Shape& shape = impl_of(*argument).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!is_listed(dimensions, d, shape.size())) continue;
      if (shape[d] < 2) return std::nullopt;
      sizes.push_back(shape[d]);
    }
  }
  return sizes.empty() ? std::nullopt : std::optional(std::move(sizes));
}

Signature signature_of(std::span<const Tensor* const> arguments, std::span<const int64_t> sizes) {
  Signature s{.grad = grad_enabled(),
              .guarded = device_guard_active(),
              .device = default_device(),
              .autocast = {},
              .tensors = {},
              .sizes = Sizes(sizes.begin(), sizes.end())};
  for (auto* guard = innermost_autocast; guard; guard = guard->outer())
    s.autocast.push_back(guard->setting());
  for (auto* argument : arguments) {
    ArgumentKind& kind = s.tensors.emplace_back();
    const TensorImpl* t = argument->impl().get();
    if (!t) continue;
    kind = {true,     t->dtype,   t->device,
            t->shape, t->strides, t->autograd && t->autograd->requires_grad};
  }
  return s;
}

void note_right_in(std::vector<recording::World>& worlds, const recording::World& world) {
  constexpr size_t kMax = 8;
  std::erase_if(worlds, [&](const recording::World& known) {
    return known == world || known.changes != world.changes;
  });
  worlds.insert(worlds.begin(), world);
  if (worlds.size() > kMax) worlds.pop_back();
}

}  // namespace tenon::graph
