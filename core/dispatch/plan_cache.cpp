#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/per_thread.h>
#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/dispatch/with_texts.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/layout.h>
#include <tenon/core/runtime/capture.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {
uint64_t mix(uint64_t h, uint64_t word) {
  auto product = static_cast<unsigned __int128>(h ^ word) * 0x9e3779b97f4a7c15u;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

bool matches(const PlanEntry& e, const PlanKey& key) {
  const auto words = key.words();
  return e.hash == key.hash() && e.key.size() == words.size() &&
         std::memcmp(e.key.data(), words.data(), words.size_bytes()) == 0;
}
}  // namespace

namespace {
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

namespace {

// The recent results of a thread, so that a loop over the same few operators takes no lock. Each
// slot holds a reference to its entry.
struct Recent {
  PlanCache* cache = nullptr;
  Ref<PlanEntry> entry;
};
constexpr size_t kRecentPlans = 256;
struct RecentAnswers {
  Recent slots[kRecentPlans];
};

}  // namespace

PlanEntry& PlanCache::find(const Call& call, const TensorImpl* common) {
  PlanKey key(call, common);
  auto* recent = PerThread<RecentAnswers>::get();
  if (!recent) [[unlikely]]
    throw std::bad_alloc();  // nothing would hold the entry for this thread
  auto& slot = recent->slots[key.hash() % kRecentPlans];
  if (slot.cache == this && matches(*slot.entry, key)) {
    if (!slot.entry->used.load(std::memory_order_relaxed))
      slot.entry->used.store(true, std::memory_order_relaxed);
    return *slot.entry;
  }
  slot.entry = find_shared(key, call, common);
  slot.cache = this;
  return *slot.entry;
}

namespace {
// Makes texts for the attributes, all in one piece of memory.
std::unique_ptr<char[]> own_texts(Attrs& attrs) {
  size_t bytes = 0;
  (void)with_texts(attrs, [&](const char* text) {
    bytes += std::strlen(text) + 1;
    return text;
  });
  if (bytes == 0) return nullptr;
  auto texts = std::make_unique<char[]>(bytes);
  char* at = texts.get();
  attrs = with_texts(attrs, [&](const char* text) {
    const size_t size = std::strlen(text) + 1;
    return static_cast<const char*>(std::memcpy(std::exchange(at, at + size), text, size));
  });
  return texts;
}

// Plugins destroy their plans without the lock.
void delete_all(PlanEntry* first) {
  while (first) delete std::exchange(first, first->next_to_destroy);
}
}  // namespace

Ref<PlanEntry> PlanCache::make_apart(CallDesc call) {
  PlanEntry* destroyable;
  {
    std::lock_guard lock(lock_);
    destroyable = take_destroyable();
  }
  delete_all(destroyable);
  auto texts = own_texts(call.attrs);
  auto entry = make_plan_entry(context_, std::move(call));
  entry->texts = std::move(texts);
  entry->cache = this;
  return entry;
}

Ref<PlanEntry> PlanCache::find_shared(const PlanKey& key, const Call& call,
                                      const TensorImpl* common) {
  {
    std::lock_guard lock(lock_);
    if (auto* known = look_up(key)) return Ref<PlanEntry>::share(known);
  }
  if (auto* capture = context_.stream->own_capture(); capture && !capture->creates_plans)
    throw UnsupportedError(
        fmt::format("{}: the plugin of {} cannot make plans during a capture; run the work once "
                    "before you capture it{}",
                    call.op.name, context_.device, path_suffix()));
  auto entry = make_plan_entry(context_, CallDesc(call, common));
  entry->cache = this;
  entry->hash = key.hash();
  entry->key.assign(key.words().begin(), key.words().end());
  Ref<PlanEntry> replaced;
  PlanEntry* destroyable;
  {
    std::lock_guard lock(lock_);
    if (auto* known = look_up(key)) {  // another thread was faster
      replaced = Ref<PlanEntry>::share(known);
      std::swap(entry, replaced);
    } else {
      if (count_ >= capacity_) replaced = take_unused();
      insert(entry);
    }
    destroyable = take_destroyable();
  }
  delete_all(destroyable);
  return entry;
}

// ---- the table; the lock is held ----

PlanEntry* PlanCache::look_up(const PlanKey& key) {
  if (table_.empty()) return nullptr;
  const size_t mask = table_.size() - 1;
  for (size_t i = key.hash() & mask; table_[i]; i = (i + 1) & mask)
    if (matches(*table_[i], key)) {
      table_[i]->used.store(true, std::memory_order_relaxed);
      return table_[i].get();
    }
  return nullptr;
}

void PlanCache::insert(Ref<PlanEntry> entry) {
  if ((count_ + 1) * 2 > table_.size()) grow();
  const size_t mask = table_.size() - 1;
  size_t i = entry->hash & mask;
  while (table_[i]) i = (i + 1) & mask;
  table_[i] = std::move(entry);
  ++count_;
}

void PlanCache::grow() {
  std::vector<Ref<PlanEntry>> bigger(std::max<size_t>(64, table_.size() * 2));
  table_.swap(bigger);
  count_ = 0;
  for (auto& e : bigger)
    if (e) insert(std::move(e));
}

// The loop ends, because every entry that the hand passes counts as unused the next time.
Ref<PlanEntry> PlanCache::take_unused() {
  for (;; ++clock_hand_) {
    clock_hand_ &= table_.size() - 1;
    if (table_[clock_hand_] &&
        !table_[clock_hand_]->used.exchange(false, std::memory_order_relaxed))
      return remove(clock_hand_);
  }
}

// Later entries that could take the free place move up, so that every search still finds them.
Ref<PlanEntry> PlanCache::remove(size_t at) {
  const size_t mask = table_.size() - 1;
  Ref<PlanEntry> removed = std::move(table_[at]);
  for (size_t i = (at + 1) & mask; table_[i]; i = (i + 1) & mask)
    if (const size_t home = table_[i]->hash & mask; ((i - home) & mask) >= ((i - at) & mask)) {
      table_[at] = std::move(table_[i]);
      at = i;
    }
  --count_;
  return removed;
}

// ---- entries without references ----

void destroy(PlanEntry* entry) {
  if (entry->cache)
    entry->cache->destroy_later(entry);
  else
    delete entry;  // it was never used
}

// All work that uses the entry was queued before its last reference was released.
void PlanCache::destroy_later(PlanEntry* entry) {
  std::lock_guard lock(lock_);
  entry->ticket = context_.stream->last();
  (last_to_destroy_ ? last_to_destroy_->next_to_destroy : first_to_destroy_) = entry;
  last_to_destroy_ = entry;
}

// Returns a list of the entries whose ticket the stream has reached.
PlanEntry* PlanCache::take_destroyable() {
  if (pins_ || !first_to_destroy_ || context_.stream->closed()) return nullptr;
  if (context_.backend.api().hangs()) return nullptr;  // their last run may still go on
  Reached reached(*context_.stream);
  PlanEntry *first = first_to_destroy_, *last = nullptr;
  for (auto* e = first; e && reached(e->ticket); e = e->next_to_destroy) last = e;
  if (!last) return nullptr;
  first_to_destroy_ = std::exchange(last->next_to_destroy, nullptr);
  if (!first_to_destroy_) last_to_destroy_ = nullptr;
  return first;
}

void PlanCache::pin() {
  std::lock_guard lock(lock_);
  ++pins_;
}

void PlanCache::unpin() {
  std::lock_guard lock(lock_);
  --pins_;
}

PlanEntry::~PlanEntry() {
  if (plan) api->destroy(plan);
}

bool PlanEntry::proposes() const {
  return order.empty() && !as_rows &&
         std::any_of(outputs.begin(), outputs.end(), [](auto& o) { return !o.row_major; });
}

const char* PlanEntry::name() const { return call.op->name; }

std::string PlanEntry::describe(const Shape* shape) const {
  std::string text = name();
  const char* between = ": ";
  for (auto& input : call.inputs) {
    if (!input) continue;
    text += between + (flattened && shape ? *shape : input->shape).str();
    between = ", ";
  }
  text += " on " + device.str();
  const bool overlaid = planner && planner->info().kind == TN_PLUGIN_OVERLAY;
  return overlaid ? text + " by the overlay " + planner->name() : text;
}

std::string PlanEntry::signature(const Shape* shape) const {
  std::string text;
  const Shape* common = !flattened ? nullptr : shape ? shape : &call.shape_of_all();
  auto add = [&](DType dtype, const Shape& own) {
    text += fmt::format("{}{} {}", text.empty() || text.ends_with("> ") ? "" : ", ", dtype,
                        common ? *common : own);
  };
  for (auto& input : call.inputs)
    if (input) add(input->dtype, input->shape);
  text += text.empty() ? "-> " : " -> ";
  for (auto& o : outputs)
    if (o.kind != OutputKind::absent) add(o.dtype, o.shape);
  return text;
}

std::unique_ptr<PlanStore> make_plan_store(DeviceContext& context) {
  return std::make_unique<PlanCache>(context);
}

}  // namespace tenon
