// Finds out under which name a module is called, so that errors can say "LeNet.fc1".
#include <algorithm>
#include <iterator>
#include <mutex>
#include <optional>
#include <unordered_set>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/per_thread.h>
#include <tenon/core/dispatch/misplaced.h>
#include <tenon/core/error.h>
#include <tenon/modules/listing.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

namespace {

thread_local const ModuleScope* innermost TENON_FAST_TLS = nullptr;

// Names live as long as the process: queued work may mention them.
const char* intern(std::string name) {
  static auto& mutex = *new ForkMutex(ForkOrder::tables);
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

// The child's path below the module; none where it is not below it.
std::optional<std::string> find_path(ModuleRef module, ModuleRef child) {
  FindChild find;
  find.wanted = child;
  find.visit(module);
  return find.found ? std::optional(std::move(find.path)) : std::nullopt;
}

// A thread's answers so far, by address. An object may take the place of another of the same types:
// then an error could name the former's field, nothing worse.
struct RecentNames {
  struct Slot {
    const void *parent, *parent_type, *self, *type;
    const char* name;
  };
  Slot slots[256];
};

}  // namespace

// Looks through the parent, and whether what is called was listed by those around it.
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
  if (slot.self != self_ || slot.parent != parent || slot.type != type_ ||
      slot.parent_type != parent_type)
    slot = {parent, parent_type, self_, type_, find_name()};
  return slot.name;
}

ModuleScope::ModuleScope(const void* self, const ModuleType* type)
    : self_(self), type_(type), parent_(innermost), path_(name_in_parent()) {
  innermost = this;
}
ModuleScope::~ModuleScope() { innermost = parent_; }

namespace {

void set_text(Error& error, const std::string& text) {
  static_cast<std::runtime_error&>(error) = std::runtime_error(text);
}

// The text with `addition` at the end of its first line: details follow below.
void add_to_first_line(Error& error, const std::string& addition) {
  std::string text = error.what();
  text.insert(std::min(text.find('\n'), text.size()), addition);
  set_text(error, text);
}

// What the tensor on the wrong device is to the module, where that can be told. Where the module's
// own are all on one device, they are where they were put, and it is the input that is misplaced,
// whichever of the two came first in the operator's list.
void explain_place(MisplacedError& error, ModuleRef module) {
  auto own = named_parameters(module);
  for (auto& buffer : named_buffers(module)) own.push_back(std::move(buffer));
  if (own.empty()) return;
  const auto named = std::find_if(
      own.begin(), own.end(), [&](const NamedTensor& n) { return n.tensor.is_same(error.tensor); });
  const Device home = named != own.end() ? error.tensor.device() : error.wanted;
  const bool together = std::all_of(
      own.begin(), own.end(), [&](const NamedTensor& n) { return n.tensor.device() == home; });
  const std::string name(module.type->name);
  if (!together) {
    if (named == own.end()) return;  // an outer module may know it
    add_to_first_line(error, "; the argument is \"" + named->name + "\" of " + name +
                                 ", whose parameters are on several devices");
  } else {
    const Device input = named != own.end() ? error.wanted : error.tensor.device();
    const std::string text = error.what();
    const std::string which =
        named != own.end() ? " (" + error.argument + " is \"" + named->name + "\")" : "";
    set_text(error, error.op + ": the input" +
                        (named != own.end()
                             ? ""
                             : " (" + error.argument.substr(0, error.argument.size() - 1) + ")") +
                        " is on " + input.str() + ", but the parameters of " + name + " are on " +
                        home.str() + which + "; move the input with .to(\"" + home.str() +
                        "\"), or the model with .to(\"" + input.str() + "\")" + path_suffix() +
                        text.substr(std::min(text.find('\n'), text.size())));
  }
  error.explained = true;
}

}  // namespace

void ModuleScope::explain(Error& error) const {
  auto says = [&](const char* part) {
    return std::string_view(error.what()).find(part) != std::string_view::npos;
  };
  // A failure of queued work names the operator and the module that it is of, which may be others
  // than these.
  const bool says_where = says(" (in module ") || says("\n  in ");
  if (!says_where) add_to_first_line(error, path_suffix());
  if (auto* misplaced = dynamic_cast<MisplacedError*>(&error); misplaced && !misplaced->explained)
    explain_place(*misplaced, {const_cast<void*>(self_), type_});
}

}  // namespace tenon::nn
