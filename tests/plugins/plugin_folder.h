// A temporary folder of plugins: fixtures copied into it, with manifests as a test wants them.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>
#include <stdlib.h>
#include <sys/stat.h>

#include <tenon/plugins/host/registry.h>

#include "places.h"
#include "support/environment.h"
#include "support/expect.h"

namespace tenon::test {

namespace fs = std::filesystem;
using nlohmann::json;
using plugins::LoadReport;
using plugins::Registry;
using plugins::Status;

class PluginFolder {
 public:
  PluginFolder() {
    std::string name = (fs::temp_directory_path() / "tenon_plugins_XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = fs::canonical(name).string();
  }
  ~PluginFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PluginFolder(const PluginFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  // A manifest for the fixture `name`, to be changed by the test.
  static json manifest(const std::string& name, const std::string& library) {
    return {{"name", name},
            {"kind", "device"},
            {"library", library},
            {"abi", {{"major", TN_ABI_MAJOR}, {"minor", TN_ABI_MINOR}}},
            {"version", "1.2"}};
  }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    chmod(file(name).c_str(), 0644);
    return file(name);
  }

  std::string copy_library(const std::string& fixture, const std::string& as = "") const {
    auto to = file(as.empty() ? fixture + ".so" : as);
    fs::copy_file(tenon::test::build_dir() + "/tests/plugins/fixtures/" + fixture + ".so", to);
    chmod(to.c_str(), 0755);
    return to;
  }

  // The library of a fixture and a manifest with `changes` in it; answers the manifest's path.
  std::string add(const std::string& fixture, const json& changes = json::object(),
                  const std::string& stem = "") const {
    auto name = stem.empty() ? fixture : stem;
    copy_library(fixture, name + ".so");
    auto m = manifest("good", name + ".so");
    m.update(changes);
    return write(name + ".tenon.json", m.dump());
  }

  // Looks into this folder alone.
  plugins::SearchOptions only() const {
    return {.paths = {path_}, .environment = false, .install_folder = false};
  }

 private:
  std::string path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What the fixtures read on threads of their own. These exist from the start, as a variable that
// exists is changed by exchanging a pointer; a new one moves them all, away from whoever reads.
inline const bool kFixtureVariables = [] {
  for (const char* name : {"TENON_TEST_FAULT", "TENON_TEST_OVERLAY_FAULT", "TENON_TEST_FAULT_INDEX",
                           "TENON_TEST_DEVICE_MEMORY", "TENON_TEST_GO", "TENON_TEST_TRACE"})
    setenv(name, "", 0);
  return true;
}();

// The only entry of the report whose path ends in `name`.
inline LoadReport::Entry entry_of(const LoadReport& report, const std::string& name) {
  for (auto& e : report.entries)
    if (e.path.ends_with(name)) return e;
  throw std::runtime_error("no entry for " + name + " in\n" + report.to_string());
}

}  // namespace tenon::test
