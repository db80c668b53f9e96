// Where plugins are looked for, which one wins, and that looking loads nothing.
#include <boost/test/unit_test.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include <tenon/core/error.h>

#include "logged.h"
#include "places.h"
#include "plugin_folder.h"
#include "process/child.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(discovery_test)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(listing_loads_nothing_and_the_first_use_loads_once) {
  PluginFolder folder;
  folder.add("good");
  auto trace = folder.file("trace");
  Environment marker("TENON_TEST_TRACE", trace);

  Registry registry(folder.only());
  auto entry = entry_of(registry.report(), "good.tenon.json");
  BOOST_TEST(plugins::to_string(entry.status) == "available");
  BOOST_TEST(!fs::exists(trace));

  auto& backend = registry.load("good");
  BOOST_TEST(read_text(trace) == "good load\ngood init\n");
  BOOST_TEST(&registry.load("good") == &backend);
  BOOST_TEST(read_text(trace) == "good load\ngood init\n");
  BOOST_TEST(backend.name() == "good");
  BOOST_TEST(backend.info().version == "1.2");
  BOOST_TEST(backend.info().library == folder.file("good.so"));
  BOOST_TEST(plugins::to_string(entry_of(registry.report(), "good.tenon.json").status) == "loaded");
}

BOOST_AUTO_TEST_CASE(a_second_registry_shares_the_running_plugin) {
  PluginFolder folder;
  folder.add("good");
  Environment marker("TENON_TEST_TRACE", folder.file("trace"));
  Registry one(folder.only()), two(folder.only());
  BOOST_TEST(&one.load("good") == &two.load("good"));
  BOOST_TEST(read_text(folder.file("trace")) == "good load\ngood init\n");
}

// With no free descriptor, then with one, two …: each step of the first use fails once, says why,
// and works when there are enough.
BOOST_AUTO_TEST_CASE(with_few_descriptors,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  PluginFolder folder;
  folder.add("good");
  const int file = dup(0);  // the lowest that is free
  close(file);
  rlimit before{};
  BOOST_REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  Registry registry(folder.only());
  int failed = 0;
  const auto load = [&] {
    try {
      registry.load("good");
      return true;
    } catch (const PluginError& e) {
      BOOST_TEST(has(e.what(), "cannot be opened now: Too many open files. Close files, or raise"),
                 e.what());
      return false;
    }
  };
  for (bool loaded = false; !loaded && failed < 20; failed += !loaded) {
    const rlimit few{static_cast<rlim_t>(file + failed), before.rlim_max};
    BOOST_REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
    loaded = load();
  }
  BOOST_TEST(failed > 0);
  BOOST_TEST(setrlimit(RLIMIT_NOFILE, &before) == 0);
  BOOST_TEST(load());
}

BOOST_AUTO_TEST_CASE(too_many_open_files_are_no_fault_of_a_plugin) {
  if (kSanitized) return;  // the sanitizer opens pipes to look at objects
  const Outcome outcome = run_alone("discovery_test/with_few_descriptors");
  BOOST_TEST(outcome.status == 0, outcome.output);
}

// The same where the linker is the first that finds none.
BOOST_AUTO_TEST_CASE(with_few_descriptors_for_the_linker,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  PluginFolder folder;
  folder.add("good");
  Registry registry(folder.only());
  BOOST_TEST(registry.report().entries.size() == 1u);  // they are found, but not loaded
  const int file = dup(0);
  close(file);
  rlimit before{};
  BOOST_REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{static_cast<rlim_t>(file), before.rlim_max};
  BOOST_REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const std::string text = error_of<std::exception>([&] { registry.load("good"); });
  BOOST_TEST(setrlimit(RLIMIT_NOFILE, &before) == 0);
  BOOST_TEST(has(text, "good.so cannot be opened now: Too many open files"), text);
  BOOST_TEST(registry.load("good").name() == "good");
}

BOOST_AUTO_TEST_CASE(too_many_open_files_for_the_linker_are_no_shortage_of_memory) {
  if (kSanitized) return;  // the sanitizer opens pipes to look at objects
  const Outcome outcome = run_alone("discovery_test/with_few_descriptors_for_the_linker");
  BOOST_TEST(outcome.status == 0, outcome.output);
}

