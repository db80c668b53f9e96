#include "common/options.h"

#include <charconv>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>

#include <CLI/CLI.hpp>

#include <tenon/core/base/printable.h>
#include <tenon/core/random.h>
#include <tenon/serialization/checkpoint.h>

#include "common/progress.h"

namespace example {

namespace {

constexpr int64_t kMax = 1'000'000'000;  // epochs, or examples in a step

// The text as a number from `low` to `high`, all of it, or a CLI::ValidationError that quotes it.
template <class T>
T number(const std::string& option, const std::string& text, T low, T high, const char* wanted) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= low && value <= high))
    throw CLI::ValidationError(option, "\"" + tenon::printable(text) + "\" is not " + wanted);
  return value;
}

template <class T>
void add_number(CLI::App& app, const std::string& option, T& value, T low, T high,
                const char* wanted, const char* help) {
  auto read = [&value, option, low, high, wanted](const std::string& text) {
    value = number(option, text, low, high, wanted);
  };
  std::ostringstream usual;
  usual << value;
  app.add_option_function<std::string>(option, read, help)
      ->default_str(usual.str())
      ->type_name("NUMBER");
}

// An option that is given has to say something: an empty variable in a script would be taken for
// "no such option".
void add_path(CLI::App& app, const std::string& option, std::string& value, const char* help) {
  auto read = [&value, option](const std::string& text) {
    if (text.empty()) throw CLI::ValidationError(option, "is given an empty path");
    value = text;
  };
  app.add_option_function<std::string>(option, read, help)->type_name("PATH");
}

void add_extra(CLI::App& app, const Extra& extra) {
  if (auto* flag = std::get_if<bool*>(&extra.value))
    app.add_flag(extra.name, **flag, extra.help);
  else if (auto* count = std::get_if<int64_t*>(&extra.value))
    add_number(app, extra.name, **count, int64_t{1}, kMax, "a whole number from 1 to 1000000000",
               extra.help.c_str());
  else
    app.add_option(extra.name, *std::get<std::string*>(extra.value), extra.help)
        ->type_name("TEXT")
        ->capture_default_str();
}

// Reads the command line; an exit status where the program is done (--help, or a mistake that was
// reported).
std::optional<int> parse(int argc, char** argv, const Program& program, Options& o) {
  CLI::App app{program.description};
  std::string devices = "cpu";
  bool synthetic = false;
  add_path(app, "--data", o.data, program.data.c_str());
  if (program.generates)
    app.add_flag("--synthetic", synthetic, "Generate the pictures")->excludes("--data");
  app.add_option("--device", devices,
                 "Where to train: cpu, cpu:0,cpu:1 …; several share each batch")
      ->capture_default_str();
  add_number(app, "--epochs", o.epochs, int64_t{0}, kMax, "a whole number from 0 to 1000000000",
             "Passes over the training data; 0 evaluates only");
  add_number(app, "--batch-size", o.batch_size, int64_t{1}, kMax,
             "a whole number from 1 to 1000000000", "Examples in a step");
  add_number(app, "--lr", o.lr, 0.0, 1e308, "a number from 0 to 1e308",
             "Learning rate at the start");
  add_number(app, "--seed", o.seed, uint64_t{0}, UINT64_MAX,
             "a whole number from 0 to 18446744073709551615",
             "Of the weights, the order of examples and all else that is drawn");
  add_path(app, "--save", o.save, "Write the trained model here");
  add_path(app, "--load", o.load, "Start from this model");
  add_path(app, "--resume", o.resume,
           "Folder for checkpoints of the training; the same command goes on from the newest");
  for (auto& extra : program.extras) add_extra(app, extra);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }
  o.devices = tenon::parse_devices(devices);
  // Before hours of training rather than after them.
  if (!o.save.empty()) tenon::require_can_save(o.save);
  return std::nullopt;
}

}  // namespace

int run(int argc, char** argv, const Program& program, const Options& defaults,
        const std::function<void(const Options&)>& body) {
  try {
    Options options = defaults;
    if (auto status = parse(argc, argv, program, options)) return std::cout.flush() ? *status : 1;
    tenon::manual_seed(options.seed);
    body(options);
    tenon::synchronize();  // what failed and was not read
    require_output();
    return 0;
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "error: %s\n", tenon::printable_lines(e.what()).c_str());
    return 1;
  }
}

}  // namespace example
