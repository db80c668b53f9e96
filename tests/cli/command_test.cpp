// The `tenon` command, run as a user runs it.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <boost/test/unit_test.hpp>

#include <tenon/core/tensor.h>
#include <tenon/serialization/checkpoint.h>

#include "cli/programs.h"

BOOST_AUTO_TEST_SUITE(command_test)

using namespace tenon::test::programs;
using tenon::test::has;

BOOST_AUTO_TEST_CASE(version_names_the_library_and_its_abi) {
  Folder folder;
  auto result = run(folder, "tenon --version");
  BOOST_TEST(result.status == 0);
  REQUIRE_HAS(result.out, "tenon 0.");
  REQUIRE_HAS(result.out, "plugin ABI 1.");
}

// The README has them all, in the first column of a table.
BOOST_AUTO_TEST_CASE(help_names_every_variable_of_the_environment) {
  Folder folder;
  const auto help = run(folder, "tenon --help").out;
  std::ifstream readme(tenon::test::reference_dir() + "/../../README.md");
  size_t count = 0;
  for (std::string line; std::getline(readme, line);) {
    if (!line.starts_with("| `TENON_")) continue;
    ++count;
    REQUIRE_HAS(help, "\n  " + line.substr(3, line.find_first_of("`=", 3) - 3) + " ");
  }
  BOOST_TEST(count > 8u);
  BOOST_TEST(!has(run(folder, "tenon devices --help").out, "TENON_"));
}

BOOST_AUTO_TEST_CASE(devices_lists_plugins_and_devices) {
  Folder folder;
  auto result = run(folder, "tenon devices");
  BOOST_TEST(result.status == 0);
  REQUIRE_HAS(result.out, "cpu");
  REQUIRE_HAS(result.out, "loaded");
  REQUIRE_HAS(result.out, "cpu:0");
  REQUIRE_HAS(result.out, "thread");
}

BOOST_AUTO_TEST_CASE(devices_are_those_that_programs_get) {
  Folder folder;
  auto result = run(folder, "tenon devices", "TENON_NUM_THREADS=3 TENON_CPU_DEVICES=2");
  BOOST_TEST(result.status == 0);
  REQUIRE_HAS(result.out, "cpu:0");
  REQUIRE_HAS(result.out, "  cpu:1");
  REQUIRE_HAS(result.out, ", 3 threads\n");
  REQUIRE_HAS(result.out, "more cpu devices on request, such as cpu:2\n");
  REQUIRE_HAS(run(folder, "tenon devices", "TENON_NUM_THREADS=1").out, ", 1 thread\n");
  for (std::string setting : {"TENON_NUM_THREADS=abc", "TENON_CPU_DEVICES=x", "TENON_SYNC=yes"}) {
    auto refused = run(folder, "tenon devices", setting);
    BOOST_TEST(refused.status == 1);
    auto [name, value] =
        std::pair(setting.substr(0, setting.find('=')), setting.substr(setting.find('=') + 1));
    REQUIRE_HAS(refused.err, "tenon: " + name + " is \"" + value + "\"; it must be ");
  }
}

BOOST_AUTO_TEST_CASE(devices_says_why_a_plugin_was_refused) {
  Folder folder;
  std::ofstream(folder / "broken.tenon.json") << "{\"name\": \"broken\"";
  auto result = run(folder, "tenon devices", "TENON_PLUGIN_PATH='" + folder.path.string() + "'");
  BOOST_TEST(result.status == 0);
  REQUIRE_HAS(result.out, "broken.tenon.json");
  REQUIRE_HAS(result.out, "refused");
}

// A name of a file may hold what a terminal obeys.
BOOST_AUTO_TEST_CASE(names_from_outside_are_shown_and_not_obeyed) {
  Folder folder;
  const std::string strange = folder / "red\x1b[31m";
  fs::create_directories(strange);
  std::ofstream(strange + "/a\nb\x9b.tenon.json") << "{";
  auto devices = run(folder, "tenon devices", "TENON_PLUGIN_PATH='" + strange + "'");
  REQUIRE_HAS(devices.out, "/red\\x1b[31m/a\\nb\\x9b.tenon.json");
  auto missing = run(folder, "tenon checkpoint show '" + strange + "/none'");
  BOOST_TEST(missing.status == 1);
  REQUIRE_HAS(missing.err, "/red\\x1b[31m/none");
  BOOST_TEST(!has(missing.err + missing.out, "\x1b"));
  auto unexpected = run(folder, "tenon devices '\x1b[31m\x9b'");
  BOOST_TEST(unexpected.status == 2);
  REQUIRE_HAS(unexpected.err, "\\x1b[31m\\x9b\nRun with --help");
  BOOST_TEST(!has(devices.out + devices.err, "\x1b"));
  BOOST_TEST(!has(devices.out + devices.err, "\x9b"));
}

