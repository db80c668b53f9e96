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
bool matches(const PlanEntry& e, const PlanKey& key) {
  const auto words = key.words();
  return e.hash == key.hash() && e.key.size() == words.size() &&
         std::memcmp(e.key.data(), words.data(), words.size_bytes()) == 0;
}

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

Recent& slot_of(const PlanKey& key) {
  auto* recent = PerThread<RecentAnswers>::get();
  if (!recent) [[unlikely]]
    throw std::bad_alloc();  // nothing would hold the entry for this thread
  return recent->slots[key.hash() % kRecentPlans];
}

// Whether the slot has the entry, which counts as used then.
bool holds(const Recent& slot, const PlanCache* cache, const PlanKey& key) {
  if (slot.cache != cache || !matches(*slot.entry, key)) return false;
  if (!slot.entry->used.load(std::memory_order_relaxed))
    slot.entry->used.store(true, std::memory_order_relaxed);
  return true;
}

}  // namespace

PlanEntry& PlanCache::find(const Call& call, const TensorImpl* common) {
  const PlanKey key(call, common);
  auto& slot = slot_of(key);
  if (holds(slot, this, key)) return *slot.entry;
  slot.entry = find_shared(key, call, common);
  slot.cache = this;
  return *slot.entry;
}

PlanEntry* PlanCache::find_known(const Call& call, const TensorImpl* common) {
  const PlanKey key(call, common);
  auto& slot = slot_of(key);
  if (holds(slot, this, key)) return slot.entry.get();
  Ref<PlanEntry> known;
  {
    std::lock_guard lock(lock_);
    known = Ref<PlanEntry>::share(look_up(key));
  }
  if (!known) return nullptr;
  slot.entry = std::move(known);
  slot.cache = this;
  return slot.entry.get();
}

// The tensors have no memory. Each gets an address of its own, except a result that is one of the
// inputs.
Ref<PlanEntry> PlanCache::find(const CallDesc& desc) {
  std::vector<Tensor> tensors;
  const auto add = [&](const TensorDesc& t) {
    const auto place = static_cast<int64_t>(tensors.size());
    tensors.push_back(Tensor(Ref<TensorImpl>::adopt(
        new TensorImpl(t.dtype, context_.device, t.shape, t.strides, place, nullptr))));
  };
  for (auto& input : desc.inputs)
    if (input)
      add(*input);
    else
      tensors.emplace_back();
  const size_t changed = desc.out_input >= 0 ? static_cast<size_t>(desc.out_input) : tensors.size();
  if (desc.out && changed == tensors.size()) add(*desc.out);
  std::vector<const Tensor*> inputs;
  for (size_t i = 0; i < desc.inputs.size(); ++i)
    inputs.push_back(desc.inputs[i] ? &tensors[i] : nullptr);
  const std::vector<Scalar> scalars(desc.num_scalars);
  const Call call{*desc.op,
                  inputs,
                  desc.attrs,
                  scalars,
                  desc.wanted,
                  desc.out ? &tensors[changed] : nullptr,
                  desc.shape ? &*desc.shape : nullptr,
                  desc.format};
  const TensorImpl* const common = common_layout(call);
  return find_shared(PlanKey(call, common), call, common);
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
