#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/stream.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

constinit thread_local const Autocast* innermost_autocast TENON_FAST_TLS = nullptr;

namespace {

// A parameter that was converted to a lower dtype. It is valid as long as the parameter has the
// same version, which an optimizer increments, and the same memory, which Module::to replaces.
struct Converted {
  Tensor source, result;
  Ref<Storage> storage;
  uint64_t version;
};
using Cache = std::unordered_multimap<const TensorImpl*, Converted>;

// The cache of the outermost guard, which is made at its first use.
constinit thread_local Cache* cache TENON_FAST_TLS = nullptr;

// Only conversions of parameters are cached, not those of other tensors. A stream graph has to
// convert the values that it finds in each replay, so nothing is cached while one is captured, and
// neither is a replica that one part of a model has changed.
bool can_be_cached(const Tensor& x, Device device) {
  return x.dtype() == DType::f32 && x.is_leaf() && x.requires_grad() &&
         !context_of(device).stream->own_capture() && !changed_replica(x).defined();
}

// `device` is where the call runs: a parameter with replicas is read there.
Tensor convert(const Tensor& x, DType dtype, Device device) {
  if (!has_replicas(x)) return x.to(dtype);
  const DeviceGuard there(device);
  return x.to(dtype);
}

Tensor convert_cached(const Tensor& x, DType dtype, Device device) {
  if (!can_be_cached(x, device)) return convert(x, dtype, device);
  if (!cache) cache = new Cache;
  std::vector<Converted> stale;  // destroyed at the end: that may run a deleter of the user
  auto [it, end] = cache->equal_range(&impl_of(x));
  while (it != end) {
    const Converted& c = it->second;
    const bool current = c.storage == impl_of(x).storage && c.version == x.version(),
               wanted = c.result.device() == device && c.result.dtype() == dtype;
    // A conversion that was made under NoGrad would pass no gradient to the parameter.
    const bool leads_there = !grad_enabled() || c.result.requires_grad();
    if (current && wanted && leads_there) return c.result;
    if (current && !wanted) {
      ++it;
      continue;
    }
    stale.push_back(std::move(it->second));
    it = cache->erase(it);
  }
  Converted made{x, convert(x, dtype, device), impl_of(x).storage, x.version()};
  return cache->emplace(&impl_of(x), std::move(made))->second.result;
}

bool is_convertible(const Tensor* t) {
  return t && t->defined() && is_floating_point(t->dtype()) && t->dtype() != DType::f64;
}

// The dtype that the rule wants for floating inputs; nothing where they stay as they are. Beside an
// input of f64, others are not made less exact.
std::optional<DType> wanted_type(AutocastRule rule, const AutocastSetting& setting,
                                 std::span<const Tensor* const> inputs) {
  if (rule == AutocastRule::none) return std::nullopt;
  std::optional<DType> widest;
  for (auto* t : inputs) {
    if (!t || !t->defined() || !is_floating_point(t->dtype())) continue;
    widest = widest ? promote(*widest, t->dtype()) : t->dtype();
  }
  if (rule == AutocastRule::f32) return DType::f32;
  if (widest == DType::f64) return std::nullopt;
  return rule == AutocastRule::lower ? setting.dtype : widest;
}

Tensor converted(const Tensor& x, DType dtype, const AutocastSetting& setting, Device device) {
  if (!is_convertible(&x) || x.dtype() == dtype) return x;
  return setting.caches && is_half(dtype) ? convert_cached(x, dtype, device)
                                          : convert(x, dtype, device);
}

}  // namespace

namespace {
Autocast::Setting setting_of(DType dtype, const AutocastOptions& options) {
  if (!is_half(dtype))
    throw DTypeError(fmt::format("Autocast: computes in f16 or bf16, found {}{}", dtype,
                                 is_floating_point(dtype)
                                     ? "; without a guard operators compute in the dtypes they get"
                                     : ""));
  return {dtype, options.enabled, options.cache_enabled,
          options.device_type.empty() ? Autocast::Setting::kEveryType
                                      : Device(options.device_type, 0).type_id()};
}
}  // namespace

Autocast::Autocast(DType dtype, const AutocastOptions& options)
    : Autocast(setting_of(dtype, options)) {}
Autocast::Autocast(const Setting& setting) : setting_(setting), outer_(innermost_autocast) {
  innermost_autocast = this;
}

Autocast::~Autocast() {
  innermost_autocast = outer_;
  if (!outer_) delete std::exchange(cache, nullptr);
}

std::optional<AutocastSetting> AutocastSetting::on(uint32_t device_type) {
  for (const Autocast* guard = innermost_autocast; guard; guard = guard->outer()) {
    const Autocast::Setting& s = guard->setting();
    if (s.device_type != Autocast::Setting::kEveryType && s.device_type != device_type) continue;
    if (!s.enabled) return std::nullopt;
    return AutocastSetting{s.dtype, s.caches};
  }
  return std::nullopt;
}

bool autocast_enabled(const std::string& device_type) {
  return AutocastSetting::on(Device(device_type, 0).type_id()).has_value();
}

DType autocast_dtype(const std::string& device_type) {
  const auto setting = AutocastSetting::on(Device(device_type, 0).type_id());
  return setting ? setting->dtype : DType::bf16;
}

AutocastInputs::AutocastInputs(const Call& call) {
  if (call.op.autocast == AutocastRule::none) return;
  const Device device = device_of_call(call.inputs);
  const auto setting = AutocastSetting::on(device.type_id());
  if (!setting) return;
  const auto type = wanted_type(call.op.autocast, *setting, call.inputs);
  if (!type) return;
  inputs_.assign(call.inputs.begin(), call.inputs.end());
  for (auto*& t : inputs_) {
    if (!is_convertible(t) || t->dtype() == *type) continue;
    owned_.reserve(inputs_.size());  // so that pointers stay valid
    t = &owned_.emplace_back(converted(*t, *type, *setting, device));
  }
}

void Autocasting::begin(const char* function, std::span<const Tensor* const> tensors) {
  const AutocastRule rule = autocast_rule(function);
  if (rule == AutocastRule::none) return;
  std::vector<const Tensor*> defined;
  for (auto* t : tensors)
    if (t && t->defined()) defined.push_back(t);
  device_ = device_of_call(defined);
  const auto setting = AutocastSetting::on(device_.type_id());
  if (!setting) return;
  to_ = wanted_type(rule, *setting, defined);
  caches_ = setting->caches;
  guard_ = std::exchange(innermost_autocast, nullptr);
}

void Autocasting::begin(const char* function, const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  for (auto& t : tensors) pointers.push_back(&t);
  begin(function, pointers);
}

Tensor Autocasting::operator()(const Tensor& x) const {
  return to_ ? converted(x, *to_, {*to_, caches_}, device_) : x;
}

std::vector<Tensor> Autocasting::operator()(const std::vector<Tensor>& list) const {
  std::vector<Tensor> result;
  for (auto& t : list) result.push_back((*this)(t));
  return result;
}

AutocastState::AutocastState() {
  for (const Autocast* guard = innermost_autocast; guard; guard = guard->outer())
    guards_.push_back(guard->setting());
  std::reverse(guards_.begin(), guards_.end());
}

AutocastState::Guard::Guard(const AutocastState& state) {
  for (auto& one : state.guards_) guards_.emplace_back(one);
}

AutocastState::Guard::~Guard() {
  while (!guards_.empty()) guards_.pop_back();
}

}  // namespace tenon
