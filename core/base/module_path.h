// Where in a model this thread is: what an error calls "in module LeNet.fc1".
#pragma once

#include <string>

#include <tenon/core/api.h>

namespace tenon {

// An interned path; lives as long as the process, so queued work can hold the pointer.
struct PathNode;
// "LeNet.fc1"; empty for null.
TENON_API std::string path_string(const PathNode* node);
// Of this thread; null outside modules.
TENON_API const PathNode* current_path();
// " (in module LeNet.fc1)", or empty.
TENON_API std::string path_suffix();

// Enters a child, or a path again, for a scope. Costs some nanoseconds: children are interned once.
class TENON_API ModulePath {
 public:
  explicit ModulePath(const char* name);  // copied when first seen
  explicit ModulePath(
      const PathNode* path);  // one that was entered before, from wherever this thread is now
  ~ModulePath();
  ModulePath(const ModulePath&) = delete;
  ModulePath& operator=(const ModulePath&) = delete;

 private:
  const PathNode* before_;
};

}  // namespace tenon
