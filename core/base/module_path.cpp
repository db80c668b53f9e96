#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include <tenon/core/base/error_path.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/per_thread.h>

namespace tenon {

// A model may have thousands of children, so they are found by their names.
struct PathNode {
  const PathNode* parent = nullptr;
  std::string name;
  bool is_part = false;  // an operator, and no module
  // Modules, and operators; the keys are the names of the nodes.
  mutable std::map<std::string_view, std::unique_ptr<PathNode>> children[2];
};

namespace {

thread_local const PathNode* current TENON_FAST_TLS = nullptr;

const PathNode& root() {
  static constinit NeverDestroyed<PathNode> node;  // queued work may use it while the process ends
  return node.get();
}

const PathNode* find_child(const PathNode& parent, const char* name, bool is_part) {
  // One for all nodes, because new names are rare.
  static constinit NeverDestroyed<ForkMutex, ForkOrder::tables> mutex;
  std::lock_guard lock(mutex.get());
  auto& children = parent.children[is_part];
  if (const auto known = children.find(name); known != children.end()) return known->second.get();
  auto node = std::make_unique<PathNode>();
  node->parent = &parent;
  node->name = name;
  node->is_part = is_part;
  const std::string_view key = node->name;
  return children.emplace(key, std::move(node)).first->second.get();
}

// The results of recent searches of this thread, by the addresses of parent and name.
struct RecentChildren {
  struct Slot {
    const PathNode* parent;
    const char* name;
    const PathNode* child;
  };
  Slot slots[256];
};

const PathNode* child_of(const PathNode& parent, const char* name, bool is_part) {
  auto* recent = PerThread<RecentChildren>::get();
  if (!recent) return find_child(parent, name, is_part);
  auto& slot = recent->slots[((reinterpret_cast<uintptr_t>(&parent) >> 4) ^
                              (reinterpret_cast<uintptr_t>(name) >> 2)) %
                             std::size(recent->slots)];
  // The text is compared as well, because the address may belong to a temporary string.
  if (slot.parent != &parent || slot.name != name || slot.child->name != name ||
      slot.child->is_part != is_part)
    slot = {&parent, name, find_child(parent, name, is_part)};
  return slot.child;
}

}  // namespace

std::string path_string(const PathNode* node) {
  if (!node || !node->parent) return "";
  auto before = path_string(node->parent);
  if (node->is_part) return before;
  return before.empty() ? node->name : before + "." + node->name;
}

std::string part_string(const PathNode* node) {
  std::string text;
  for (; node && node->parent; node = node->parent)
    if (node->is_part) text += (text.empty() ? "" : " of ") + node->name;
  return text;
}

std::string origin_string(const PathNode* node) {
  const auto part = part_string(node), module = path_string(node);
  return (part.empty() ? "" : ", part of " + part) +
         (module.empty() ? "" : ", queued by module " + module);
}

const char* last_name(const PathNode* node) { return node ? node->name.c_str() : ""; }

const PathNode* current_path() { return current; }

std::string path_suffix() {
  const auto path = path_string(current);
  return path.empty() ? "" : " (in module " + path + ")";
}

void add_to_first_line(Error& error, const std::string& addition) {
  std::string text = error.what();
  text.insert(std::min(text.find('\n'), text.size()), addition);
  static_cast<std::runtime_error&>(error) = std::runtime_error(text);
}

void add_path(Error& error) {
  if (error.of_earlier_work) return;  // which may have been that of another module
  const std::string_view text = error.what();
  if (text.find(" (in module ") == text.npos) add_to_first_line(error, path_suffix());
}

namespace {
const PathNode* child_of_current(const char* name, bool is_part) {
  return child_of(current ? *current : root(), name, is_part);
}
}  // namespace

PartPath::PartPath(const char* name) : before_(current) { current = child_of_current(name, true); }
PartPath::~PartPath() { current = before_; }

ModulePath::ModulePath(const char* name) : before_(current) {
  current = child_of_current(name, false);
}
ModulePath::ModulePath(const PathNode* path) : before_(current) { current = path; }
ModulePath::~ModulePath() { current = before_; }

}  // namespace tenon
