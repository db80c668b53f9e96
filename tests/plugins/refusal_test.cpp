// Every kind of plugin that must not be used is refused with its reason, and the process lives on.
#include <boost/test/unit_test.hpp>
#include <unistd.h>

#include <tenon/core/error.h>
#include <tenon/plugins/sdk/vendor_library.h>

#include "plugin_folder.h"
#include "process/child.h"

BOOST_AUTO_TEST_SUITE(refusal_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// Asks for "good", which must fail; the reason that the report gives for the only manifest.
std::string reason_after_loading(const PluginFolder& folder, const std::string& name = "good") {
  Registry registry(folder.only());
  const std::string text = error_of<PluginError>([&] { registry.load(name); });
  auto report = registry.report();
  BOOST_REQUIRE_EQUAL(report.entries.size(), 1u);
  BOOST_TEST(plugins::to_string(report.entries[0].status) == "refused");
  BOOST_TEST(has(text, report.entries[0].reason));
  // Asked again, it fails the same way.
  BOOST_CHECK_THROW(registry.load(name), PluginError);
  return report.entries[0].reason;
}

// The reason known before anything is loaded; asking for it then loads nothing either.
std::string reason_before_loading(const PluginFolder& folder, const char* status = "refused") {
  Environment marker("TENON_TEST_TRACE", folder.file("trace"));
  Registry registry(folder.only());
  auto report = registry.report();
  BOOST_REQUIRE_EQUAL(report.entries.size(), 1u);
  BOOST_TEST(plugins::to_string(report.entries[0].status) == status);
  BOOST_CHECK_THROW(registry.load("good"), PluginError);
  BOOST_TEST(!fs::exists(folder.file("trace")));
  return report.entries[0].reason;
}

std::string reason_for(const std::string& fixture, const json& changes = json::object()) {
  PluginFolder folder;
  folder.add(fixture, changes);
  return reason_after_loading(folder, changes.value("name", "good"));
}

void check_contains(const std::string& reason, const std::string& part) {
  BOOST_TEST(has(reason, part), "\"" << reason << "\" does not contain \"" << part << "\"");
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_text_file_named_so) {
  PluginFolder folder;
  folder.write("good.so",
               "I am not a library, whatever my name says, and long enough to hold an ELF header "
               "if I were one.");
  folder.write("good.tenon.json", PluginFolder::manifest("good", "good.so").dump());
  check_contains(reason_before_loading(folder), "not an ELF file");
}

BOOST_AUTO_TEST_CASE(an_empty_file_and_a_folder_named_so) {
  PluginFolder empty, directory;
  empty.write("good.so", "");
  empty.write("good.tenon.json", PluginFolder::manifest("good", "good.so").dump());
  check_contains(reason_before_loading(empty), "not an ELF file");
  fs::create_directory(directory.file("good.so"));
  directory.write("good.tenon.json", PluginFolder::manifest("good", "good.so").dump());
  check_contains(reason_before_loading(directory), "not a regular file");
}

BOOST_AUTO_TEST_CASE(a_library_truncated_anywhere) {
  PluginFolder folder;
  folder.add("good");
  auto size = fs::file_size(folder.file("good.so"));
  for (uintmax_t length = 0; length < size; length += length < 128 ? 1 : size / 150) {
    PluginFolder cut;
    cut.add("good");
    fs::resize_file(cut.file("good.so"), length);
    Registry registry(cut.only());
    auto entry = registry.report().entries.at(0);
    BOOST_TEST(plugins::to_string(entry.status) == "refused");
    BOOST_TEST((has(entry.reason, "truncated") || has(entry.reason, "not an ELF file")),
               entry.reason);
  }
  // One byte short is enough.
  fs::resize_file(folder.file("good.so"), size - 1);
  check_contains(reason_before_loading(folder), "truncated");
}

BOOST_AUTO_TEST_CASE(a_program_and_a_library_of_another_machine) {
  PluginFolder foreign, object;
  foreign.add("good");
  object.add("good");
  auto patch = [](const std::string& path, int offset, char value) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset).put(value);
  };
  patch(foreign.file("good.so"), 18, 2);  // e_machine: SPARC
  check_contains(reason_before_loading(foreign), "another machine");
  patch(object.file("good.so"), 16, 1);  // e_type: relocatable
  check_contains(reason_before_loading(object), "not a shared library");
}

BOOST_AUTO_TEST_CASE(no_library_at_all) {
  PluginFolder folder;
  folder.write("good.tenon.json", PluginFolder::manifest("good", "good.so").dump());
  check_contains(reason_before_loading(folder), "cannot be found");
}

