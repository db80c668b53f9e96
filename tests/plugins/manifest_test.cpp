// Manifests that no honest author wrote, or an honest one in a hurry: refused, each with what is
// wrong.
#include <boost/test/unit_test.hpp>
#include <sys/stat.h>

#include "plugin_folder.h"

BOOST_AUTO_TEST_SUITE(manifest_test)

using namespace tenon;
using namespace tenon::test;

namespace {

std::string reason_for_text(const std::string& text) {
  PluginFolder folder;
  folder.copy_library("good");
  folder.write("good.tenon.json", text);
  Registry registry(folder.only());
  auto report = registry.report();
  BOOST_REQUIRE_EQUAL(report.entries.size(), 1u);
  auto& entry = report.entries[0];
  BOOST_TEST(plugins::to_string(entry.status) == "refused");
  for (unsigned char c : entry.reason) BOOST_REQUIRE((c >= 0x20 && c < 0x7f));
  BOOST_TEST(entry.reason.size() < 600u);
  return entry.reason;
}

std::string reason_for(const json& changes) {
  auto manifest = PluginFolder::manifest("good", "good.so");
  manifest.update(changes);
  return reason_for_text(manifest.dump());
}

void check_contains(const std::string& reason, const std::string& part) {
  BOOST_TEST(has(reason, part), "\"" << reason << "\" does not contain \"" << part << "\"");
}

}  // namespace

BOOST_AUTO_TEST_CASE(text_that_is_not_json) {
  for (const char* text : {"", "{", "hello", "{\"name\": \"good\",}", "{'name': 'good'}",
                           "\xff\xfe{}", "{} {}", "{\"a\": \"\x1b[31m\"}"})
    check_contains(reason_for_text(text), "not JSON");
  check_contains(reason_for_text(std::string(3, '\0')), "not JSON");
  check_contains(reason_for_text(std::string("\"").append(5000, 'x')), "not JSON");
  check_contains(reason_for_text(std::string(60000, '[')), "not JSON");
  check_contains(reason_for_text(std::string(30000, '[') + std::string(30000, ']')),
                 "not a JSON object");
  for (const char* text : {"[]", "null", "3", "\"good\""})
    check_contains(reason_for_text(text), "not a JSON object");
}

BOOST_AUTO_TEST_CASE(a_huge_manifest) {
  check_contains(reason_for_text(std::string(1 << 20, ' ')), "more than the 65536 allowed");
}

BOOST_AUTO_TEST_CASE(a_pipe_does_not_block) {
  PluginFolder folder;
  BOOST_REQUIRE_EQUAL(mkfifo(folder.file("good.tenon.json").c_str(), 0600), 0);
  Registry registry(folder.only());
  check_contains(registry.report().entries.at(0).reason, "not a regular file");
}

BOOST_AUTO_TEST_CASE(missing_fields_are_named) {
  for (const char* field : {"name", "kind", "library", "abi", "version"}) {
    auto manifest = PluginFolder::manifest("good", "good.so");
    manifest.erase(field);
    check_contains(reason_for_text(manifest.dump()), std::string("\"") + field + "\" is missing");
  }
  check_contains(reason_for({{"abi", {{"major", 1}}}}), "\"minor\" is missing");
  check_contains(reason_for({{"kind", "overlay"}}), "\"overlays\" is missing");
  const json abi = {{"major", 1}, {"minr", 2}};
  check_contains(reason_for({{"abi", abi}}),
                 "\"minor\" is missing; \"minr\" is there, did you mean \"minor\"?");
  // "major" is known itself, however alike the two are.
  BOOST_TEST(!has(reason_for({{"abi", {{"major", 1}}}}), "did you mean"));
  json mistyped = PluginFolder::manifest("good", "good.so");
  mistyped["libary"] = mistyped["library"];
  mistyped.erase("library");
  check_contains(reason_for_text(mistyped.dump()),
                 "\"library\" is missing; \"libary\" is there, did you mean \"library\"?");
}

