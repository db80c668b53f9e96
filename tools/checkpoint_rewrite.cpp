// Tensors of one file in another: of another format, with other names, or fewer.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>

#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/serialization/conversion.h>

#include "checkpoint_commands.h"
#include "commands.h"

namespace tenon::tools {
namespace {

FileFormat format_of(const RewriteOptions& options) {
  const std::string ending = std::filesystem::path(options.to).extension().string();
  if (options.format == "tenon" || options.format == "safetensors")
    return options.format == "tenon" ? FileFormat::tenon : FileFormat::safetensors;
  if (ending == ".safetensors") return FileFormat::safetensors;
  if (ending == ".h5" || ending == ".hdf5") return FileFormat::tenon;
  throw ValueError(fmt::format(
      "'{}' does not end in .h5, .hdf5 or .safetensors: say which format to write, --to tenon or "
      "--to safetensors",
      printable(options.to)));
}

void require_free(const RewriteOptions& options) {
  std::error_code error;
  if (options.force || !std::filesystem::exists(std::filesystem::symlink_status(options.to, error)))
    return;
  throw ValueError(fmt::format("'{}' exists: --force overwrites it", printable(options.to)));
}

// "1,0"
Shape order_of(const std::string& text) {
  Shape order;
  const char *at = text.data(), *const end = at + text.size();
  for (bool more = true; more;) {
    int64_t number = 0;
    const auto read = std::from_chars(at, end, number);
    if (read.ec != std::errc() || order.size() == Shape::max_rank ||
        (read.ptr != end && *read.ptr != ','))
      throw ValueError(fmt::format("--permute: \"{}\" is not an order of dimensions such as 1,0",
                                   excerpt(text)));
    order.push_back(number);
    more = read.ptr != end;
    at = read.ptr + more;
  }
  return order;
}

LoadOptions conversion_options(const RewriteOptions& options) {
  LoadOptions conversion{.only = options.only};
  for (const auto& [pattern, order] : options.permutations)
    conversion.rules.push_back({.pattern = pattern, .permute = order_of(order)});
  for (const auto& [pattern, replacement] : options.replacements)
    conversion.rules.push_back({.pattern = pattern, .replacement = replacement});
  return conversion;
}

bool is_part(const std::string& key) { return key.starts_with('@'); }

// What is taken of the file, with where it is there.
struct Taken {
  KeySide side;
  std::vector<size_t> positions;
};
Taken take(const TensorFile& file, const RewriteOptions& options, FileFormat format) {
  const bool changes_names = !options.replacements.empty();
  Taken taken{{{}, file.wrappers}, {}};
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    const FileTensor& tensor = file.tensors[i];
    const bool part = file.native && is_part(tensor.key);
    if (part && options.model_only) continue;
    if (part && (format != FileFormat::tenon || changes_names || !options.only.empty()))
      throw ValueError(fmt::format(
          "'{}' is a training run, with {}, which {}: --model-only takes the model alone",
          printable(options.from.path), printable(tensor.key),
          format == FileFormat::tenon ? "has the names of parameters, too"
                                      : "a safetensors file does not hold"));
    taken.side.tensors.push_back({tensor.key, tensor.shape, tensor.dtype});
    taken.positions.push_back(i);
  }
  return taken;
}

// A pattern that is spelled wrong would leave all names as they were.
void warn_of_unused(const Conversion& conversion, const RewriteOptions& options) {
  for (const std::string& pattern : conversion.unused_rules()) {
    const bool permutes = std::any_of(options.permutations.begin(), options.permutations.end(),
                                      [&](const auto& rule) { return rule.first == pattern; });
    std::cerr << "tenon: warning: " << (permutes ? "--permute" : "--rule") << " '"
              << printable(pattern) << "' matches no name of '" << printable(options.from.path)
              << "'\n";
  }
}

}  // namespace

void rewrite_checkpoint(const RewriteOptions& options) {
  const FileFormat format = format_of(options);
  require_free(options);
  const TensorFile file = open_all(options.from);
  Taken taken = take(file, options, format);
  const Conversion conversion(taken.side, conversion_options(options));
  require_some(conversion, options.only, file, options.from.path);
  TensorSource source{conversion.side().tensors, file.wrappers, [&](size_t i) {
                        const size_t at = taken.positions[conversion.position(i)];
                        return conversion.apply(i, file.read(at));
                      }};
  size_t renamed = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < source.tensors.size(); ++i) {
    const FileTensor& from = file.tensors[taken.positions[conversion.position(i)]];
    if (!from.fault.empty())
      throw CheckpointError(
          fmt::format("'{}': tensor '{}' cannot be read: {}. Leave it out with --only",
                      printable(options.from.path), printable(from.key), printable(from.fault)));
    if (!(file.native && is_part(from.key)) && is_part(source.tensors[i].key))
      throw CheckpointError(
          fmt::format("tensor '{}' has a name for parts of a training run: "
                      "rename it with --rule",
                      printable(source.tensors[i].key)));
    renamed += from.key != source.tensors[i].key;
    bytes += static_cast<uint64_t>(from.shape.numel()) * size_of(from.dtype);
  }
  file.verify_rest();                    // before anything is written
  if (renamed) source.wrappers.reset();  // they are those of the old names
  write_tensors(options.to, format, source, {options.max_shard_size});
  warn_of_unused(conversion, options);
  if (options.as_json) {
    nlohmann::json names = nlohmann::json::array(), left_out = nlohmann::json::array();
    for (size_t i = 0; i < source.tensors.size(); ++i)
      names.push_back({{"from", file.tensors[taken.positions[conversion.position(i)]].key},
                       {"to", source.tensors[i].key}});
    for (const LeftOut& other : file.left_out)
      left_out.push_back({{"key", other.key}, {"why", other.why}});
    return print_json({{"format", name_of(format)},
                       {"tensors", std::move(names)},
                       {"left_out", std::move(left_out)}});
  }
  for (const LeftOut& other : file.left_out)
    std::cout << "left out: " << printable(other.key) << ": " << printable(other.why) << "\n";
  if (!options.replacements.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < source.tensors.size(); ++i)
      if (const std::string& from = file.tensors[taken.positions[conversion.position(i)]].key;
          from != source.tensors[i].key)
        rows.push_back({from, "-> " + source.tensors[i].key});
    print_table(rows);
  }
  std::cout << printable(options.to) << ": " << name_of(format) << " file, "
            << source.tensors.size() << (source.tensors.size() == 1 ? " tensor, " : " tensors, ")
            << human_bytes(bytes);
  if (renamed) std::cout << ", " << renamed << " renamed";
  std::cout << "\n";
}

}  // namespace tenon::tools