BOOST_AUTO_TEST_CASE(no_query_symbol) {
  check_contains(reason_for("no_symbol"), "no symbol tn_plugin_entry");
}

BOOST_AUTO_TEST_CASE(a_major_version_that_the_manifest_admits) {
  PluginFolder folder;
  folder.add("wrong_major", {{"abi", {{"major", 2}, {"minor", 0}}}});
  auto reason = reason_before_loading(folder);
  check_contains(reason, "plugin ABI 2.0");
  check_contains(reason, "this Tenon has 1.3");
}

BOOST_AUTO_TEST_CASE(a_manifest_that_lies_about_its_abi) {
  check_contains(reason_for("wrong_major"),
                 "disagree about the ABI: the manifest says 1.3, the library 2.3");
  check_contains(reason_for("good", {{"abi", {{"major", 1}, {"minor", 4}}}}),
                 "the manifest says 1.4, the library 1.3");
}

BOOST_AUTO_TEST_CASE(a_manifest_that_lies_about_anything_else) {
  check_contains(reason_for("good", {{"name", "cpu"}}),
                 "disagree about the name: the manifest says \"cpu\", the library \"good\"");
  check_contains(reason_for("good", {{"version", "3"}}), "disagree about the version");
  check_contains(reason_for("overlay_low", {{"name", "overlay_low"}}),
                 "disagree about the kind: the manifest says device, the library overlay");
  for (auto& [changes, part] : std::initializer_list<std::pair<json, const char*>>{
           {{{"overlays", "other"}, {"priority", 1}}, "what it overlays"},
           {{{"overlays", "good"}, {"priority", 2}}, "the priority"}}) {
    PluginFolder folder;
    json manifest = {{"name", "overlay_low"}, {"kind", "overlay"}};
    manifest.update(changes);
    folder.add("overlay_low", manifest);
    Registry registry(folder.only());
    BOOST_TEST(registry.overlays(changes["overlays"].get<std::string>()).empty());
    check_contains(registry.report().entries.at(0).reason, part);
  }
}

BOOST_AUTO_TEST_CASE(entries_of_the_wrong_size_or_kind) {
  check_contains(reason_for("entry_long"), "over-long");
  check_contains(reason_for("entry_absurd"), "says it has 100000 bytes");
  check_contains(reason_for("entry_short"), "says it has 16 bytes, less than");
  check_contains(reason_for("wrong_magic"), "wrong magic number");
}

BOOST_AUTO_TEST_CASE(tables_of_the_wrong_size) {
  check_contains(reason_for("table_small"), "less than");
  check_contains(reason_for("table_long"), "more of the function table");
  check_contains(reason_for("table_overrun"), "more of the function table");
}

BOOST_AUTO_TEST_CASE(required_functions_missing) {
  check_contains(reason_for("function_missing"), "required functions NULL: memory_free, copy");
}

BOOST_AUTO_TEST_CASE(init_that_fails_or_throws) {
  check_contains(reason_for("init_fails"), "init failed: the fixture has no driver [driver=none]");
  check_contains(reason_for("throws", {{"name", "throws"}}),
                 "init threw an exception across the boundary: no such driver");
  check_contains(reason_for("throws_int", {{"name", "throws"}}), "exception of unknown type");
}

BOOST_AUTO_TEST_CASE(an_absent_cpu_feature) {
  PluginFolder folder;
  folder.add("good", {{"cpu_features", {"avx1024", "amx_complex", "AVX_512-f", "lzcnt"}}});
  const auto reason = reason_before_loading(folder, "unsuitable");
  check_contains(reason, "this machine does not have: avx1024 (no known name), ");
  check_contains(reason, "AVX_512-f (no known name; did you mean avx512f?)");
  check_contains(reason, "lzcnt (no known name; did you mean abm?)");
  BOOST_TEST(!has(reason, "amx_complex ("), reason);
}

BOOST_AUTO_TEST_CASE(an_absent_vendor_library) {
  check_contains(reason_for("good", {{"vendor_libraries", {"libtenon_no_such_vendor.so.12"}}}),
                 "needs the vendor library libtenon_no_such_vendor.so.12");
  check_contains(reason_for("good", {{"vendor_libraries", {"/tmp/evil.so"}}}), "plain name");
  PluginFolder folder;
  folder.add("good", {{"vendor_libraries", {"libm.so.6"}}});
  BOOST_TEST(Registry(folder.only()).load("good").name() == "good");
}

