// The `tenon` command and the examples, run as a user runs them.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <boost/test/unit_test.hpp>

#include <tenon/core/tensor.h>
#include <tenon/serialization/checkpoint.h>

#include "cli/programs.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(command_test)

using namespace tenon::test::programs;
using tenon::test::has;
using tenon::test::kSanitized;

namespace {

// Examples are tried in a build without sanitizers alone: what they use has tests of its own.
bool is_missing(const std::string& command) { return kSanitized && !command.starts_with("tenon "); }

}  // namespace

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
  for (const std::string command : {"tenon checkpoint show '", "lenet --synthetic --load '"}) {
    if (is_missing(command)) continue;
    auto missing = run(folder, command + strange + "/none'");
    BOOST_TEST(missing.status == 1);
    REQUIRE_HAS(missing.err, "/red\\x1b[31m/none");
    BOOST_TEST(!has(missing.err + missing.out, "\x1b"));
  }
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

BOOST_AUTO_TEST_CASE(an_example_trains_saves_and_only_evaluates) {
  if (kSanitized) return;  // where no examples are built
  Folder folder;
  std::string model = folder / "mlp.h5", common = "mlp --synthetic --seed 3 ";
  auto trained = run(folder, common + "--epochs 1 --save '" + model + "'");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  REQUIRE_HAS(trained.out, "epoch 1/1");
  BOOST_TEST(last_line(trained.out).substr(0, 14) == "test accuracy ");
  BOOST_TEST(last_line(trained.out).size() == 20u);
  BOOST_TEST(!has(trained.out, "\r"));

  auto loaded = run(folder, common + "--epochs 0 --load '" + model + "'");
  BOOST_REQUIRE_MESSAGE(loaded.status == 0, loaded.err);
  BOOST_TEST(last_line(loaded.out) == last_line(trained.out));

  auto show = run(folder, "tenon checkpoint show '" + model + "'");
  BOOST_TEST(show.status == 0);
  REQUIRE_HAS(show.out, "hidden.weight");
  REQUIRE_HAS(show.out, "(256, 784)");
  REQUIRE_HAS(show.out, "f32");
  auto verify = run(folder, "tenon checkpoint verify '" + model + "'");
  BOOST_TEST(verify.status == 0);

  fs::resize_file(model, fs::file_size(model) - 1);
  for (std::string command : {"show", "verify"}) {
    auto truncated = run(folder, "tenon checkpoint " + command + " '" + model + "'");
    BOOST_TEST(truncated.status == 1);
    REQUIRE_HAS(truncated.err, model);
  }
}

BOOST_AUTO_TEST_CASE(a_model_trained_on_two_devices_loads_plain_with_the_same_accuracy) {
  if (kSanitized) return;  // where no examples are built
  Folder folder;
  std::string model = folder / "wrapped.h5", common = "mlp --synthetic --seed 4 ";
  auto trained = run(folder, common + "--epochs 1 --device cpu:0,cpu:1 --save '" + model + "'");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  auto plain = run(folder, common + "--epochs 0 --load '" + model + "'");
  BOOST_REQUIRE_MESSAGE(plain.status == 0, plain.err);
  BOOST_TEST(last_line(plain.out) == last_line(trained.out));
  auto show = run(folder, "tenon checkpoint show '" + model + "'");
  REQUIRE_HAS(show.out, "module.hidden.weight");
}

