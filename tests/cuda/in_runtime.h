// What is inside the emulated runtime, for tests that look at how it is called.
#pragma once

#include <boost/test/unit_test.hpp>
#include <dlfcn.h>

#include "places.h"

namespace tenon::test {

template <class T>
T* in_runtime(const char* name) {
  void* library = dlopen((build_dir() + "/tests/cuda/libtenon_cuda_emulated.so").c_str(),
                         RTLD_LAZY | RTLD_NOLOAD);
  BOOST_REQUIRE(library);
  auto* found = reinterpret_cast<T*>(dlsym(library, name));
  BOOST_REQUIRE(found);
  return found;
}

}  // namespace tenon::test
