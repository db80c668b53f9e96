#include <tenon/core/error.h>
#include <tenon/core/per_thread.h>
#include <tenon/core/runtime/capture.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/plan_cache.h>
#include <tenon/core/tensor_impl.h>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace tenon {

namespace {
// Past this many plans of one device the cache starts anew: shapes that never return would fill the memory.
constexpr size_t max_entries = 8192;

uint64_t mix(uint64_t h, uint64_t word) {
  auto product = static_cast<unsigned __int128>(h ^ word) * 0x9e3779b97f4a7c15u;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

bool matches(const PlanEntry& e, const PlanKey& key) {
  const auto words = key.words();
  return e.hash == key.hash() && e.key.size() == words.size() && std::memcmp(e.key.data(), words.data(), words.size_bytes()) == 0;
}
}  // namespace

int32_t alias_of(const Tensor& out, Inputs inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    auto &a = impl_of(*inputs[i]), &b = impl_of(out);
    if (a.storage == b.storage && a.offset == b.offset && a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides)
      return static_cast<int32_t>(i);
  }
  return -1;
}

PlanKey::PlanKey(const Op& op, Inputs inputs, const Attrs& attrs, uint32_t wanted, const Tensor* out) {
  add(reinterpret_cast<intptr_t>(&op));
  add(static_cast<int64_t>(inputs.size()) << 32 | wanted);
  for (auto* t : inputs) {
    if (t)
      add(*t);
    else
      add(-1);
  }
  if (out) {
    add(-2 - alias_of(*out, inputs));
    add(*out);
  }
  for (auto& a : attrs.all()) {
    switch (a.kind) {
      case TN_ATTR_FLOAT: {
        int64_t bits;
        std::memcpy(&bits, &a.f, sizeof bits);
        add(bits);
        break;
      }
      case TN_ATTR_STRING:
        for (const char* c = a.s; *c; ++c) add(*c);
        add(0);
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
  add(static_cast<int64_t>(t.dtype) << 8 | static_cast<int64_t>(t.shape.size()) << 1 | t.contiguous);
  for (auto d : t.shape) add(d);
  if (!t.contiguous)
    for (auto s : t.strides) add(s);
}

void PlanKey::grow() {
  auto bigger = std::make_unique<int64_t[]>(capacity_ * 4);
  std::copy_n(words_, count_, bigger.get());
  heap_ = std::move(bigger);
  words_ = heap_.get();
  capacity_ *= 4;
}

PlanEntry* PlanCache::look_up(const PlanKey& key) {
  if (table_.empty()) return nullptr;
  const size_t mask = table_.size() - 1;
  for (size_t i = key.hash() & mask; table_[i]; i = (i + 1) & mask)
    if (matches(*table_[i], key)) return table_[i].get();
  return nullptr;
}

void PlanCache::insert(std::unique_ptr<PlanEntry> entry) {
  if ((count_ + 1) * 2 > table_.size()) {
    auto old = std::move(table_);
    table_ = std::vector<std::unique_ptr<PlanEntry>>(std::max<size_t>(64, old.size() * 2));
    count_ = 0;
    for (auto& e : old)
      if (e) insert(std::move(e));
  }
  const size_t mask = table_.size() - 1;
  size_t i = entry->hash & mask;
  while (table_[i]) i = (i + 1) & mask;
  table_[i] = std::move(entry);
  ++count_;
}

namespace {

// A thread's latest answers, so that a loop over the same few operators takes no lock.
struct Recent {
  uint64_t cache;
  PlanEntry* entry;
};
constexpr size_t recent_size = 256;
struct RecentAnswers {
  Recent slots[recent_size];
};

std::atomic<uint64_t> next_cache_id{1};

}  // namespace

PlanCache::PlanCache(DeviceContext& context) : context_(context), id_(next_cache_id.fetch_add(1)) {}

PlanEntry& PlanCache::find(const Op& op, Inputs inputs, const Attrs& attrs, size_t num_scalars, uint32_t wanted,
                           const Tensor* out) {
  PlanKey key(op, inputs, attrs, wanted, out);
  auto* recent = PerThread<RecentAnswers>::get();
  if (!recent) [[unlikely]]  // no memory for it: the shared table does
    return find_shared(key, op, inputs, attrs, num_scalars, wanted, out);
  auto& slot = recent->slots[key.hash() % recent_size];
  const uint64_t id = id_.load(std::memory_order_acquire);
  if (slot.cache == id && matches(*slot.entry, key)) return *slot.entry;
  auto& entry = find_shared(key, op, inputs, attrs, num_scalars, wanted, out);
  slot = {id_.load(std::memory_order_acquire), &entry};
  return entry;
}

PlanEntry& PlanCache::find_shared(const PlanKey& key, const Op& op, Inputs inputs, const Attrs& attrs, size_t num_scalars,
                                  uint32_t wanted, const Tensor* out) {
  {
    std::lock_guard lock(lock_);
    if (auto* known = look_up(key)) return *known;
  }
  if (auto* capture = context_.stream->own_capture(); capture && !capture->creates_plans)
    throw UnsupportedError(std::string(op.name) + ": the plugin of " + context_.device.str() +
                           " cannot make plans while it captures; run the work once before it is captured" + path_suffix());
  auto entry = make_plan_entry(context_, op, inputs, attrs, num_scalars, wanted, out);
  entry->hash = key.hash();
  entry->key.assign(key.words().begin(), key.words().end());
  std::unique_lock lock(lock_);
  if (auto* known = look_up(key)) return *known;  // another thread was faster
  if (count_ >= max_entries && !context_.stream->capturing()) {
    lock.unlock();
    context_.stream->wait(context_.stream->last());
    lock.lock();
    forget_all();
  }
  auto& made = *entry;
  insert(std::move(entry));
  return made;
}

void PlanCache::clear() {
  std::lock_guard lock(lock_);
  forget_all();
}

void PlanCache::forget_all() {
  id_.store(next_cache_id.fetch_add(1), std::memory_order_release);
  if (pins_)
    for (auto& e : retired_)
      if (e) pinned_.push_back(std::move(e));
  retired_ = std::move(table_);
  table_.clear();
  count_ = 0;
}

void PlanCache::pin() {
  std::lock_guard lock(lock_);
  ++pins_;
}

void PlanCache::unpin() {
  std::vector<std::unique_ptr<PlanEntry>> ended;
  std::lock_guard lock(lock_);
  if (--pins_ == 0) ended.swap(pinned_);
}

PlanEntry::~PlanEntry() {
  if (plan) plan->destroy(plan);
}

std::string PlanEntry::describe() const {
  std::string text = op->name;
  text += ": ";
  for (size_t i = 0; i < input_shapes.size(); ++i) text += (i ? ", " : "") + input_shapes[i].str();
  return text + " on " + device.str();
}

}  // namespace tenon