BOOST_AUTO_TEST_CASE(an_example_reports_mistakes_in_one_line) {
  if (kSanitized) return;  // where no examples are built
  Folder folder;
  struct Case {
    std::string arguments, message;
  };
  const Case cases[] = {
      {"--data /no/such/folder", "/no/such/folder"},
      {"--synthetic --epochs 0 --load /no/such/model.h5", "/no/such/model.h5"},
      {"--synthetic --device nonsense --epochs 0", "nonsense"},
      {"--synthetic --device cpu:x", "cpu:x"},
      {"--synthetic --epochs -1", "--epochs"},
      {"--synthetic --batch-size 0", "--batch-size"},
      {"--synthetic --batch-size -1", "\"-1\" is not a whole number from 1 to 1000000000"},
      {"--synthetic --batch-size 99999999999999999999",
       "\"99999999999999999999\" is not a whole number"},
      {"--synthetic --epochs x", "\"x\" is not a whole number from 0"},
      {"--synthetic --epochs 1e3", "\"1e3\" is not a whole number"},
      {"--synthetic --seed -1", "\"-1\" is not a whole number from 0 to 18446744073709551615"},
      {"--synthetic --seed 18446744073709551616", "--seed"},
      {"--synthetic --lr nan", "\"nan\" is not a number from 0"},
      {"--synthetic --lr -0.1", "--lr"},
      {"--synthetic --epochs 0 --save ''", "--save"},
      {"--synthetic --epochs 0 --load ''", "--load"},
      {"--data ''", "--data"},
      {"--synthetic --epochs 1000000 --save /no/such/folder/model.h5", "/no/such/folder"},
      {"--synthetic --epochs 0 --save /no/such/folder/model.h5", "/no/such/folder"}};
  for (auto& c : cases) {
    auto result = run(folder, "lenet " + c.arguments);
    BOOST_TEST(result.status == 1,
               c.arguments << " ended with " << result.status << ": " << result.err);
    BOOST_TEST((result.err.size() < 300 || has(c.arguments, "nonsense")),
               result.err);  // a load report may be longer
    REQUIRE_HAS(result.err, c.message);
  }
}

BOOST_AUTO_TEST_CASE(an_example_that_diverges_says_so_and_fails) {
  if (kSanitized) return;  // where no examples are built
  Folder folder;
  const std::string model = folder / "lost.h5";
  auto result =
      run(folder, "mlp --synthetic --epochs 3 --batch-size 500 --lr 1e9 --save '" + model + "'");
  BOOST_TEST(result.status == 1);
  REQUIRE_HAS(result.err, "nan in epoch");
  REQUIRE_HAS(result.err, "--lr");
  BOOST_TEST(!fs::exists(model));
}

BOOST_AUTO_TEST_CASE(output_that_cannot_be_written_is_a_failure) {
  if (!fs::exists("/dev/full")) return;  // not on every machine
  Folder folder;
  const std::string model = folder / "kept.h5";
  const std::string commands[] = {
      "mlp --synthetic --epochs 1 --batch-size 500 --save '" + model + "'",
      "lenet --help",
      "tenon checkpoint show '" + model + "'",
      "tenon checkpoint verify '" + model + "'",
      "tenon devices",
      "tenon --version"};
  if (kSanitized) tenon::save(model, tenon::nn::StateDict{{"weight", tenon::ones({2})}});
  for (auto& command : commands) {
    if (is_missing(command)) continue;
    auto result = run(folder, command, "", "/dev/full");
    BOOST_TEST(result.status == 1,
               command << " ended with " << result.status << ": " << result.err);
  }
  BOOST_TEST(fs::exists(model));  // what was learned is not lost with the text
}

// What decides which backend runs a program is the machine that it starts on.
BOOST_AUTO_TEST_CASE(the_example_binary_names_no_backend) {
  if (kSanitized) return;  // where no examples are built
  Folder folder;
  std::string out = folder / "needed";
  BOOST_REQUIRE(
      std::system(
          ("readelf -d '" + tenon::test::build_dir() + "/bin/lenet' >'" + out + "'").c_str()) == 0);
  std::string text = slurp(out);
  REQUIRE_HAS(text, "libtenon.so");
  BOOST_TEST(!has(text, "libtenon_cpu"));
}

BOOST_AUTO_TEST_CASE(without_the_cpu_plugin_the_example_stops_with_the_load_report) {
  if (kSanitized) return;  // where no examples are built
  Folder folder;
  fs::create_directories(folder.path / "lib");
  fs::create_directories(folder.path / "bin");
  fs::copy(tenon::test::build_dir() + "/bin/lenet", folder.path / "bin");
  for (auto& entry : fs::directory_iterator(tenon::test::build_dir() + "/lib")) {
    if (!entry.is_directory())
      fs::copy(entry.path(), folder.path / "lib" / entry.path().filename(),
               fs::copy_options::copy_symlinks);
  }
  std::string err = folder / "stderr";
  int status = std::system(("LD_LIBRARY_PATH='" + (folder / "lib") + "' '" +
                            (folder / "bin/lenet") + "' --synthetic >/dev/null 2>'" + err + "'")
                               .c_str());
  std::string text = slurp(err);
  BOOST_TEST(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) == 1, text);
  REQUIRE_HAS(text, "cpu");
  REQUIRE_HAS(text, "searched:");
  REQUIRE_HAS(text, folder / "lib");
}

BOOST_AUTO_TEST_SUITE_END()
