// `tenon conformance`.
#include <filesystem>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <tenon/conformance/checklist.h>
#include <tenon/conformance/joint/joint.h>
#include <tenon/conformance/supervisor.h>
#include <tenon/conformance/worker.h>
#include <tenon/core/error.h>

#include "commands.h"
#include "help.h"

namespace tenon::tools {

namespace {

namespace fs = std::filesystem;

// What the command line says; `pipe`, `resumption`, `host` and `end` are for the processes that run
// the checks.
struct Asked {
  conformance::Options options;
  conformance::Resumption resumption;
  std::string dtype;
  std::string level = "all";
  bool unchecked = false;
  bool list = false;
  int pipe = -1;
};

DType dtype_named(const std::string& name) {
  std::string names;
  for (DType t : {f32, f64, f16, bf16, i64, i32, u8, boolean}) {
    if (name == name_of(t)) return t;
    names += (names.empty() ? "" : ", ") + std::string(name_of(t));
  }
  throw ValueError(fmt::format("--dtype {}: there are {}", name, names));
}

// Beside the program, in an installed copy as in a build tree.
std::string installed_cases() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  return (folder / TENON_CASES_FROM_BIN).lexically_normal();
}

conformance::Options checked_options(const Asked& asked) {
  auto options = asked.options;
  if (!asked.dtype.empty()) options.dtype = dtype_named(asked.dtype);
  options.checked = !asked.unchecked && !options.speed;
  options.required_only = asked.level == "required";
  if (options.cases.empty()) options.cases = installed_cases();
  conformance::require_known_op(options.op);
  conformance::require_readable(options.tried);
  return options;
}

std::vector<std::string> command_of(const conformance::Options& o) {
  std::vector<std::string> command = {
      "tenon",  "conformance",          "--cases", o.cases,
      "--seed", std::to_string(o.seed), "--limit", std::to_string(o.limit)};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {name, value});
  };
  o.plugin.empty() ? add("--device", o.device) : add("--plugin", o.plugin);
  add("--op", o.op);
  add("--section", o.section);
  add("--try", o.tried);
  if (o.required_only) add("--level", "required");
  if (o.speed) command.push_back("--speed");
  if (!o.checked) command.push_back("--no-check");
  if (o.dtype) add("--dtype", std::string(name_of(*o.dtype)));
  return command;
}

// The command that checks the joint alone.
std::vector<std::string> command_of_joint(conformance::Options options) {
  options.op = "";
  options.dtype.reset();
  options.section = "joint";
  return command_of(options);
}

bool list_operators() {
  for (auto& name : conformance::operator_names()) std::cout << name << "\n";
  return true;
}

bool run(const Asked& asked) {
  if (asked.list) return list_operators();
  const auto options = checked_options(asked);
  if (asked.pipe >= 0)
    return run_checks(options, command_of_joint(options), asked.resumption, asked.pipe) == 0;
  return supervise(options, command_of(options), std::cout) == 0;
}

}  // namespace

void add_conformance(CLI::App& app, bool& good) {
  auto asked = std::make_shared<Asked>();
  auto& o = asked->options;
  auto* command = app.add_subcommand(
      "conformance", "Check a backend: values, gradients, memory layouts, shapes, every dtype");
  auto* device = command->add_option("--device", o.device, "An installed device (default: cpu)");
  command
      ->add_option("--plugin", o.plugin,
                   "A library or manifest: this plugin, with the cpu and what it is an overlay of")
      ->excludes(device);
  command->add_option("--cases", o.cases, "A folder of reference cases (default: the installed)");
  command->add_option("--op", o.op, "Only this operator");
  command->add_flag("--list-ops", asked->list,
                    "Print the names that --op knows, and check nothing");
  command->add_option("--dtype", asked->dtype, "Only this dtype, such as f32");
  command->add_option("--level", asked->level, "Operators that are required of a backend, or all")
      ->check(CLI::IsMember({"required", "all"}));
  command
      ->add_option("--section", o.section,
                   "Only joint, cases, layouts, shapes, repeat or gradients")
      ->check(
          CLI::IsMember({"joint", "cases", "layouts", "sizes", "shapes", "repeat", "gradients"}));
  command->add_option("--try", o.tried,
                      "For the joint: an operator of the plugin's own library, of one f32 tensor, "
                      "such as \"mylib::swish2(beta=1.5)\"");
  command->add_flag("--speed", o.speed, "Measure operators beside the cpu and beside a copy");
  command->add_option("--seed", o.seed, "For the random shapes (default: 0)")
      ->check(check_whole_number);
  command->add_option("--json", o.json, "Write all results to this file");
  command->add_option("--limit", o.limit, "Seconds that a check may take (default: 60)")
      ->check(CLI::Range(1u, 86400u));
  command->add_flag("--no-check", asked->unchecked, "Without checked mode (TENON_CHECK)");
  for (auto* hidden : {command->add_option("--pipe", asked->pipe),
                       command->add_option("--from", asked->resumption.from),
                       command->add_option("--without", asked->resumption.without),
                       command->add_option("--without-file", asked->resumption.without_files),
                       command->add_option("--without-section", asked->resumption.without_sections),
                       command->add_option("--passed", asked->resumption.passed),
                       command->add_option("--host", o.host), command->add_option("--end", o.end)})
    hidden->group("");
  command->footer(
      "Exits with 0 if something passed, nothing failed, and values were compared wherever "
      "something passed. What a backend does not offer is listed with its reason and neither "
      "passes nor fails. The checks run in a process of their own: one that crashes or hangs is a "
      "failure, and the next are run.");
  command->callback([asked, &good] { good = run(*asked); });
}

}  // namespace tenon::tools
