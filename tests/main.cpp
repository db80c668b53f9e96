// The main function of every test program: Boost.Test makes it here, so that the test files share
// one precompiled header.
#undef BOOST_TEST_MODULE
#define BOOST_TEST_MODULE tenon
#include <cstdlib>
#include <optional>

#include <boost/test/unit_test.hpp>

#include <tenon/core/device.h>

namespace {

// TENON_TEST_DEVICE=sim:0 (or cuda:0): tensors are made there unless a test says where. The plugin
// is found as ever, by TENON_PLUGIN_PATH.
struct TestDevice {
  TestDevice() {
    if (const char* name = std::getenv("TENON_TEST_DEVICE"); name && *name)
      guard.emplace(tenon::Device(name));
  }
  std::optional<tenon::DeviceGuard> guard;
};

}  // namespace
BOOST_TEST_GLOBAL_FIXTURE(TestDevice);
