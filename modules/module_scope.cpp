// Finds out under which name a module is called, so that errors can say "LeNet.fc1".
#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <optional>
#include <unordered_set>

#include <tenon/core/base/error_path.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/per_thread.h>
#include <tenon/core/base/recorded_calls.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/misplaced.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/modules/listing.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

namespace {

thread_local const ModuleScope* innermost TENON_FAST_TLS = nullptr;
thread_local detail::CallWatcher* watching TENON_FAST_TLS = nullptr;

// Names live as long as the process: queued work may mention them.
const char* intern(std::string name) {
  struct Names {
    ForkMutex mutex{ForkOrder::tables};
    std::unordered_set<std::string> all;
  };
  static constinit NeverDestroyed<Names> kept;
  Names& names = kept.get();
  std::lock_guard lock(names.mutex);
  return names.all.insert(std::move(name)).first->c_str();
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

// The child's path below the module, or nullopt if the child is not below it.
std::optional<std::string> find_path(ModuleRef module, ModuleRef child) {
  FindChild find;
  find.wanted = child;
  find.visit(module);
  return find.found ? std::optional(std::move(find.path)) : std::nullopt;
}

// How many modules ended at an address, or at one of those that share its place in this table.
std::atomic<uint32_t> ended[1024];
std::atomic<uint32_t>& ended_at(const void* module) {
  return ended[(reinterpret_cast<uintptr_t>(module) >> 3) % std::size(ended)];
}

// The names that a thread found recently, by address. An object may take the address of an earlier
// one of the same type, so a name holds as long as none has ended there.
struct RecentNames {
  struct Slot {
    const void *parent, *parent_type, *self, *type;
    uint32_t ended;
    const char* name;
  };
  Slot slots[256];
};

}  // namespace

// Searches the parent for the module. If no module on the call stack lists it, a fields() may have
// left it out.
const char* ModuleScope::find_name() const {
  auto ref = [](const ModuleScope* scope) {
    return ModuleRef(const_cast<void*>(scope->self_), scope->type_);
  };
  const ModuleRef me = ref(this);
  require_all_listed(me);
  if (!parent_) return intern(std::string(type_->name));
  if (auto path = find_path(ref(parent_), me)) return intern(std::move(*path));
  const ModuleScope* around = parent_->parent_;
  while (around && !find_path(ref(around), me)) around = around->parent_;
  if (!around) require_listed_child(ref(parent_), me);
  return intern(std::string(type_->name));
}

const char* ModuleScope::name_in_parent() const {
  const void* parent = parent_ ? parent_->self_ : nullptr;
  const void* parent_type = parent_ ? parent_->type_ : nullptr;
  auto bits = [](const void* p) { return reinterpret_cast<uintptr_t>(p) >> 3; };
  auto* recent = PerThread<RecentNames>::get();
  if (!recent) return find_name();
  auto& slot =
      recent->slots[(bits(self_) * 31 + bits(parent) + bits(type_) * 7) % std::size(recent->slots)];
  const uint32_t now = ended_at(self_).load(std::memory_order_relaxed) +
                       ended_at(parent).load(std::memory_order_relaxed);
  if (slot.self != self_ || slot.parent != parent || slot.type != type_ ||
      slot.parent_type != parent_type || slot.ended != now)
    slot = {parent, parent_type, self_, type_, now, find_name()};
  return slot.name;
}

namespace detail {
void module_is_gone(const void* module, size_t bytes) noexcept {
  ended_at(module).fetch_add(1, std::memory_order_relaxed);
  recording::flags_are_gone(module, bytes);
}
}  // namespace detail

ModuleScope::ModuleScope(const void* self, const ModuleType* type)
    : self_(self), type_(type), parent_(innermost), watcher_(watching), path_(name_in_parent()) {
  if (recording::here()) [[unlikely]]
    recording::calls(self);
  innermost = this;
}
detail::CallWatcher::CallWatcher() : before_(watching) { watching = this; }
detail::CallWatcher::~CallWatcher() { watching = before_; }

ModuleScope::~ModuleScope() { innermost = parent_; }

CallPlace current_call() { return {innermost, watching}; }
void continue_call(CallPlace place) {
  innermost = place.innermost;
  watching = place.watching;
}

namespace {

void set_text(Error& error, const std::string& text) {
  static_cast<std::runtime_error&>(error) = std::runtime_error(text);
}

// Says in the error what the tensor on the wrong device is to the module, if that is known. If all
// the module's own tensors are on one device, that is where the user put them, so the input is
// misplaced, whichever of the two the operator takes first.
void explain_place(MisplacedError& error, ModuleRef module) {
  auto own = named_parameters(module);
  for (auto& buffer : named_buffers(module)) own.push_back(std::move(buffer));
  if (own.empty()) return;
  const auto named = std::find_if(
      own.begin(), own.end(), [&](const NamedTensor& n) { return n.tensor.is_same(error.tensor); });
  const Device home = named != own.end() ? error.tensor.device() : error.wanted;
  const bool together = std::all_of(
      own.begin(), own.end(), [&](const NamedTensor& n) { return n.tensor.device() == home; });
  if (!together) {
    if (named == own.end()) return;  // an outer module may know it
    add_to_first_line(
        error,
        fmt::format("; the argument is \"{}\" of {}, whose parameters are on several devices",
                    named->name, module.type->name));
  } else {
    const Device input = named != own.end() ? error.wanted : error.tensor.device();
    const std::string text = error.what();
    const std::string argument(error.argument), position = argument.substr(0, argument.size() - 1);
    const std::string which_input = named == own.end() ? fmt::format(" ({})", position) : "";
    const std::string which_parameter =
        named != own.end() ? fmt::format(" ({} is \"{}\")", argument, named->name) : "";
    const std::string details = text.substr(std::min(text.find('\n'), text.size()));
    set_text(error,
             fmt::format("{0}: the input{1} is on {2}, but the parameters of {3} are on {4}{5}; "
                         "move the input with .to(\"{4}\"), or the model with .to(\"{2}\"){6}{7}",
                         error.op, which_input, input, module.type->name, home, which_parameter,
                         path_suffix(), details));
  }
  error.explained = true;
}

}  // namespace

void ModuleScope::explain(Error& error) const {
  add_path(error);
  if (auto* misplaced = dynamic_cast<MisplacedError*>(&error); misplaced && !misplaced->explained)
    explain_place(*misplaced, {const_cast<void*>(self_), type_});
}

}  // namespace tenon::nn