BOOST_AUTO_TEST_CASE(mistakes_end_in_one_line_and_a_status) {
  Folder folder;
  auto nothing = run(folder, "tenon");
  BOOST_TEST(nothing.status == 2);
  const std::pair<const char*, const char*> unknown[] = {
      {"tenon frobnicate",
       "tenon: there is no command \"frobnicate\"; there are devices, plugin, conformance, "
       "checkpoint, program, data\nRun with --help"},
      {"tenon devcies", "there is no command \"devcies\": did you mean \"devices\"?; there are "},
      {"tenon checkpoint shwo a.h5",
       "no command \"shwo\": did you mean \"show\"?; there are show, "},
      {"tenon data get", "there is no command \"get\"; there is fetch\n"},
      {"tenon '\x1b[31m'", "there is no command \"\\x1b[31m\""},
      {"tenon devices twice", "not expected: twice"},
      {"tenon conformance --seed 18446744073709551616",
       "--seed: \"18446744073709551616\" is not a whole number from 0 to 18446744073709551615"},
      {"tenon conformance --seed -1", "--seed: \"-1\" is not a whole number"},
      {"tenon checkpoint convert a b --max-shard-size -1",
       "--max-shard-size: \"-1\" is not a whole number from 0 to 18446744073709551615"},
      {"tenon conformance --limit 4294967297", "--limit"},
      {"tenon conformance --limit 0", "--limit"}};
  for (auto& [command, said] : unknown) {
    auto refused = run(folder, command);
    BOOST_TEST(refused.status == 2, command);
    BOOST_TEST(refused.out == "");
    REQUIRE_HAS(refused.err, said);
  }
  for (std::string command : {"show", "verify"}) {
    auto missing = run(folder, "tenon checkpoint " + command + " /no/such/file.h5");
    BOOST_TEST(missing.status == 1);
    REQUIRE_HAS(missing.err, "/no/such/file.h5");
    BOOST_TEST(missing.out == "");
  }
  auto data = run(folder, "tenon data fetch nonsense " + folder.path.string());
  BOOST_TEST(data.status == 1);
  REQUIRE_HAS(data.err, "no data set 'nonsense'; there is: fashion-mnist");
}

BOOST_AUTO_TEST_CASE(tensors_without_memory_of_their_own_have_more_bytes_than_a_number_holds) {
  Folder folder;
  const auto file = std::filesystem::path(tenon::test::reference_dir()) / "weights" / "expanded.pt";
  auto show = run(folder, "tenon checkpoint show '" + file.string() + "'");
  BOOST_TEST(show.status == 0);
  REQUIRE_HAS(show.out, "5 tensors, 2882303761517117440 elements, 16.0 EiB\n");
}

BOOST_AUTO_TEST_CASE(keys_and_paths_cannot_write_to_the_terminal) {
  Folder folder;
  const std::string file = folder / "a\nb.h5";
  tenon::save(file, tenon::nn::StateDict{{"first\n\x1b[31mred", tenon::ones({2})},
                                         {"second", tenon::ones({2})}});
  auto show = run(folder, "tenon checkpoint show '" + file + "'");
  BOOST_TEST(show.status == 0);
  REQUIRE_HAS(show.out, "a\\nb.h5: format 1");
  REQUIRE_HAS(show.out, "\nfirst\\n\\x1b[31mred  f32");
  BOOST_TEST(!has(show.out, "\x1b"));
  fs::resize_file(file, 100);
  auto verify = run(folder, "tenon checkpoint verify '" + file + "'");
  BOOST_TEST(verify.status == 1);
  REQUIRE_HAS(verify.err, "a\\nb.h5': the file is cut off");
}

BOOST_AUTO_TEST_CASE(output_that_cannot_be_written_is_a_failure) {
  if (!fs::exists("/dev/full")) return;  // not on every machine
  Folder folder;
  const std::string model = folder / "kept.h5";
  tenon::save(model, tenon::nn::StateDict{{"weight", tenon::ones({2})}});
  for (const std::string& command :
       {"tenon checkpoint show '" + model + "'", "tenon checkpoint verify '" + model + "'",
        std::string("tenon devices"), std::string("tenon --version")}) {
    auto result = run(folder, command, "", "/dev/full");
    BOOST_TEST(result.status == 1,
               command << " ended with " << result.status << ": " << result.err);
  }
}

BOOST_AUTO_TEST_SUITE_END()
