#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/format.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/modules/evaluate.h>
#include <tenon/modules/listing.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

FieldVisitor::~FieldVisitor() = default;
void FieldVisitor::listed(const void*, size_t) {}
void FieldVisitor::parameter(std::string_view, Tensor&) {}
void FieldVisitor::buffer(std::string_view, Tensor&, bool) {}
void FieldVisitor::child(std::string_view, ModuleRef) {}
void FieldVisitor::training(bool&) {}
void FieldVisitor::owner(std::shared_ptr<void>&, const ModuleType&) {}

namespace {

struct ModuleHash {
  size_t operator()(const ModuleRef& m) const {
    return std::hash<const void*>()(m.self) ^ (std::hash<const void*>()(m.type) << 1);
  }
};
using ModuleSet = std::unordered_set<ModuleRef, ModuleHash>;

struct ChildList : FieldVisitor {
  std::vector<NamedModule> list;
  explicit ChildList(ModuleRef m) { m.type->visit(m.self, *this); }
  void child(std::string_view name, ModuleRef m) override {
    list.push_back({std::string(name), m});
  }
};

std::string join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

// Calls fn(path, module) for the module and every module below it. With a set `seen`, each module
// is visited once; without, once for each of its names.
template <class F>
void walk(const std::string& path, ModuleRef m, ModuleSet* seen, F& fn) {
  if (seen && !seen->insert(m).second) return;
  fn(path, m);
  for (auto& [name, child] : ChildList(m).list) walk(join(path, name), child, seen, fn);
}
template <class F>
void for_each_module(ModuleRef m, F fn) {
  ModuleSet seen;
  walk("", m, &seen, fn);
}

// One module's own tensors; parameters come first, as in PyTorch's dictionaries.
struct OwnTensors : FieldVisitor {
  struct Item {
    std::string name;
    Tensor* tensor;
    bool is_buffer, persistent;
  };
  std::vector<Item> items;
  explicit OwnTensors(ModuleRef m) {
    require_all_listed(m);
    m.type->visit(m.self, *this);
    std::stable_partition(items.begin(), items.end(), [](const Item& i) { return !i.is_buffer; });
  }
  void parameter(std::string_view name, Tensor& t) override {
    items.push_back({std::string(name), &t, false, true});
  }
  void buffer(std::string_view name, Tensor& t, bool persistent) override {
    items.push_back({std::string(name), &t, true, persistent});
  }
};

// Calls fn(path, item) once for each tensor of the module and of the modules below it.
template <class F>
void for_each_tensor(ModuleRef m, F fn) {
  std::unordered_set<const void*> seen;
  for_each_module(m, [&](const std::string& path, ModuleRef each) {
    for (auto& item : OwnTensors(each).items)
      if (seen.insert(item.tensor->impl().get()).second) fn(path, item);
  });
}

std::vector<NamedTensor> collect(ModuleRef module, bool want_buffers) {
  std::vector<NamedTensor> found;
  for_each_tensor(module, [&](const std::string& path, const OwnTensors::Item& item) {
    if (item.is_buffer == want_buffers) found.push_back({join(path, item.name), *item.tensor});
  });
  return found;
}

std::vector<Tensor> without_names(std::vector<NamedTensor> named) {
  std::vector<Tensor> tensors;
  tensors.reserve(named.size());
  for (auto& n : named) tensors.push_back(std::move(n.tensor));
  return tensors;
}

}  // namespace

std::vector<NamedTensor> named_parameters(ModuleRef module) { return collect(module, false); }
std::vector<Tensor> parameters(ModuleRef module) { return without_names(named_parameters(module)); }
std::vector<NamedTensor> named_buffers(ModuleRef module) { return collect(module, true); }
std::vector<Tensor> buffers(ModuleRef module) { return without_names(named_buffers(module)); }

std::vector<NamedModule> named_modules(ModuleRef module) {
  std::vector<NamedModule> found;
  for_each_module(module, [&](const std::string& path, ModuleRef m) {
    found.push_back({path, m});
  });
  return found;
}

std::vector<NamedModule> named_children(ModuleRef module) {
  ModuleSet seen;
  std::vector<NamedModule> children;
  for (auto& c : ChildList(module).list)
    if (seen.insert(c.module).second) children.push_back(std::move(c));
  return children;
}

ModuleTag& ModuleTag::operator=(const ModuleTag&) noexcept {
  recording::changed();
  return *this;
}

std::vector<ModuleRef> modules_bottom_up(ModuleRef module) {
  std::vector<ModuleRef> all;
  for (auto& child : named_children(module)) {
    auto below = modules_bottom_up(child.module);
    all.insert(all.end(), below.begin(), below.end());
  }
  all.push_back(module);
  return all;
}

int64_t num_parameters(ModuleRef module) {
  int64_t n = 0;
  for (auto& p : parameters(module)) n += p.numel();
  return n;
}

namespace {
void set_mode(bool& flag, bool mode) {
  if (flag != mode) recording::switched(flag, mode);
  flag = mode;
}
}  // namespace

