#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/format.h>
#include <tenon/modules/listing.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

namespace {

bool within(const void* p, const void* begin, size_t bytes) {
  std::less<const void*> before;
  return !before(p, begin) && before(p, static_cast<const char*>(begin) + bytes);
}

struct Listed : FieldVisitor {
  std::vector<std::pair<const void*, size_t>> ranges;
  void listed(const void* field, size_t bytes) override { ranges.emplace_back(field, bytes); }
  bool holds(const void* p) const {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](auto& r) { return within(p, r.first, r.second); });
  }
};

// The tensors that the fields of a module and of the modules below it name.
std::set<const void*> named_tensors(ModuleRef module) {
  struct Collect : FieldVisitor {
    std::set<const void*> tensors;
    std::set<std::pair<const void*, const void*>>
        seen;  // guards against a cycle of shared pointers
    void parameter(std::string_view, Tensor& t) override { tensors.insert(t.impl().get()); }
    void buffer(std::string_view, Tensor& t, bool) override { tensors.insert(t.impl().get()); }
    void child(std::string_view, ModuleRef m) override {
      if (seen.emplace(m.self, m.type).second) m.type->visit(m.self, *this);
    }
  } collect;
  collect.child("", module);
  return std::move(collect.tensors);
}

// Looks for parameters in std::vectors that no field covers. A vector shows as three neighbouring
// words of the object: pointers to the begin, the end and the end of the capacity. Three words may
// look so by chance, as what lies between fields is not set: the first element of a vector, which
// is no larger than kLargestElement, would hold the first of the parameters. Only parameters that
// require a gradient count.
constexpr uintptr_t kLargestElement = 65536;
std::vector<detail::PlacedTensor> in_hidden_vectors(ModuleRef module, const Listed& listed) {
  using Word [[gnu::may_alias]] = uintptr_t;
  std::vector<detail::PlacedTensor> found;
  if (reinterpret_cast<uintptr_t>(module.self) % alignof(Word))
    return found;  // no vector lies in such an object
  const auto* words = static_cast<const Word*>(module.self);
  auto word = [&](size_t i) {
    return __atomic_load_n(words + i, __ATOMIC_RELAXED);
  };  // another thread may change its own
  const auto is_listed = [&](size_t i) { return listed.holds(words + i); };
  for (size_t i = 0; i + 3 <= module.type->size / sizeof(uintptr_t);) {
    const uintptr_t begin = word(i), end = word(i + 1), reserved = word(i + 2);
    if (!begin || begin > end || end > reserved ||
        (begin | end | reserved) % alignof(detail::Placed) || is_listed(i) || is_listed(i + 1) ||
        is_listed(i + 2)) {
      ++i;
      continue;
    }
    i += 3;  // the end of one vector and the beginning of the next are none
    auto placed = detail::placed_within(reinterpret_cast<const void*>(begin), end - begin);
    const bool begins = std::any_of(placed.begin(), placed.end(), [&](auto& p) {
      return reinterpret_cast<uintptr_t>(p.place) - begin < kLargestElement;
    });
    for (auto& p : placed)
      if (begins && p.tensor.defined() && p.tensor.requires_grad()) found.push_back(std::move(p));
  }
  return found;
}

// The pairs of types that a warning has named: a parent and its child, or the parent twice when the
// warning was about a vector that it holds.
class Warned {
 public:
  // Returns true the first time that the pair is added.
  bool add(const ModuleType* parent, const ModuleType* child) {
    std::lock_guard lock(mutex_);
    return pairs_.emplace(parent, child).second;
  }
  bool has(const ModuleType* parent, const ModuleType* child) {
    std::lock_guard lock(mutex_);
    return pairs_.contains({parent, child});
  }

 private:
  ForkMutex mutex_{ForkOrder::tables};
  std::set<std::pair<const ModuleType*, const ModuleType*>> pairs_;
};
Warned& warned() {
  static constinit NeverDestroyed<Warned> all;  // models may be static objects
  return all.get();
}

[[noreturn]] void left_out(const ModuleType& type, const std::string& what) {
  throw ValueError(
      fmt::format("{}: its fields() does not name {} that it holds, which would be neither trained "
                  "nor saved nor moved; add it, as v(\"name\", name)",
                  type.name, what));
}

