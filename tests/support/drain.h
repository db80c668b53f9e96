// What failed and was not asked for is heard of and forgotten.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/error.h>

namespace tenon::test {

// The work that a failed call left behind may have failed as well; nobody asked for it.
inline void drain() {
  for (int i = 0; i < 100; ++i) try {
      return synchronize();
    } catch (const Error&) {
    }
}

}  // namespace tenon::test
