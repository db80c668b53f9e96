// The `tenon` command, which lists devices, checks backends, shows checkpoints, runs programs and
// downloads data.
#include <csignal>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/plugins/abi/abi.h>

#include "commands.h"
#include "errors.h"
#include "help.h"

namespace {

std::string version() {
  return fmt::format("tenon {} (plugin ABI {}.{})", TENON_VERSION, TN_ABI_MAJOR, TN_ABI_MINOR);
}

// Each adds a command, which sets `good` to false if it finds something wrong.
void add_devices(CLI::App& app, bool& good) {
  auto options = std::make_shared<tenon::tools::DevicesOptions>();
  auto* devices =
      app.add_subcommand("devices", "List plugins, loaded or refused and why, and their devices");
  devices->add_flag("--json", options->as_json, "Print one JSON object");
  devices->add_flag("--strict", options->strict,
                    "Exit with 1 also if a plugin is refused or cannot open a device");
  devices
      ->add_option("--limit", options->limit,
                   "Seconds that a backend may take to open its devices (default: 60)")
      ->check(CLI::Range(1u, 86400u));
  devices->callback([options, &good] { good = tenon::tools::list_devices(*options); });
}

void add_plugin(CLI::App& app, bool& good) {
  auto* plugin = app.add_subcommand("plugin", "Look at a plugin")->require_subcommand(1);
  auto file = std::make_shared<std::string>();
  auto* check = plugin->add_subcommand(
      "check", "Say what is right and wrong about a plugin, without running any of it");
  check->add_option("FILE", *file, "The library, or the manifest (*.tenon.json)")->required();
  check->callback([file, &good] { good = tenon::tools::check_plugin_file(*file); });
}

void add_data(CLI::App& app) {
  auto* data = app.add_subcommand("data", "Data sets")->require_subcommand(1);
  auto name = std::make_shared<std::string>(), folder = std::make_shared<std::string>();
  auto* fetch = data->add_subcommand("fetch", "Download a data set and check it");
  fetch->add_option("NAME", *name, "fashion-mnist")->required();
  fetch->add_option("DIR", *folder, "Where to put it")->required();
  fetch->callback([name, folder] { tenon::tools::fetch_data(*name, *folder); });
}

int run(int argc, char** argv) {
  CLI::App app{"Devices, backends, checkpoints and data of Tenon", "tenon"};
  app.set_version_flag("--version", version());
  app.require_subcommand(1);

  bool good = true;
  add_devices(app, good);
  add_plugin(app, good);
#ifdef TENON_HAS_CONFORMANCE
  tenon::tools::add_conformance(app, good);
#else
  app.add_subcommand("conformance", "Not in this build (TENON_BUILD_CONFORMANCE is OFF)")
      ->allow_extras()
      ->callback([] {
        throw std::runtime_error(
            "conformance is not in this build, which was configured with "
            "TENON_BUILD_CONFORMANCE=OFF; configure with ON, build again");
      });
#endif

  int status = 0;
  tenon::tools::add_checkpoint(app, status);
  tenon::tools::add_program(app);
  add_data(app);
  app.footer(tenon::tools::environment_help());  // last, or the commands would have it, too
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::ostringstream errors;  // errors quote arguments, which may contain any bytes
    status = 2;
    if (const auto unknown = tenon::tools::unknown_command(app);
        !unknown.empty() && e.get_exit_code())
      errors << "tenon: " << unknown << "\nRun with --help for more information.\n";
    else if (app.exit(e, std::cout, errors) == 0)
      status = 0;
    std::cerr << tenon::printable_lines(errors.str());
    return std::cout.flush() ? status : 1;
  }
  if (!std::cout.flush()) throw std::runtime_error("cannot write to the standard output");
  return good ? status : 1;
}

}  // namespace

int main(int argc, char** argv) {
  // The shell's `trap '' CHLD` is inherited, and then nobody is told how a child has ended.
  std::signal(SIGCHLD, SIG_DFL);
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    tenon::tools::print_error(e);
    return 1;
  }
}