void train(ModuleRef module, bool mode) {
  struct SetMode : FieldVisitor {
    bool mode;
    void training(bool& flag) override { set_mode(flag, mode); }
  } set;
  set.mode = mode;
  for_each_module(module, [&](const std::string&, ModuleRef m) { m.type->visit(m.self, set); });
}

void eval(ModuleRef module) { train(module, false); }

EvalMode::EvalMode(ModuleRef module) {
  struct Flags : FieldVisitor {
    std::vector<std::pair<bool*, bool>> found;
    void training(bool& flag) override { found.emplace_back(&flag, flag); }
  } flags;
  for_each_module(module, [&](const std::string&, ModuleRef m) { m.type->visit(m.self, flags); });
  before_ = std::move(flags.found);
  for (auto& [flag, value] : before_) set_mode(*flag, false);
}

EvalMode::~EvalMode() {
  for (auto& [flag, value] : before_) set_mode(*flag, value);
}

void to(ModuleRef module, Device device) {
  NoGrad guard;
  for_each_tensor(module, [&](const std::string&, const OwnTensors::Item& item) {
    if (item.tensor->device() != device) set_data(*item.tensor, item.tensor->detach().to(device));
  });
}

void to(ModuleRef module, DType dtype) {
  if (!is_floating_point(dtype))
    throw DTypeError(fmt::format(
        "Module.to: parameters cannot become {}, only a floating type (f32, f64, f16, bf16)",
        dtype));
  NoGrad guard;
  for_each_tensor(module, [&](const std::string&, const OwnTensors::Item& item) {
    Tensor& t = *item.tensor;
    if (is_floating_point(t.dtype()) && t.dtype() != dtype) set_data(t, t.detach().to(dtype));
  });
}

void to(ModuleRef module, MemoryFormat format) {
  const int64_t dims = format == channels_last ? 4 : format == channels_last_3d ? 5 : 0;
  NoGrad guard;
  for_each_tensor(module, [&](const std::string&, const OwnTensors::Item& item) {
    Tensor& t = *item.tensor;
    const bool concerned = dims ? t.dim() == dims : t.dim() == 4 || t.dim() == 5;
    if (concerned && format != preserve_format && t.suggest_memory_format() != format)
      set_data(t, t.detach().to(format));
  });
}

void zero_grad(ModuleRef module, bool set_to_none) {
  NoGrad guard;
  for (Tensor& p : parameters(module)) {
    if (set_to_none)
      p.set_grad(Tensor());
    else if (Tensor grad = p.grad(); grad.defined())
      p.set_grad(zeros_like(grad));
  }
}

void requires_grad_(ModuleRef module, bool value) {
  for (Tensor& p : parameters(module)) p.requires_grad_(value);
}

std::vector<StateEntry> state_entries(ModuleRef module) {
  std::vector<StateEntry> entries;
  auto add = [&](const std::string& path, ModuleRef m) {
    for (auto& item : OwnTensors(m).items)
      if (item.persistent) entries.push_back({join(path, item.name), *item.tensor, item.is_buffer});
  };
  walk("", module, nullptr, add);
  return entries;
}

StateDict state_dict(ModuleRef module) {
  StateDict dict;
  for (auto& entry : state_entries(module)) dict.set(std::move(entry.name), entry.tensor.detach());
  return dict;
}

namespace detail {

void require_repeatable(int64_t count) {
  constexpr int64_t most = int64_t{1} << 24;
  if (count < 0 || count > most)
    throw ValueError(fmt::format(
        "repeat: {} modules cannot be made; it must be a number from 0 to {}", count, most));
}

namespace {

// Replaces the shared values of a module, its tensors and its children behind std::shared_ptr, by
// copies.
class Unshare : public FieldVisitor {
 public:
  explicit Unshare(ModuleRef m) {
    wants_owners = true;
    visit(m);
  }

 protected:
  void parameter(std::string_view, Tensor& t) override { renew(t); }
  void buffer(std::string_view, Tensor& t, bool) override { renew(t); }
  void child(std::string_view, ModuleRef m) override { visit(m); }
  void owner(std::shared_ptr<void>& owner, const ModuleType& type) override {
    auto& copy = objects_[owner.get()];
    if (!copy) {
      if (!type.copy) throw ValueError(fmt::format("clone: {} has no copy constructor", type.name));
      copy = type.copy(owner.get());
    }
    owner = copy;
  }

 private:
  void visit(ModuleRef m) {
    if (done_.insert(m).second) m.type->visit(m.self, *this);
  }
  void renew(Tensor& t) {
    if (renewed_.count(t.impl().get())) return;
    auto& copy = tensors_[t.impl().get()];
    if (!copy.defined()) {
      NoGrad guard;
      originals_.push_back(t);  // keeps its address from being used again
      copy = t.detach().clone();
      copy.requires_grad_(t.requires_grad());
      renewed_.insert(copy.impl().get());
    }
    t = copy;
  }

  ModuleSet done_;
  std::unordered_map<const void*, std::shared_ptr<void>> objects_;
  std::unordered_map<const void*, Tensor> tensors_;
  std::unordered_set<const void*> renewed_;
  std::vector<Tensor> originals_;
};

}  // namespace

void unshare(ModuleRef module) { Unshare copies(module); }

}  // namespace detail

}  // namespace tenon::nn
