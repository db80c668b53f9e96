// A stream of the emulated runtime, for it and for libraries that queue work of their own.
#pragma once

#include <functional>
#include <vector>

struct CUstream_st {
  bool capturing = false;
  bool invalid = false;                      // something was asked that no recording can hold
  std::vector<std::function<void()>> tasks;  // kept while it is captured
};
