// What identifies a call among the plans of a device.
#include <algorithm>
#include <cstring>
#include <utility>

#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/layout.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {
uint64_t mix(uint64_t h, uint64_t word) {
  auto product = static_cast<unsigned __int128>(h ^ word) * 0x9e3779b97f4a7c15u;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Whether the elements of two tensors of one shape lie in the same order.
bool same_order(const TensorImpl& a, const TensorImpl& b) {
  if (a.contiguous || b.contiguous) return a.contiguous == b.contiguous;
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (a.shape[i] != 1 && a.strides[i] != b.strides[i]) return false;
  return true;
}
}  // namespace

const TensorImpl* common_layout(const Call& call) {
  if (!call.op.pointwise && !call.op.by_element) return nullptr;
  const TensorImpl* common = call.out ? &impl_of(*call.out) : nullptr;
  for (auto* input : call.inputs) {
    if (!input) continue;
    auto& t = impl_of(*input);
    if (common && (!(t.shape == common->shape) || !same_order(t, *common))) return nullptr;
    if (!common) common = &t;
  }
  if (!common || (!common->contiguous && !is_dense(common->shape, common->strides))) return nullptr;
  if (call.format != preserve_format && !has_format(common->shape, common->strides, call.format))
    return nullptr;
  return common;
}

PlanKey::PlanKey(const Call& call, const TensorImpl* common) {
  add(reinterpret_cast<intptr_t>(&call.op));
  add(int64_t{call.shape != nullptr} << 34 | int64_t{call.out != nullptr} << 33 |
      int64_t{common != nullptr} << 32 | call.wanted);
  // The plan of tensors of one layout does not depend on it.
  const MemoryFormat format = common ? preserve_format : call.format;
  add(static_cast<int64_t>(format) << 60 | static_cast<int64_t>(call.inputs.size()) << 32 |
      static_cast<int64_t>(call.attrs.all().size()) << 24 |
      static_cast<int64_t>(call.scalars.size()));
  if (call.shape) {
    add(static_cast<int64_t>(call.shape->size()));
    for (auto d : *call.shape) add(d);
  }
  if (call.out) add(alias_of(*call.out, call.inputs));
  if (common) {
    add_flat(call);
  } else {
    for (auto* t : call.inputs) t ? add(*t) : add(-1);
    if (call.out) add(*call.out);
  }
  for (auto& a : call.attrs.all()) {
    // Calls of one operator of a user may differ in the names. Those of equal names are interned.
    add(reinterpret_cast<intptr_t>(a.name) ^ static_cast<int64_t>(a.kind) << 56);
    switch (a.kind) {
      case TN_ATTR_FLOAT: {
        int64_t bits;
        std::memcpy(&bits, &a.f, sizeof bits);
        add(bits);
        break;
      }
      case TN_ATTR_STRING:
        add(std::string_view(a.s));
        break;
      case TN_ATTR_INTS:
        add(a.num_ints);
        for (uint32_t i = 0; i < a.num_ints; ++i) add(a.ints[i]);
        break;
      default:
        add(a.i);
    }
  }
  uint64_t h = count_;
  for (size_t i = 0; i < count_; ++i) h = mix(h, static_cast<uint64_t>(words_[i]));
  hash_ = h;
}

void PlanKey::add(const Tensor& tensor) {
  auto& t = impl_of(tensor);
  add(static_cast<int64_t>(t.dtype) << 8 | static_cast<int64_t>(moves_channels(t.format)) << 7 |
      static_cast<int64_t>(t.shape.size()) << 1 | t.contiguous);
  for (auto d : t.shape) add(d);
  if (!t.contiguous)
    for (auto s : t.strides) add(s);
}

// Adds the number of elements once, and the dtypes, 15 in a word; 0 if an input is absent.
inline void PlanKey::add_flat(const Call& call) {
  int64_t numel = 0, types = 0;
  uint32_t packed = 0;
  auto pack = [&](const Tensor* t) {
    types <<= 4;
    if (t) {
      types |= static_cast<int64_t>(impl_of(*t).dtype) + 1;
      numel = impl_of(*t).numel;
    }
    if (++packed == 15) {
      add(std::exchange(types, 0));
      packed = 0;
    }
  };
  for (auto* t : call.inputs) pack(t);
  if (call.out) pack(call.out);
  add(types);
  add(numel);
}

// Programs of fused operators are long: eight characters in a word, and their number before them.
void PlanKey::add(std::string_view text) {
  add(static_cast<int64_t>(text.size()));
  for (size_t i = 0; i < text.size(); i += sizeof(int64_t)) {
    int64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min(sizeof word, text.size() - i));
    add(word);
  }
}

void PlanKey::grow() {
  auto bigger = std::make_unique<int64_t[]>(capacity_ * 4);
  std::copy_n(words_, count_, bigger.get());
  heap_ = std::move(bigger);
  words_ = heap_.get();
  capacity_ *= 4;
}

}  // namespace tenon