// The host opens a vendor library for the plugin, so it is judged as the plugin's own is.
BOOST_AUTO_TEST_CASE(a_vendor_library_beside_the_plugin) {
  auto with_vendor = [](const PluginFolder& folder) {
    folder.copy_library("overlay_low", "libtenon_test_vendor.so.1");
    folder.add("good", {{"vendor_libraries", {"libtenon_test_vendor.so.1"}}});
  };
  auto reason = [](const PluginFolder& folder) {
    Registry registry(folder.only());
    BOOST_CHECK_THROW(registry.load("good"), PluginError);
    return entry_of(registry.report(), "good.tenon.json").reason;
  };
  PluginFolder writable, outside, linked, broken, sound;
  with_vendor(writable);
  chmod(writable.file("libtenon_test_vendor.so.1").c_str(), 0757);
  check_contains(reason(writable), "vendor library is world-writable (mode 0757)");

  with_vendor(linked);
  outside.copy_library("overlay_low", "elsewhere.so");
  fs::remove(linked.file("libtenon_test_vendor.so.1"));
  fs::create_symlink(outside.file("elsewhere.so"), linked.file("libtenon_test_vendor.so.1"));
  check_contains(reason(linked), "vendor library is a link out of its folder");

  with_vendor(broken);
  fs::resize_file(broken.file("libtenon_test_vendor.so.1"),
                  5000);  // the dynamic linker would end the process
  check_contains(reason(broken), "truncated");

  if (geteuid() == 0) {
    PluginFolder foreign;
    with_vendor(foreign);
    BOOST_REQUIRE_EQUAL(
        chown(foreign.file("libtenon_test_vendor.so.1").c_str(), 12345, static_cast<gid_t>(-1)), 0);
    check_contains(reason(foreign), "vendor library belongs to user id 12345");
  }
  with_vendor(sound);
  BOOST_TEST(Registry(sound.only()).load("good").name() == "good");
}

// It stays half loaded, so the second registry is told the same; and nothing stays locked.
BOOST_AUTO_TEST_CASE(a_vendor_library_that_throws_while_it_is_loaded) {
  PluginFolder folder;
  folder.copy_library("joint", "libtenon_test_vendor.so.1");
  folder.add("good", {{"vendor_libraries", {"libtenon_test_vendor.so.1"}}});
  setenv("TENON_TEST_FAULT", "load_throws", 1);
  for (int time = 0; time < 2; ++time) {
    Registry registry(folder.only());
    BOOST_CHECK_THROW(registry.load("good"), PluginError);
    check_contains(entry_of(registry.report(), "good.tenon.json").reason,
                   "libtenon_test_vendor.so.1 let an exception out while it was loaded: a thrown "
                   "text; it cannot be used");
    unsetenv("TENON_TEST_FAULT");
  }
}

// Who may write a folder above can put another plugin's folder in its place.
BOOST_AUTO_TEST_CASE(folders_above_that_anybody_can_write) {
  PluginFolder outer;
  const auto middle = outer.file("middle"), inner = middle + "/plugins";
  fs::create_directories(inner);
  fs::copy_file(build_dir() + "/tests/plugins/fixtures/good.so", inner + "/good.so");
  chmod((inner + "/good.so").c_str(), 0755);
  std::ofstream(inner + "/good.tenon.json") << PluginFolder::manifest("good", "good.so").dump();
  chmod((inner + "/good.tenon.json").c_str(), 0644);
  chmod(inner.c_str(), 0755);
  auto listed = [](const std::string& path) {
    return Registry({.paths = {path}, .environment = false, .install_folder = false})
        .report()
        .entries.at(0);
  };
  for (auto& path : {inner, inner + "/good.tenon.json"}) {
    chmod(middle.c_str(), 0777);
    check_contains(
        listed(path).reason,
        "a folder above it is world-writable (mode 0777), so anybody could have put code there; "
        "chmod o-w " +
            middle);
    chmod(middle.c_str(),
          01777);  // as /tmp is: nobody can replace what root and this user have there
    BOOST_TEST(plugins::to_string(listed(path).status) == "available");
    chmod(middle.c_str(), 0755);
    BOOST_TEST(plugins::to_string(listed(path).status) == "available");
  }
  // A link to the folder does not hide what lies above it.
  chmod(middle.c_str(), 0777);
  PluginFolder elsewhere;
  fs::create_symlink(inner, elsewhere.file("link"));
  check_contains(listed(elsewhere.file("link")).reason, "a folder above it is world-writable");
  chmod(middle.c_str(), 0755);
  if (geteuid() == 0) {
    BOOST_REQUIRE_EQUAL(chown(middle.c_str(), 12345, static_cast<gid_t>(-1)), 0);
    check_contains(listed(inner).reason, "a folder above it belongs to user id 12345");
  }
}

