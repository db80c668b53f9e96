#include "common/options.h"

#include <CLI/CLI.hpp>

namespace example {

Parsed parse(int argc, char** argv, const std::string& description, const Options& defaults) {
  Options o = defaults;
  CLI::App app{description};
  std::string devices = "cpu";
  bool synthetic = false;
  auto* data = app.add_option("--data", o.data,
                              "Folder of IDX files (train-images-idx3-ubyte.gz and so on); without it pictures are generated");
  app.add_flag("--synthetic", synthetic, "Generate the pictures")->excludes(data);
  app.add_option("--device", devices, "Where to train: cpu, cpu:0,cpu:1 …; several share each batch")->capture_default_str();
  app.add_option("--epochs", o.epochs, "Passes over the training images; 0 evaluates only")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--batch-size", o.batch_size, "Images in a step")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--lr", o.lr, "Learning rate at the start")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--seed", o.seed, "Of the weights, the order of images and the generated set")->capture_default_str();
  app.add_option("--save", o.save, "Write the trained model here");
  app.add_option("--load", o.load, "Start from this model");
  try {
    app.parse(argc, argv);
    o.devices = tenon::parse_devices(devices);
  } catch (const CLI::ParseError& e) {
    return {o, app.exit(e) == 0 ? 0 : 1};
  }
  return {o, std::nullopt};
}

}  // namespace example
