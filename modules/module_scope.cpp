// Finds out under which name a module is called, so that errors can say "LeNet.fc1".
#include <iterator>
#include <mutex>
#include <unordered_set>

#include <tenon/core/per_thread.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

namespace {

thread_local const ModuleScope* innermost TENON_FAST_TLS = nullptr;

// Names live as long as the process: queued work may mention them.
const char* intern(std::string name) {
  static std::mutex mutex;
  static auto* names = new std::unordered_set<std::string>;
  std::lock_guard lock(mutex);
  return names->insert(std::move(name)).first->c_str();
}

struct FindChild : FieldVisitor {
  ModuleRef wanted;
  std::string path;  // of the module being visited
  bool found = false;
  std::vector<ModuleRef> open;  // guards against a cycle of shared pointers

  void child(std::string_view name, ModuleRef m) override {
    if (found) return;
    size_t length = path.size();
    if (length) path += '.';
    path += name;
    if (m == wanted) {
      found = true;
    } else {
      for (auto& o : open)
        if (o == m) return path.resize(length);
      visit(m);
    }
    if (!found) path.resize(length);
  }
  void visit(ModuleRef m) {
    open.push_back(m);
    m.type->visit(m.self, *this);
    open.pop_back();
  }
};

const char* find_name(ModuleRef parent, ModuleRef child) {
  FindChild find;
  find.wanted = child;
  find.visit(parent);
  return intern(find.found ? std::move(find.path) : std::string(child.type->name));
}

// A thread's answers so far, by address. An object may take the place of another of the same types: then an error could name the
// former's field, nothing worse.
struct RecentNames {
  struct Slot {
    const void *parent, *parent_type, *self, *type;
    const char* name;
  };
  Slot slots[256];
};

}  // namespace

const char* ModuleScope::name_in_parent() const {
  const void* parent = parent_ ? parent_->self_ : nullptr;
  const void* parent_type = parent_ ? parent_->type_ : nullptr;
  auto bits = [](const void* p) { return reinterpret_cast<uintptr_t>(p) >> 3; };
  auto find = [&] {
    ModuleRef me(const_cast<void*>(self_), type_);
    return parent_ ? find_name({const_cast<void*>(parent), parent_->type_}, me) : intern(std::string(type_->name));
  };
  auto* recent = PerThread<RecentNames>::get();
  if (!recent) return find();
  auto& slot = recent->slots[(bits(self_) * 31 + bits(parent) + bits(type_) * 7) % std::size(recent->slots)];
  if (slot.self != self_ || slot.parent != parent || slot.type != type_ || slot.parent_type != parent_type)
    slot = {parent, parent_type, self_, type_, find()};
  return slot.name;
}

ModuleScope::ModuleScope(const void* self, const ModuleType* type)
    : self_(self), type_(type), parent_(innermost), path_(name_in_parent()) {
  innermost = this;
}
ModuleScope::~ModuleScope() { innermost = parent_; }

}  // namespace tenon::nn
