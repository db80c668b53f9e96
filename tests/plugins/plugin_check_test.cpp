// `tenon plugin check`, run as an author of a plugin runs it: what is wrong with a plugin is said
// without running it.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <sys/stat.h>

#include "devices_command.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(plugin_check_test)

using namespace tenon::test;

BOOST_AUTO_TEST_CASE(a_good_plugin_has_no_fault) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  folder.add("joint_overlay", kOverlay);
  for (const char* file : {"joint.so", "joint.tenon.json", "joint_overlay.so"}) {
    // It would show if anything ran.
    const Outcome checked = tenon_command(folder, {"plugin", "check", folder.file(file)},
                                          {"TENON_TEST_FAULT=load_exits"});
    BOOST_TEST(checked.status == 0, checked.output);
    require_has(checked.output, "tn_plugin_entry is there and agrees with the manifest");
    require_has(checked.output, "belong to root or to this user, and none is world-writable");
    require_has(checked.output, "libraries that it links and all their symbols are found");
  }
}

BOOST_AUTO_TEST_CASE(what_there_is_one_of_is_not_plural) {
  PluginFolder folder;
  folder.add("good");
  const Outcome checked = tenon_command(folder, {"plugin", "check", folder.file("good.so")});
  // Sanitizers bring libraries of their own.
  if (!kSanitized) require_has(checked.output, "the one library that it links and all its symbols");
  BOOST_TEST(!has(checked.output, "the 1 libraries"), checked.output);
}

BOOST_AUTO_TEST_CASE(each_fault_of_a_plugin_is_named_without_running_it) {
  struct {
    std::string fixture;
    json changes;
    std::string fault;
  } const cases[] = {
      {"joint", {{"version", "2.0"}}, "disagree about the version: the manifest says \"2.0\""},
      {"joint", {{"name", "other"}}, "the manifest says \"other\", the library \"joint\""},
      {"joint", {{"abi", {{"major", 1}, {"minor", 0}}}}, "disagree about the ABI"},
      {"joint", {{"abi", {{"major", 9}, {"minor", 0}}}}, "built for plugin ABI 9.0"},
      {"joint", {{"kind", "overlay"}, {"overlays", "cpu"}}, "disagree about the kind"},
      {"joint", {{"cpu_features", {"warp_drive"}}}, "CPU features that this machine does not have"},
      {"joint", {{"vendor_libraries", {"libnowhere.so.7"}}}, "the library libnowhere.so.7"},
      {"joint", {{"library", "gone.so"}}, "library cannot be found"},
      {"joint_overlay",
       {{"kind", "overlay"}, {"overlays", "joint"}, {"priority", 7}},
       "disagree about the priority: the manifest says 7, the library 1"},
      {"joint_overlay",
       {{"kind", "overlay"}, {"overlays", "cpu"}},
       "disagree about what it overlays: the manifest says \"cpu\", the library \"joint\""},
      {"no_symbol", {}, "no symbol tn_plugin_entry"},
      {"wrong_magic", {}, "wrong magic number"},
      {"entry_short", {}, "less than the 72 of ABI 1.0"},
  };
  for (auto& c : cases) {
    PluginFolder folder;
    json changes = {{"name", c.fixture}, {"version", "1.0"}};
    if (c.changes.is_object()) changes.update(c.changes);
    folder.add(c.fixture, changes);
    const Outcome checked =
        tenon_command(folder, {"plugin", "check", folder.file(c.fixture + ".tenon.json")});
    BOOST_TEST(checked.status == 1, c.fault);
    require_has(checked.output, c.fault);
  }
}

