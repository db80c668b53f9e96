#include <tenon/modules/listing.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/runtime/fork.h>
#include <tenon/modules/module.h>
#include <tenon/plugins/host/services.h>

namespace tenon::nn {

namespace {

bool within(const void* p, const void* begin, size_t bytes) {
  std::less<const void*> before;
  return !before(p, begin) && before(p, static_cast<const char*>(begin) + bytes);
}

struct Listed : FieldVisitor {
  std::vector<std::pair<const void*, size_t>> ranges;
  void listed(const void* field, size_t bytes) override { ranges.emplace_back(field, bytes); }
};

// True the first time that it is asked for a pair.
bool first_time(const void* a, const void* b) {
  static auto& mutex = *new ForkMutex(ForkOrder::tables);
  static auto* seen = new std::set<std::pair<const void*, const void*>>;  // neither is freed: models may be static objects
  std::lock_guard lock(mutex);
  return seen->emplace(a, b).second;
}

[[noreturn]] void left_out(const ModuleType& type, const std::string& what) {
  throw ValueError(std::string(type.name) + ": its fields() does not name " + what +
                   " that it holds, which would be neither trained nor saved nor moved; add it, as v(\"name\", name)");
}

// The smallest module of `module` and those below it in which the address lies: the one that should have named it.
ModuleRef holder_of(const void* address, ModuleRef module) {
  ModuleRef holder = module;
  for (auto& below : named_modules(module))
    if (within(address, below.module.self, below.module.type->size) && below.module.type->size <= holder.type->size)
      holder = below.module;
  return holder;
}

bool to_be_trained(ModuleRef module) {
  auto all = parameters(module);
  return std::any_of(all.begin(), all.end(), [](const Tensor& p) { return p.requires_grad(); });
}

// Whether it matters to anyone that the module is found: it has state, or a mode.
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
  static auto& mutex = *new ForkMutex(ForkOrder::tables);
  static auto* right = new std::set<const ModuleType*>;  // never freed, as above
  {
    std::lock_guard lock(mutex);
    if (right->contains(&type)) return;
  }
  Listed listed;
  type.visit(module.self, listed);
  for (auto* p : detail::placed_within(module.self, type.size))
    if (std::none_of(listed.ranges.begin(), listed.ranges.end(), [&](auto& r) { return within(p, r.first, r.second); }))
      left_out(type, "a parameter or buffer");
  std::lock_guard lock(mutex);
  right->insert(&type);
}

void require_listed_child(ModuleRef parent, ModuleRef child) {
  if (within(child.self, parent.self, parent.type->size)) {
    if (has_state(child)) left_out(*holder_of(child.self, parent).type, "a module of type " + std::string(child.type->name));
    return;
  }
  if (!parent.type->by_hand || !grad_enabled() || !to_be_trained(child) || !first_time(parent.type, child.type)) return;
  const std::string name(parent.type->name), called(child.type->name);
  plugins::log(TN_LOG_WARNING, "tenon",
               name + " calls a module of type " + called + " that its fields() does not name, so " + name +
                   "'s parameters() and state_dict() do not have it; add it there unless it belongs to another model");
}

}  // namespace tenon::nn
