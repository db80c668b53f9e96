#include <tenon/core/pool.h>
#include <tenon/core/runtime/module_path.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

namespace tenon {

// Children are found by scanning a list that only grows: models have few, and the last one hit is tried first.
struct PathNode {
  const PathNode* parent = nullptr;
  std::string name;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<PathNode>> children;
};

namespace {

thread_local const PathNode* current TENON_FAST_TLS = nullptr;

const PathNode& root() {
  static const auto* node = new PathNode;  // never freed: queued work may name it while the process ends
  return *node;
}

const PathNode* child_of(const PathNode& parent, const char* name) {
  // One cache line of recent answers a thread, by the addresses of parent and literal.
  struct Recent {
    const PathNode* parent;
    const char* name;
    const PathNode* child;
  };
  static thread_local Recent recent[64] = {};
  auto& slot = recent[((reinterpret_cast<uintptr_t>(&parent) >> 4) ^ (reinterpret_cast<uintptr_t>(name) >> 2)) % 64];
  // The text is compared as well: the address may be a temporary's.
  if (slot.parent == &parent && slot.name == name && slot.child->name == name) return slot.child;
  std::lock_guard lock(parent.mutex);
  for (auto& c : parent.children)
    if (c->name == name) {
      slot = {&parent, name, c.get()};
      return c.get();
    }
  auto node = std::make_unique<PathNode>();
  node->parent = &parent;
  node->name = name;
  parent.children.push_back(std::move(node));
  slot = {&parent, name, parent.children.back().get()};
  return slot.child;
}

}  // namespace

std::string path_string(const PathNode* node) {
  if (!node || !node->parent) return "";
  auto before = path_string(node->parent);
  return before.empty() ? node->name : before + "." + node->name;
}

const PathNode* current_path() { return current; }

std::string path_suffix() { return current ? " (in module " + path_string(current) + ")" : ""; }

ModulePath::ModulePath(const char* name) : before_(current) { current = child_of(current ? *current : root(), name); }
ModulePath::~ModulePath() { current = before_; }

}  // namespace tenon
