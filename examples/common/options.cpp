#include "common/options.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include <CLI/CLI.hpp>

#include <tenon/core/base/printable.h>
#include <tenon/serialization/checkpoint.h>

namespace example {

namespace {

constexpr int64_t kMax = 1'000'000'000;  // epochs, or images in a step

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

}  // namespace

Parsed parse(int argc, char** argv, const std::string& description, const Options& defaults) {
  Options o = defaults;
  CLI::App app{description};
  std::string devices = "cpu";
  bool synthetic = false;
  add_path(app, "--data", o.data,
           "Folder of IDX files (train-images-idx3-ubyte.gz and so on); without it pictures are "
           "generated");
  app.add_flag("--synthetic", synthetic, "Generate the pictures")->excludes("--data");
  app.add_option("--device", devices,
                 "Where to train: cpu, cpu:0,cpu:1 …; several share each batch")
      ->capture_default_str();
  add_number(app, "--epochs", o.epochs, int64_t{0}, kMax, "a whole number from 0 to 1000000000",
             "Passes over the training images; 0 evaluates only");
  add_number(app, "--batch-size", o.batch_size, int64_t{1}, kMax,
             "a whole number from 1 to 1000000000", "Images in a step");
  add_number(app, "--lr", o.lr, 0.0, 1e308, "a number from 0 to 1e308",
             "Learning rate at the start");
  add_number(app, "--seed", o.seed, uint64_t{0}, UINT64_MAX,
             "a whole number from 0 to 18446744073709551615",
             "Of the weights, the order of images and the generated set");
  add_path(app, "--save", o.save, "Write the trained model here");
  add_path(app, "--load", o.load, "Start from this model");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return {o, app.exit(e) == 0 ? 0 : 1};
  }
  o.devices = tenon::parse_devices(devices);
  // Before hours of training rather than after them.
  if (!o.save.empty()) tenon::require_can_save(o.save);
  return {o, std::nullopt};
}

}  // namespace example
