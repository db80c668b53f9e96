#include "checkpoint_commands.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/serialization/step_names.h>

#include "commands.h"
#include "confined_command.h"
#include "errors.h"
#include "help.h"

namespace tenon::tools {
namespace {

using nlohmann::json;

void add_file(CLI::App* command, FileChoice& file) {
  command->add_option("FILE", file.path, "The file, of any format that is loaded")->required();
}
void add_reading(CLI::App* command, FileChoice& file) {
  command->add_option("--section", file.section, "The part of a PyTorch file that is read");
  command->add_flag(
      "!--no-verify", file.verify,
      "Read a checkpoint with wrong checksums, which another program may have changed");
}

void add_diff(CLI::App* checkpoint, int& status) {
  auto* diff = checkpoint->add_subcommand(
      "diff",
      "Compare two files: names, shapes, dtypes, values. The exit status is 0 if they are "
      "equal, 1 if not, and 2 for an error");
  auto options = std::make_shared<DiffOptions>();
  diff->add_option("A", options->a.path, "A file of any format that is loaded")->required();
  diff->add_option("B", options->b.path, "The other file")->required();
  diff->add_option("--atol", options->atol, "Values that differ by up to this are equal")
      ->check(check_tolerance);
  diff->add_option("--rtol", options->rtol, "… and by up to this many times the second one")
      ->check(check_tolerance);
  diff->add_option("--section-a", options->a.section, "The part of a PyTorch file that is read");
  diff->add_option("--section-b", options->b.section, "The same for the other file");
  diff->add_flag("!--no-verify", options->a.verify,
                 "Read checkpoints with wrong checksums, which another program may have changed");
  diff->add_flag("--json", options->as_json, "Print one JSON object");
  diff->callback([options, &status] {
    options->b.verify = options->a.verify;
    try {
      status = diff_checkpoints(*options) ? 0 : 1;
    } catch (const std::exception& error) {
      std::string text = text_of(error);
      constexpr std::string_view kSection = " with --section ";
      if (const size_t at = text.rfind(kSection); at != text.npos)
        text.replace(at, kSection.size(), " with --section-a or --section-b ");
      print_error(Error(text));
      status = 2;
    }
  });
}

void add_rewriting(CLI::App* command, const std::shared_ptr<RewriteOptions>& options) {
  command->add_option("A", options->from.path, "A file of any format that is loaded")->required();
  command->add_option("B", options->to, "The file to write")->required();
  command->add_option("--to", options->format, "tenon or safetensors; by default the ending of B")
      ->check(CLI::IsMember({"tenon", "safetensors"}));
  command->add_option("--only", options->only,
                      "A regular expression: only tensors whose new names match");
  command
      ->add_option("--permute", options->permutations,
                   "PATTERN ORDER: permute the dimensions of the tensors that match and have as "
                   "many, before they are renamed: '/kernel$' 1,0")
      ->type_name("PATTERN ORDER");
  command
      ->add_option("--max-shard-size", options->max_shard_size,
                   "Bytes of values in a file at most: B becomes an index of several")
      ->check(check_whole_number);
  command->add_flag("--model-only", options->model_only,
                    "Leave out the other parts of a training run");
  command->add_flag("--force", options->force, "Overwrite B");
  command->add_flag("--json", options->as_json, "Print one JSON object");
  add_reading(command, options->from);
  command->callback([options] { rewrite_checkpoint(*options); });
}

}  // namespace

void add_checkpoint(CLI::App& app, int& status) {
  auto* checkpoint =
      app.add_subcommand("checkpoint", "Look into files of tensors, compare and convert them")
          ->require_subcommand(1);
  auto file = std::make_shared<FileChoice>();
  auto as_json = std::make_shared<bool>(false);
  auto* show = checkpoint->add_subcommand("show", "List keys, shapes, dtypes and wrappers");
  add_file(show, *file);
  add_reading(show, *file);
  show->add_flag("--json", *as_json, "Print one JSON object");
  show->callback([file, as_json, &status] {
    status = run_confined(file->path, [&] { show_checkpoint(*file, *as_json); });
  });
  auto* verify = checkpoint->add_subcommand("verify", "Check every byte against the checksums");
  add_file(verify, *file);
  verify->add_option("--section", file->section, "The part of a PyTorch file that is read");
  verify->add_flag("--json", *as_json, "Print one JSON object");
  verify->callback([file, as_json, &status] {
    try {
      status = run_confined(file->path, [&] { verify_checkpoint(*file, *as_json); });
    } catch (const Error& error) {
      if (*as_json) print_json({{"right", false}, {"error", text_of(error)}});
      throw;
    }
  });

  auto* stats = checkpoint->add_subcommand(
      "stats", "List the range, mean, standard deviation, NaNs and infinities of each tensor");
  add_file(stats, *file);
  auto only = std::make_shared<std::string>();
  stats->add_option("--only", *only, "A regular expression: only tensors whose names match");
  stats->add_flag("--json", *as_json, "Print one JSON object");
  add_reading(stats, *file);
  stats->callback([file, only, as_json, &status] {
    status = run_confined(file->path, [&] { print_stats(*file, *only, *as_json); });
  });

  add_diff(checkpoint, status);
  add_rewriting(checkpoint->add_subcommand(
                    "convert", "Write the tensors of A into B, a checkpoint or a safetensors file"),
                std::make_shared<RewriteOptions>());
  auto renaming = std::make_shared<RewriteOptions>();
  auto* rename = checkpoint->add_subcommand(
      "rename", "The same with other names, by regular expressions (ECMAScript)");
  rename
      ->add_option("--rule", renaming->replacements,
                   "PATTERN REPLACEMENT: replace in each name what the pattern matches; $1 is its "
                   "first group. Rules are applied one after the other")
      ->type_name("PATTERN REPLACEMENT")
      ->required();
  add_rewriting(rename, renaming);
}

void require_no_run(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return;
  const fs::path latest = fs::path(path) / kLatest;
  fs::path newest = fs::exists(latest, error) ? latest : fs::path();
  std::optional<int64_t> last;
  for (fs::directory_iterator entry(path, error), end; newest != latest && !error && entry != end;
       entry.increment(error)) {
    const auto step = step_of(entry->path().filename().native());
    if (step > last) last = step, newest = entry->path();
  }
  if (!newest.empty())
    throw CheckpointError(
        fmt::format("cannot load checkpoint '{}': it is a folder with checkpoints of a run: give "
                    "one of them, '{}'",
                    printable(path), printable(newest.native())));
}

TensorFile open_all(const FileChoice& file) {
  require_no_run(file.path);
  return open_all_tensors(file.path, file.section, file.verify);
}

void require_some(const Conversion& taken, const std::string& only, const TensorFile& file,
                  const std::string& path) {
  if (only.empty() || file.tensors.empty() || !taken.side().tensors.empty()) return;
  throw StateDictError(fmt::format(
      "--only '{}' matches no name of the {} tensors of '{}', which are named like \"{}\", without "
      "the segments of wrappers such as \"module.\"",
      printable(only), file.tensors.size(), printable(path), excerpt(file.tensors.front().key)));
}

std::string number_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{:.6g}", value);
}
json json_number(double value) {
  return std::isfinite(value) ? json(value) : json(number_of(value));
}
json json_value(const CheckpointValue& value) {
  if (value.is_text()) return value.text();
  json number = json::parse(value.str(), nullptr, false);
  return number.is_discarded() ? json(value.str()) : std::move(number);
}

void print_json(const json& value) {
  std::cout << value.dump(2, ' ', true, json::error_handler_t::replace) << "\n";
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> shown = rows;
  std::vector<size_t> widths;
  for (auto& row : shown)
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      if (widths.size() <= i) widths.push_back(0);
      if (i + 1 < row.size()) widths[i] = std::max(widths[i], row[i].size());
    }
  for (const auto& row : shown) {
    for (size_t i = 0; i < row.size(); ++i)
      std::cout << row[i]
                << (i + 1 < row.size() ? std::string(widths[i] + 2 - row[i].size(), ' ') : "");
    std::cout << "\n";
  }
}

}  // namespace tenon::tools