BOOST_AUTO_TEST_CASE(the_highest_preference_that_the_machine_can_run_wins) {
  PluginFolder folder;
  folder.add("good", {{"variant", "plain"}, {"preference", 1}}, "plain");
  folder.add("good", {{"variant", "fast"}, {"preference", 2}}, "fast");
  folder.add("good", {{"variant", "dream"}, {"preference", 9}, {"cpu_features", {"avx1024"}}},
             "dream");
  Registry registry(folder.only());
  auto report = registry.report();
  BOOST_TEST(plugins::to_string(entry_of(report, "fast.tenon.json").status) == "available");
  BOOST_TEST(plugins::to_string(entry_of(report, "plain.tenon.json").status) == "superseded");
  BOOST_TEST(has(entry_of(report, "plain.tenon.json").reason, "fast.tenon.json"));
  BOOST_TEST(plugins::to_string(entry_of(report, "dream.tenon.json").status) == "unsuitable");
  BOOST_TEST(registry.load("good").info().library == folder.file("fast.so"));
}

BOOST_AUTO_TEST_CASE(where_the_best_variant_fails_the_next_is_taken_and_the_report_says_so) {
  PluginFolder folder;
  folder.add("good", {{"preference", 1}}, "plain");
  folder.add("init_fails", {{"preference", 2}}, "fast");
  Registry registry(folder.only());
  BOOST_TEST(registry.load("good").info().library == folder.file("plain.so"));
  auto report = registry.report();
  BOOST_TEST(plugins::to_string(entry_of(report, "fast.tenon.json").status) == "refused");
  BOOST_TEST(plugins::to_string(entry_of(report, "plain.tenon.json").status) == "loaded");
}

BOOST_AUTO_TEST_CASE(explicit_paths_go_before_the_environment_whatever_the_preference) {
  PluginFolder chosen, environment;
  chosen.add("good", {{"preference", 0}});
  environment.add("good", {{"preference", 100}});
  Environment path("TENON_PLUGIN_PATH", environment.path());
  Registry registry({.paths = {chosen.path()}, .environment = true, .install_folder = false});
  BOOST_TEST(registry.load("good").info().library == chosen.file("good.so"));

  Registry later({.paths = {}, .environment = true, .install_folder = false});
  BOOST_TEST(plugins::to_string(later.report().entries.at(0).status) == "available");
  later.add_path(chosen.file("good.tenon.json"));
  BOOST_TEST(later.load("good").info().library == chosen.file("good.so"));
}

BOOST_AUTO_TEST_CASE(a_loaded_backend_stays_when_a_better_one_turns_up) {
  PluginFolder first, second;
  first.add("good");
  second.add("good", {{"preference", 100}});
  Registry registry({.paths = {first.path()}, .environment = false, .install_folder = false});
  auto& backend = registry.load("good");
  registry.add_path(second.path());
  BOOST_TEST(&registry.load("good") == &backend);
  BOOST_TEST(
      plugins::to_string(entry_of(registry.report(), second.file("good.tenon.json")).status) ==
      "superseded");
}

BOOST_AUTO_TEST_CASE(the_environment_lists_folders_in_order) {
  PluginFolder one, two;
  one.add("good");
  two.add("good");
  Environment path("TENON_PLUGIN_PATH", two.path() + ":" + one.path());
  Registry registry({.paths = {}, .environment = true, .install_folder = false});
  BOOST_TEST(registry.report().entries.size() == 2u);
  BOOST_TEST(registry.load("good").info().library == two.file("good.so"));
}

