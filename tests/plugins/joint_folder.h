// Small backends, in the registry that the core asks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tenon/core/error.h>
#include <tenon/tenon.h>

#include "plugin_folder.h"

namespace tenon::test {

// "joint" computes abs of contiguous f32 and nothing else; its overlay computes nothing unless
// asked. "primitives" is the cpu plugin without what can be decomposed, and without normal.
struct Backends {
  Backends() {
    folder.add("joint", {{"name", "joint"}, {"version", "1.0"}});
    folder.add("joint_overlay", {{"name", "joint_overlay"},
                                 {"version", "1.0"},
                                 {"kind", "overlay"},
                                 {"overlays", "joint"},
                                 {"priority", 1}});
    plugins::registry().add_path(folder.path());
    plugins::registry().add_path(test::build_dir() + "/tests/primitives");
  }
  PluginFolder folder;
};
inline void backends() { static Backends once; }

// What every function of "joint" can do wrong (TENON_TEST_FAULT), and what is then said.
inline const std::vector<std::pair<std::string, std::string>> kWays = {
    {"_throws", "let an exception out: a thrown text"},
    {"_throws_int", "let an exception of unknown type out"},
    {"_error", "a reason of its own"},
    {"_silent_error", "an error without a message"},
    {"_short_error", "too short to read"},
    {"_immortal_error", "without destroy"}};

// A fault may have shown several times; each is told once.
inline void forget_failures() {
  for (int i = 0; i < 20; ++i) {
    try {
      return synchronize();
    } catch (const Error&) {
    }
  }
}

}  // namespace tenon::test