// Returns "a parameter or buffer (f32 of shape (2,) at byte 48 of the object)": what is known of
// fields that have no names, in the order of their declaration.
std::string describe(std::vector<detail::PlacedTensor> fields, const void* object) {
  auto offset = [&](const detail::PlacedTensor& p) {
    return static_cast<const char*>(p.place) - static_cast<const char*>(object);
  };
  std::sort(fields.begin(), fields.end(), [&](auto& a, auto& b) { return offset(a) < offset(b); });
  std::string each;
  for (auto& p : fields)
    each += fmt::format("{}{} of shape {} at byte {}", each.empty() ? "" : ", ", p.tensor.dtype(),
                        p.tensor.shape(), offset(p));
  return fields.size() == 1
             ? fmt::format("a parameter or buffer ({} of the object)", each)
             : fmt::format("{} parameters or buffers ({} of the object)", fields.size(), each);
}

void warn(const std::string& text) { log_message(TN_LOG_WARNING, "tenon", text); }

// Returns the smallest object among `module` and the modules below it that contains the address:
// its fields() should have named what is there.
ModuleRef holder_of(const void* address, ModuleRef module) {
  ModuleRef holder = module;
  for (auto& below : named_modules(module))
    if (within(address, below.module.self, below.module.type->size) &&
        below.module.type->size <= holder.type->size)
      holder = below.module;
  return holder;
}

bool to_be_trained(ModuleRef module) {
  auto all = parameters(module);
  return std::any_of(all.begin(), all.end(), [](const Tensor& p) { return p.requires_grad(); });
}

// Whether it matters that the module is found: it has parameters, buffers or a training mode.
bool has_state(ModuleRef module) {
  struct Any : FieldVisitor {
    bool found = false;
    void parameter(std::string_view, Tensor&) override { found = true; }
    void buffer(std::string_view, Tensor&, bool) override { found = true; }
    void training(bool&) override { found = true; }
    void child(std::string_view, ModuleRef m) override { m.type->visit(m.self, *this); }
  } any;
  module.type->visit(module.self, any);
  return any.found;
}

}  // namespace

void require_all_listed(ModuleRef module) {
  const ModuleType& type = *module.type;
  if (!type.by_hand) return;
  struct Right {
    ForkMutex mutex{ForkOrder::tables};
    std::set<const ModuleType*> types;
  };
  static constinit NeverDestroyed<Right> kept;
  Right& right = kept.get();
  {
    std::lock_guard lock(right.mutex);
    if (right.types.contains(&type)) return;
  }
  Listed listed;
  type.visit(module.self, listed);
  bool absent = false;
  std::vector<detail::PlacedTensor> left;
  for (auto& p : detail::placed_within(module.self, type.size)) {
    if (listed.holds(p.place)) continue;
    if (p.tensor.defined())
      left.push_back(std::move(p));
    else
      absent = true;
  }
  auto hidden = in_hidden_vectors(module, listed);
  if (!left.empty() || !hidden.empty()) {
    const auto named = named_tensors(module);
    auto is_named = [&](const detail::PlacedTensor& p) {
      return named.contains(p.tensor.impl().get());
    };
    std::erase_if(left, is_named);
    std::erase_if(hidden, is_named);
  }
  if (!left.empty()) left_out(type, describe(left, module.self));
  if (!hidden.empty() && warned().add(&type, &type))
    warn(
        fmt::format("{} holds a std::vector with {} parameters that its fields() does not name, so "
                    "parameters(), state_dict() and save() do not have them; add it, as "
                    "v(\"name\", name), unless they belong to another model",
                    type.name, hidden.size()));
  if (absent) return;  // another object of this type may have what this one lacks
  std::lock_guard lock(right.mutex);
  right.types.insert(&type);
}

void require_listed_child(ModuleRef parent, ModuleRef child) {
  if (within(child.self, parent.self, parent.type->size)) {
    if (has_state(child))
      left_out(*holder_of(child.self, parent).type,
               fmt::format("a module of type {}", child.type->name));
    return;
  }
  if (!parent.type->by_hand || !grad_enabled() || !to_be_trained(child)) return;
  if (warned().has(parent.type, parent.type) || !warned().add(parent.type, child.type)) return;
  warn(fmt::format(
      "{0} calls a module of type {1} that its fields() does not name, so {0}'s parameters() and "
      "state_dict() do not have it; add it there unless it belongs to another model",
      parent.type->name, child.type->name));
}

}  // namespace tenon::nn
