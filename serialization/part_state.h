// The parts of a training run in a checkpoint: what is written of each, and how each is read.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/checkpoint_file.h>
#include <tenon/serialization/named_state.h>
#include <tenon/serialization/training_checkpoint.h>

namespace tenon {

// The group that says that a file is one of a training run: epoch and step.
inline constexpr const char* kProgressGroup = "@progress";

// Returns "optimizer" for "@optimizer", and optimizer "critic" for "@optimizer.critic".
std::string part_name(const std::string& group);
// Whether this version of Tenon writes such a group.
bool is_known_group(const std::string& group);

// Returns everything that a checkpoint of these parts holds.
std::vector<FileEntry> entries_of(const Checkpoint& run, std::optional<double> metric);
// Do what save and save_async do; the metric is stored beside the step.
void save_run(const std::filesystem::path& path, const Checkpoint& run,
              std::optional<double> metric, const SaveOptions& options);
PendingSave start_save(const std::filesystem::path& path, const Checkpoint& run,
                       std::optional<double> metric, const SaveOptions& options);
// Does what load does, but throws std::bad_alloc where the host has too little memory.
CheckpointReport load_run(const std::filesystem::path& path, Checkpoint& run,
                          const LoadOptions& options);
// Writes the error of a save that nobody asks for to the log.
void log_failed_save(const std::exception& error) noexcept;

// The numbers, texts and tensors of a group. Throws a CheckpointError.
CheckpointValues read_part(const std::filesystem::path& path, const VerifiedFile& file,
                           const std::string& group);

// Describes all groups of a file. Throws a CheckpointError.
std::vector<CheckpointPartInfo> describe_parts(const std::filesystem::path& path,
                                               const VerifiedFile& file);

// A load of all parts: `run` is changed by commit() alone.
class PreparedRun {
 public:
  PreparedRun(const std::filesystem::path& path, const VerifiedFile& file, Checkpoint& run,
              const LoadOptions& options);
  // Frees nothing of the file's memory; throws only as StagedLoad::commit does.
  CheckpointReport commit();

 private:
  using Groups = std::vector<std::string>;
  void prepare_models(const VerifiedFile& file, const LoadOptions& options);
  void prepare_optimizers(const VerifiedFile& file);
  void prepare_schedules(const VerifiedFile& file);
  void prepare_loaders(const VerifiedFile& file);
  void prepare_rest(const VerifiedFile& file);
  void check_unused();
  bool takes(const std::string& group);
  template <class Body>
  void fit(const std::string& group, Body&& body);
  [[noreturn]] void fail(const std::string& why) const;

  const std::filesystem::path path_;
  Checkpoint& run_;
  const bool strict_;
  Groups in_file_, taken_;
  std::optional<PreparedModel> model_, average_;
  std::map<std::string, std::string> file_names_;  // of parameters that the file calls differently
  std::map<const optim::Optimizer*, std::vector<size_t>> file_groups_;
  std::vector<std::function<void()>> commits_;
  CheckpointReport report_;
};

}  // namespace tenon
