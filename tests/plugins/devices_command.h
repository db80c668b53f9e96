// `tenon devices` and `tenon plugin check` in a process of their own.
#pragma once

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "plugin_folder.h"
#include "process/child.h"
#include "support/expect.h"

namespace tenon::test {

inline Outcome tenon_command(const PluginFolder& folder, std::vector<std::string> arguments,
                             std::vector<std::string> environment = {}) {
  arguments.insert(arguments.begin(), tenon::test::build_dir() + "/bin/tenon");
  environment.push_back("TENON_PLUGIN_PATH=" + folder.path());
  return run_child(arguments, environment, kLongestHang);
}

inline json devices(const PluginFolder& folder, std::vector<std::string> environment = {}) {
  const Outcome outcome = tenon_command(folder, {"devices", "--json"}, environment);
  // What the crashing process says (under a sanitizer, much) comes before.
  const size_t begin = outcome.output.find("{\n");
  BOOST_REQUIRE_MESSAGE(begin != std::string::npos, outcome.output);
  return json::parse(outcome.output.substr(begin));
}

inline json plugin_of(const json& report, const std::string& name) {
  for (auto& p : report["plugins"])
    if (p["name"] == name) return p;
  BOOST_FAIL("no plugin " << name << " in " << report.dump(2));
  return {};
}
inline std::string error_of(const json& report, const std::string& name) {
  for (auto& b : report["backends"])
    if (b["name"] == name) return b["error"];
  return "no backend of that name";
}

inline void require_has(const std::string& text, const std::string& part) {
  BOOST_REQUIRE_MESSAGE(has(text, part), "\"" << part << "\" expected in:\n" << text);
}

inline const json kJoint = {{"name", "joint"}, {"version", "1.0"}};
inline const json kOverlay = {{"name", "joint_overlay"},
                              {"version", "1.0"},
                              {"kind", "overlay"},
                              {"overlays", "joint"},
                              {"priority", 1}};

}  // namespace tenon::test