BOOST_AUTO_TEST_CASE(what_the_linker_would_run_or_lacks_is_named) {
  PluginFolder folder;
  folder.add("audited", {{"name", "good"}});
  const Outcome audited = tenon_command(folder, {"plugin", "check", folder.file("audited.so")});
  BOOST_TEST(audited.status == 1);
  require_has(audited.output, "asks the dynamic linker to run /tenon_no_such_auditor.so");
  // Built against a C library that is not there yet.
  folder.add("joint", kJoint);
  std::string bytes = read_text(folder.file("joint.so"));
  const std::string version = "GLIBC_2.2.5";
  const size_t at = bytes.find(version);
  if (at == std::string::npos) return;  // another architecture begins with another version
  bytes.replace(at, version.size(), "GLIBC_9.9.9");
  std::ofstream(folder.file("joint.so"), std::ios::binary) << bytes;
  const Outcome newer = tenon_command(folder, {"plugin", "check", folder.file("joint.so")});
  BOOST_TEST(newer.status == 1, newer.output);
  require_has(newer.output, "version `GLIBC_9.9.9' not found; it is built for newer libraries");
}

BOOST_AUTO_TEST_CASE(a_vendor_library_may_lie_beside_the_plugin) {
  PluginFolder folder;
  json changes = kJoint;
  changes["vendor_libraries"] = {"vendor.so"};
  folder.add("joint", changes);
  BOOST_TEST(tenon_command(folder, {"plugin", "check", folder.file("joint.so")}).status == 1);
  folder.copy_library("no_symbol", "vendor.so");
  // The folder may have any name.
  const std::string odd = folder.file("a b:c");
  fs::create_directory(odd);
  for (const char* name : {"joint.so", "joint.tenon.json", "vendor.so"})
    fs::copy(folder.file(name), odd + "/" + name);
  for (auto& file : {folder.file("joint.so"), odd + "/joint.so"}) {
    const Outcome found = tenon_command(folder, {"plugin", "check", file});
    BOOST_TEST(found.status == 0, found.output);
  }
  std::ofstream(odd + "/vendor.so", std::ios::binary) << "no library";
  const Outcome broken = tenon_command(folder, {"plugin", "check", odd + "/joint.so"});
  BOOST_TEST(broken.status == 1);
  require_has(broken.output, "needs the library vendor.so, which is not found");
}

BOOST_AUTO_TEST_CASE(who_may_write_is_looked_at_up_to_the_root) {
  PluginFolder folder;
  fs::create_directories(folder.file("open/inner"));
  PluginFolder plugin;
  plugin.add("joint", kJoint);
  for (const char* name : {"joint.so", "joint.tenon.json"})
    fs::copy(plugin.file(name), folder.file("open/inner/") + name);
  const std::string file = folder.file("open/inner/joint.so");
  BOOST_TEST(tenon_command(folder, {"plugin", "check", file}).status == 0);
  chmod(folder.file("open").c_str(), 0777);
  const Outcome checked = tenon_command(folder, {"plugin", "check", file});
  BOOST_TEST(checked.status == 1);
  require_has(checked.output, "a folder above it is world-writable");
  const json report =
      devices(folder, {"TENON_PLUGIN_PATH=" + folder.file("open/inner/joint.tenon.json")});
  require_has(plugin_of(report, "joint")["reason"], "a folder above it is world-writable");
}

// What a truncated or forged file says leads nowhere.
BOOST_AUTO_TEST_CASE(damaged_libraries_are_faults_and_nothing_worse) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  const std::string file = folder.file("joint.so"), whole = read_text(file);
  for (size_t i = 0; i < 60; ++i) {
    std::string damaged = whole;
    if (i < 20)
      damaged.resize(whole.size() * i / 20);
    else
      for (size_t at = 64 + i * 7; at < std::min<size_t>(damaged.size(), 0x1400); at += 97)
        damaged[at] = static_cast<char>(damaged[at] ^ static_cast<char>(i * 37 + 1));
    std::ofstream(file, std::ios::binary) << damaged;
    const Outcome checked = tenon_command(folder, {"plugin", "check", file});
    BOOST_TEST(checked.status <= 1, "damage " << i << "\n" << checked.output);
  }
}

BOOST_AUTO_TEST_SUITE_END()
