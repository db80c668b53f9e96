// What the commands of `tenon checkpoint` have in common: which file, and numbers and names that
// are printed.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <tenon/serialization/checkpoint_value.h>
#include <tenon/serialization/conversion.h>
#include <tenon/serialization/tensor_copy.h>

namespace tenon::tools {

struct FileChoice {
  std::string path;
  std::string section;  // of a file of PyTorch
  bool verify = true;
};

// Throws a CheckpointError that names a file, if it is the folder of a CheckpointManager.
void require_no_run(const std::string& path);

// Opens it with all that it holds.
TensorFile open_all(const FileChoice& file);

// Throws a StateDictError if --only was given and has left nothing of a file that has tensors.
void require_some(const Conversion& taken, const std::string& only, const TensorFile& file,
                  const std::string& path);

// Returns "1.5", or for JSON 1.5, and "NaN", "Infinity" and "-Infinity", which JSON has no numbers
// for.
std::string number_of(double value);
nlohmann::json json_number(double value);
// The same of a number or a text of a training run; numbers are exact.
nlohmann::json json_value(const CheckpointValue& value);

// Prints a JSON value; names are escaped to ASCII.
void print_json(const nlohmann::json& value);

// Prints rows in columns; a column may hold anything, which is made printable.
void print_table(const std::vector<std::vector<std::string>>& rows);

// Calls f(values) for parts of the elements of a tensor on the host, in row-major order.
template <class T, class F>
void in_parts(const Tensor& tensor, F&& f) {
  constexpr int64_t kElements = 1 << 20;
  const Tensor flat = tensor.reshape({tensor.numel()});
  for (int64_t at = 0; at < flat.numel(); at += kElements)
    f(flat.narrow(0, at, std::min(kElements, flat.numel() - at)).to_vector<T>());
}

struct DiffOptions {
  FileChoice a, b;
  double atol = 0, rtol = 0;  // differences up to atol + rtol * |b| do not count
  bool as_json = false;
};
// Prints in what two files differ. Returns whether they are equal.
bool diff_checkpoints(const DiffOptions& options);

// Prints the range, mean, standard deviation, NaNs and infinities of each tensor.
void print_stats(const FileChoice& file, const std::string& only, bool as_json);

struct RewriteOptions {
  FileChoice from;
  std::string to;
  std::string format;  // "tenon" or "safetensors"; empty: the ending of `to` tells
  std::string only;    // LoadOptions::only
  // LoadOptions::rules: first the permutations ("1,0"), then the replacements.
  std::vector<std::pair<std::string, std::string>> permutations, replacements;
  uint64_t max_shard_size = 0;  // SaveOptions::max_shard_size
  bool model_only = false;      // without the parts of a training run
  bool force = false;           // overwrite
  bool as_json = false;
};
// Writes the tensors of a file into another one, and prints what was done.
void rewrite_checkpoint(const RewriteOptions& options);

}  // namespace tenon::tools
