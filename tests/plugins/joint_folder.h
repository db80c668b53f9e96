// Small backends, in the registry that the core asks.
#pragma once

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

}  // namespace tenon::test