BOOST_AUTO_TEST_CASE(files_that_anybody_can_write) {
  PluginFolder library, manifest, whole;
  library.add("good");
  chmod(library.file("good.so").c_str(), 0757);
  check_contains(reason_before_loading(library), "library is world-writable (mode 0757)");
  manifest.add("good");
  chmod(manifest.file("good.tenon.json").c_str(), 0666);
  check_contains(reason_before_loading(manifest), "manifest is world-writable (mode 0666)");
  whole.add("good");
  chmod(whole.path().c_str(), 01777);
  check_contains(reason_before_loading(whole), "folder is world-writable (mode 1777)");
  // Reached by the manifest's own path, the folder is judged all the same.
  Registry registry(
      {.paths = {whole.file("good.tenon.json")}, .environment = false, .install_folder = false});
  check_contains(registry.report().entries.at(0).reason, "folder is world-writable");
}

BOOST_AUTO_TEST_CASE(files_of_somebody_else,
                     *boost::unit_test::precondition([](auto) { return geteuid() == 0; })) {
  for (const char* name : {"good.so", "good.tenon.json"}) {
    PluginFolder folder;
    folder.add("good");
    BOOST_REQUIRE_EQUAL(chown(folder.file(name).c_str(), 12345, static_cast<gid_t>(-1)), 0);
    check_contains(reason_before_loading(folder), "belongs to user id 12345");
  }
}

BOOST_AUTO_TEST_CASE(a_library_that_escapes_its_folder) {
  PluginFolder outside;
  outside.copy_library("good");
  auto name = fs::path(outside.path()).filename().string();
  for (auto& path : {"../" + name + "/good.so", outside.file("good.so"), std::string("./good.so"),
                     std::string(".."), std::string("")}) {
    PluginFolder folder;
    folder.add("good", {{"library", path}});
    check_contains(reason_before_loading(folder), "must be the name of a file beside the manifest");
  }
  PluginFolder linked;
  fs::create_symlink(outside.file("good.so"), linked.file("good.so"));
  linked.write("good.tenon.json", PluginFolder::manifest("good", "good.so").dump());
  check_contains(reason_before_loading(linked), "link out of its folder");
}

BOOST_AUTO_TEST_CASE(a_link_within_the_folder_is_followed) {
  PluginFolder folder;
  folder.copy_library("good", "good.so.1");
  fs::create_symlink("good.so.1", folder.file("good.so"));
  folder.write("good.tenon.json", PluginFolder::manifest("good", "good.so").dump());
  BOOST_TEST(Registry(folder.only()).load("good").info().library == folder.file("good.so.1"));
}

BOOST_AUTO_TEST_CASE(an_overlay_asked_for_as_a_device) {
  PluginFolder folder;
  folder.add("overlay_low",
             {{"name", "overlay_low"}, {"kind", "overlay"}, {"overlays", "good"}, {"priority", 1}});
  Registry registry(folder.only());
  require_error<PluginError>([&] { registry.load("overlay_low"); }, "it is an overlay");
}

// ---- libraries of vendors

BOOST_AUTO_TEST_CASE(opening_a_library_that_throws,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  const PluginFolder folder;
  const std::string path = folder.copy_library("joint"), absent = folder.file("absent.so");
  std::string why;
  BOOST_TEST(sdk::open_library(absent.c_str(), RTLD_NOW | RTLD_LOCAL, why) == nullptr);
  BOOST_TEST(has(why, "absent.so: cannot open shared object file"), why);
  // What is on the way of the exception is destroyed, as the guard of a static variable has to be.
  bool destroyed = false;
  auto open = [&] {
    std::shared_ptr<bool> on_the_way(&destroyed, [](bool* b) { *b = true; });
    return sdk::open_library(path.c_str(), RTLD_NOW | RTLD_LOCAL, why);
  };
  BOOST_TEST(open() == nullptr);
  BOOST_TEST(destroyed);
  BOOST_TEST(has(why, "joint.so: let an exception out while it was loaded: a thrown text"), why);
  setenv("TENON_TEST_FAULT", "", 1);
  const std::string other = folder.copy_library("joint", "other.so");
  BOOST_TEST(sdk::open_library(other.c_str(), RTLD_NOW | RTLD_LOCAL, why) != nullptr, why);
}

BOOST_AUTO_TEST_CASE(a_vendors_library_that_throws_is_one_that_cannot_be_opened) {
  const auto outcome =
      run_alone("refusal_test/opening_a_library_that_throws", {"TENON_TEST_FAULT=load_throws"});
  BOOST_TEST(outcome.status == 0, outcome.output);
}

BOOST_AUTO_TEST_SUITE_END()
