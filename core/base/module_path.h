// The position in a model at which this thread runs, such as "LeNet.fc1". Error messages contain
// it.
#pragma once

#include <string>

#include <tenon/core/api.h>

namespace tenon {

// An interned path, which lives as long as the process, so that queued work can keep a pointer to
// it.
struct PathNode;
// Returns the modules of a path, "LeNet.fc1"; empty for null.
TENON_API std::string path_string(const PathNode* node);
// Returns the operators of which this is a part, the innermost first, such as "softmax_backward of
// softmax (gradient)"; empty if there are none. See PartPath.
TENON_API std::string part_string(const PathNode* node);
// Returns both for the error of queued work, ", part of nll_loss, queued by module LeNet.loss";
// empty if there are none.
TENON_API std::string origin_string(const PathNode* node);
// Returns the last name of a path, "softmax (gradient)", which lives as long as the process; "" for
// null.
TENON_API const char* last_name(const PathNode* node);
// Returns the path of this thread; null outside of modules and parts.
TENON_API const PathNode* current_path();
// Returns a text such as " (in module LeNet.fc1)", or an empty one outside modules.
TENON_API std::string path_suffix();

// Enters a child of the module at which this thread is, or a known path, until the end of the
// scope. This takes a few nanoseconds, because children are interned only once.
class TENON_API ModulePath {
 public:
  // Enters the child of this name, which is copied when it is first seen.
  explicit ModulePath(const char* name);
  explicit ModulePath(
      const PathNode* path);  // enters a path that was entered before, wherever this thread is now
  ~ModulePath();
  ModulePath(const ModulePath&) = delete;
  ModulePath& operator=(const ModulePath&) = delete;

 private:
  const PathNode* before_;
};

// Enters an operator or a function that is made of others, such as "softmax" or "abs (gradient)",
// until the end of the scope: what runs meanwhile is a part of it. It stays in the module.
class TENON_API PartPath {
 public:
  // Enters the part of this name, which is copied when it is first seen.
  explicit PartPath(const char* name);
  ~PartPath();
  PartPath(const PartPath&) = delete;
  PartPath& operator=(const PartPath&) = delete;

 private:
  const PathNode* before_;
};

}  // namespace tenon
