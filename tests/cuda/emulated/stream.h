// A stream of the emulated runtime, for it and for libraries that queue work of their own.
#pragma once

#include <functional>
#include <vector>

struct CUstream_st {
  bool capturing = false;
  std::vector<std::function<void()>> tasks;  // kept while it is captured
};
