// The backend `joint` in checked mode (TENON_CHECK).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/base/module_path.h>
#include <tenon/core/error.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "plugin_folder.h"
#include "process/child.h"
#include "support/expect.h"

namespace tenon::test::joint {

struct Joint {
  Joint() {
    folder.add("joint", {{"name", "joint"}, {"version", "1.0"}});
    plugins::registry().add_path(folder.path());
  }
  PluginFolder folder;
};

// A caller's-thread device, one with streams, and both with memory that the host cannot read.
struct Case {
  uint32_t index;
  bool device_memory;
};
inline const std::vector<Case> kDevices = {{0, false}, {1, false}, {2, true}, {3, true}};

inline Device open(const Case& c) {
  const Device device("joint", c.index);
  Environment hidden("TENON_TEST_DEVICE_MEMORY", c.device_memory ? "1" : "");
  (void)full({2}, 1.0).to(device);
  synchronize();
  return device;
}

inline int64_t size = 3;  // of the last call

// Computes with the fault on new shapes, so that plans are made with it. Returns the error.
inline std::string error_with(const std::string& fault, Device device) {
  const Tensor x = full({++size}, -2.0).to(device);
  Environment broken("TENON_TEST_FAULT", fault);
  ModulePath path("Net");
  return error_of([&] { (void)abs(x).to_vector<float>(); });
}

// The error of a fault names everything that helps to find it. "$" in a part stands for the bytes
// of the output.
inline void check_named(const std::string& fault, Device device, std::vector<std::string> parts) {
  BOOST_TEST_CONTEXT(fault << " on " << device.str()) {
    const std::string text = error_with(fault, device);
    parts.insert(parts.end(), {"plugin joint (", "joint.so): run ", "queued by module Net",
                               "abs: (" + std::to_string(size) + ",) on " + device.str()});
    for (auto& part : parts) {
      if (const size_t at = part.find('$'); at != part.npos)
        part.replace(at, 1, std::to_string(4 * size));
      BOOST_TEST(has(text, part), "\"" << text << "\" lacks " << part);
    }
    // It is told once, and what comes later works.
    BOOST_TEST(error_of([&] { synchronize(); }) == "");
    BOOST_TEST(error_with("", device) == "");
  }
}

// Runs a case of the suite of the current one in a process of its own.
inline void require_success(const std::string& test_case, std::vector<std::string> environment,
                            unsigned seconds = 60) {
  namespace but = boost::unit_test;
  const auto suite = but::framework::current_test_case().p_parent_id;
  const std::string name = but::framework::get<but::test_suite>(suite).p_name;
  const Outcome outcome = run_alone(name + "/" + test_case, std::move(environment), seconds);
  BOOST_TEST(outcome.status == 0, outcome.output);
}

}  // namespace tenon::test::joint