BOOST_AUTO_TEST_CASE(one_manifest_is_listed_once_however_often_it_is_found) {
  PluginFolder folder;
  auto manifest = folder.add("good");
  fs::create_symlink(folder.path(), folder.file("again"));
  Registry registry({.paths = {folder.path(), folder.file("again"), manifest},
                     .environment = false,
                     .install_folder = false});
  BOOST_TEST(registry.report().entries.size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_working_directory_is_never_searched) {
  PluginFolder folder;
  folder.add("good");
  auto before = fs::current_path();
  fs::current_path(folder.path());
  Environment path("TENON_PLUGIN_PATH", ":.:../" + fs::path(folder.path()).filename().string());
  Registry registry(
      {.paths = {"good.tenon.json", ""}, .environment = true, .install_folder = false});
  plugins::LoadReport report;
  const auto warnings = logged([&] { report = registry.report(); });
  fs::current_path(before);
  const std::string relative = "TENON_PLUGIN_PATH: \".\" is not searched: a relative path";
  BOOST_TEST(has(warnings, relative), warnings);
  BOOST_TEST(has(warnings, "TENON_PLUGIN_PATH: \"\" is not searched: an empty entry"), warnings);
  BOOST_TEST(!has(logged([&] { registry.report(); }), "TENON_PLUGIN_PATH"));  // told once
  BOOST_TEST(report.entries.size() == 5u);
  for (auto& e : report.entries) {
    BOOST_TEST(plugins::to_string(e.status) == "refused");
    BOOST_TEST(has(e.reason, "working directory"));
  }
  BOOST_CHECK_THROW(registry.load("good"), PluginError);
}

BOOST_AUTO_TEST_CASE(places_that_cannot_be_searched_stand_in_the_report) {
  PluginFolder folder;
  auto text = folder.write("notes.txt", "hello");
  Registry registry(
      {.paths = {"/nowhere/at/all", text}, .environment = false, .install_folder = false});
  auto report = registry.report();
  BOOST_TEST(report.entries.size() == 2u);
  BOOST_TEST(has(entry_of(report, "/nowhere/at/all").reason, "No such file"));
  BOOST_TEST(has(entry_of(report, "notes.txt").reason, "neither a folder nor a manifest"));
}

BOOST_AUTO_TEST_CASE(an_empty_folder_is_no_mistake) {
  PluginFolder folder;
  Registry registry(folder.only());
  BOOST_TEST(registry.report().entries.empty());
  BOOST_TEST(registry.overlays("good").empty());
}

BOOST_AUTO_TEST_CASE(the_installed_folder_lies_beside_the_library) {
  Registry registry({.paths = {}, .environment = false, .install_folder = true});
  auto report = registry.report();
  BOOST_TEST(report.searched.size() == 1u);
  BOOST_TEST(has(report.searched[0], test::build_dir() + "/lib/tenon/plugins"));
}

BOOST_AUTO_TEST_CASE(a_missing_backend_is_an_error_with_the_report_and_the_remedy) {
  PluginFolder folder;
  folder.add("init_fails");
  folder.write("broken.tenon.json", "{");
  Registry registry(folder.only());
  for (const char* name : {"cuda", "good", "", "../cpu"}) {
    const std::string text = error_of<PluginError>([&] { registry.load(name); });
    BOOST_TEST(has(text, std::string("backend \"") + name + "\" cannot be used"));
    BOOST_TEST(has(text, folder.file("broken.tenon.json")));
    BOOST_TEST(has(text, "not JSON"));
    BOOST_TEST(has(text, "set TENON_PLUGIN_PATH to the absolute path"));
  }
  const std::string refusal = "init failed: the fixture has no driver [driver=none]";
  BOOST_TEST(has(registry.report().to_string(), refusal));
  const std::string text = error_of([&] { registry.load("good"); });
  const size_t first = text.find(refusal);
  BOOST_TEST((first != text.npos && text.find(refusal, first + 1) == text.npos), text);  // once
}

BOOST_AUTO_TEST_CASE(the_registry_can_be_replaced) {
  PluginFolder folder;
  folder.add("good");
  Registry mine(folder.only());
  auto* before = plugins::replace_registry(&mine);
  BOOST_TEST(&plugins::registry() == &mine);
  BOOST_TEST(plugins::replace_registry(nullptr) == &mine);
  BOOST_TEST(&plugins::registry() == before);
}

BOOST_AUTO_TEST_SUITE_END()