BOOST_AUTO_TEST_CASE(fields_of_the_wrong_type) {
  for (const char* field : {"name", "kind", "library", "version", "variant"})
    for (auto& value : {json(3), json(nullptr), json::array(), json::object(), json(true)})
      check_contains(reason_for({{field, value}}),
                     std::string("\"") + field + "\" must be a string");
  for (auto& value : {json("1.0"), json(1), json::array({1, 0})})
    check_contains(reason_for({{"abi", value}}), "\"abi\" must be an object");
  for (auto& value :
       {json("1"), json(1.0), json(-1), json(1e300), json(UINT64_MAX), json(70000), json(nullptr)})
    check_contains(reason_for({{"abi", {{"major", value}, {"minor", 0}}}}),
                   "\"abi.major\" must be an integer");
  for (auto& value : {json("high"), json(0.5), json(INT64_MAX), json(INT64_MIN), json(UINT64_MAX)})
    check_contains(reason_for({{"preference", value}}), "\"preference\" must be an integer");
  for (auto& value : {json("avx2"), json::object(), json(1)})
    check_contains(reason_for({{"cpu_features", value}}), "\"cpu_features\" must be an array");
  check_contains(reason_for({{"cpu_features", {"avx2", 2}}}), "\"cpu_features\" must be a string");
  check_contains(reason_for({{"vendor_libraries", std::vector<std::string>(65, "libm.so.6")}}),
                 "at most 64");
}

BOOST_AUTO_TEST_CASE(values_that_make_no_sense) {
  for (const char* name : {"", "CPU", "cpu:0", "0cpu", "a b", "../cpu", "a-b",
                           "abcdefghijklmnopqrstuvwxyzabcdefghijkl"})
    check_contains(reason_for({{"name", name}}), "1 to 32 of a-z, 0-9 and _");
  check_contains(reason_for({{"kind", "Device"}}), "\"kind\" is \"Device\"");
  check_contains(reason_for({{"version", std::string(500, '1')}}), "longer than 128");
  for (auto text : {std::string("\x1b[31mred"), std::string("a\nb"),
                    std::string("good.so\0.txt", 12), std::string("\xc3\xa9")})
    for (const char* field : {"name", "version", "variant", "library"})
      check_contains(reason_for({{field, text}}), "not printable ASCII");
}

BOOST_AUTO_TEST_CASE(all_fields_that_are_wrong_are_named_at_once) {
  const auto reason = reason_for({{"name", "CPU"},
                                  {"kind", "Device"},
                                  {"version", 3},
                                  {"abi", json::object()},
                                  {"cpu_features", "avx2"}});
  for (const char* part : {"manifest: \"name\" is \"CPU\"", "; \"kind\" is \"Device\"",
                           "; \"version\" must be a string", "; \"major\" is missing",
                           "; \"cpu_features\" must be an array"})
    check_contains(reason, part);
  BOOST_TEST(reason.find("manifest:") == reason.rfind("manifest:"));
}

BOOST_AUTO_TEST_CASE(fields_of_a_later_version_are_passed_over) {
  PluginFolder folder;
  folder.add("good", {{"sdk", {{"compiler", "x"}}}, {"homepage", 3}});
  BOOST_TEST(Registry(folder.only()).load("good").name() == "good");
}

BOOST_AUTO_TEST_CASE(a_refused_plugin_is_named_as_far_as_it_is_known) {
  PluginFolder folder;
  folder.add("good", {{"variant", "fast"}, {"cpu_features", {"avx1024"}}});
  auto report = Registry(folder.only()).report();
  BOOST_TEST(report.entries.at(0).name == "good");
  BOOST_TEST(report.entries.at(0).variant == "fast");
  BOOST_TEST(report.entries.at(0).version == "1.2");
  check_contains(report.to_string(), "good (fast)");
}

BOOST_AUTO_TEST_SUITE_END()
