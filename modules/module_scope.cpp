// Finds out under which name a module is called, so that errors can say "LeNet.fc1".
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

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

struct HashOfModule {
  size_t operator()(ModuleRef m) const {
    return reinterpret_cast<uintptr_t>(m.self) * 31 ^ reinterpret_cast<uintptr_t>(m.type);
  }
};

// All modules below one, each where a walk through the fields meets it first.
class Below : FieldVisitor {
 public:
  static constexpr size_t kNone = SIZE_MAX;
  struct Found {
    ModuleRef module;
    size_t holder;  // in `all`; kNone for the module itself
    std::string name;
  };

  explicit Below(ModuleRef module) : top_(module) { module.type->visit(module.self, *this); }

  const std::vector<Found>& all() const { return all_; }
  // Returns the number of a module in `all`; kNone if it is not below.
  size_t find(ModuleRef module) const {
    const auto at = numbers_.find(module);
    return at == numbers_.end() ? kNone : at->second;
  }
  std::string path(size_t number) const {
    const Found& found = all_[number];
    return found.holder == kNone ? found.name : path(found.holder) + "." + found.name;
  }

 private:
  // A module that was met before has nothing below it that was not, so cycles of shared pointers
  // end here too.
  void child(std::string_view name, ModuleRef m) override {
    if (!numbers_.emplace(m, all_.size()).second) return;
    all_.push_back({m, holder_, std::string(name)});
    if (m == top_) return;
    const size_t before = std::exchange(holder_, all_.size() - 1);
    m.type->visit(m.self, *this);
    holder_ = before;
  }

  const ModuleRef top_;
  size_t holder_ = kNone;
  std::vector<Found> all_;
  std::unordered_map<ModuleRef, size_t, HashOfModule> numbers_;
};

bool is_below(ModuleRef module, ModuleRef child) {
  return Below(module).find(child) != Below::kNone;
}

// How many modules ended at an address, or at one of those that share its place in this table.
std::atomic<uint32_t> ended[1024];
std::atomic<uint32_t>& ended_at(const void* module) {
  return ended[(reinterpret_cast<uintptr_t>(module) >> 3) % std::size(ended)];
}

// A name below a module.
struct Place {
  ModuleRef parent, module;
  bool operator==(const Place&) const = default;
};
struct HashOfPlace {
  size_t operator()(const Place& p) const {
    return HashOfModule()(p.module) * 31 + HashOfModule()(p.parent);
  }
};

// The names that a thread found, by address. An object may take the address of an earlier one of
// the same type, so a name holds as long as none has ended there. A module that is held by a
// pointer and changes its place without an end keeps its first name here.
struct KnownNames {
  struct Slot {
    const void *parent, *parent_type, *self, *type;
    uint32_t ended;
    const char* name;
  };
  struct Name {
    uint32_t ended;
    const char* text;
  };
  Slot recent[256];
  std::unordered_map<Place, Name, HashOfPlace> all;  // in a parent

  // Modules that have ended stay until there are many.
  void make_room(size_t more) {
    constexpr size_t kMax = 1 << 16;
    if (all.size() + more > kMax) all.clear();
  }
};

uint32_t ended_in(const Place& place) {
  return ended_at(place.module.self).load(std::memory_order_relaxed) +
         ended_at(place.parent.self).load(std::memory_order_relaxed);
}

// Remembers the names of what the module that holds `number` holds besides, which will probably be
// called next: each would take a walk of its own.
void remember_beside(size_t number, const Below& below, ModuleRef parent, KnownNames& known) {
  const auto& all = below.all();
  const auto beside = [&](const Below::Found& f) { return f.holder == all[number].holder; };
  known.make_room(static_cast<size_t>(std::count_if(all.begin(), all.end(), beside)));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!beside(all[i])) continue;
    const Place place{parent, all[i].module};
    known.all.insert_or_assign(place, KnownNames::Name{ended_in(place), intern(below.path(i))});
  }
}

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
  const Place place{ref(parent_), me};
  auto* known = PerThread<KnownNames>::get();
  if (known)
    if (const auto at = known->all.find(place);
        at != known->all.end() && at->second.ended == ended_in(place))
      return at->second.text;
  const Below below(place.parent);
  if (const size_t number = below.find(me); number != Below::kNone) {
    if (known) remember_beside(number, below, place.parent, *known);
    return intern(below.path(number));
  }
  const ModuleScope* around = parent_->parent_;
  while (around && !is_below(ref(around), me)) around = around->parent_;
  if (!around) require_listed_child(place.parent, me);
  return intern(std::string(type_->name));
}

const char* ModuleScope::name_in_parent() const {
  const void* parent = parent_ ? parent_->self_ : nullptr;
  const void* parent_type = parent_ ? parent_->type_ : nullptr;
  auto bits = [](const void* p) { return reinterpret_cast<uintptr_t>(p) >> 3; };
  auto* known = PerThread<KnownNames>::get();
  if (!known) return find_name();
  auto& slot =
      known->recent[(bits(self_) * 31 + bits(parent) + bits(type_) * 7) % std::size(known->recent)];
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
