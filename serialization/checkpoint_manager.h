// Saves a training run at intervals, keeps some of the files, and goes on from the newest.
//
//   tenon::CheckpointManager manager("runs/lenet", {.every_steps = 500, .on_signals = true});
//   tenon::Checkpoint run{.model = net, .optimizer = optimizer, .loader = loader};
//   manager.resume(run);
//   while (loader.state().epoch < 10) {
//     for (auto& [x, y] : loader) {
//       …                                   // a step of the optimizer
//       if (!manager.step(run)) return 0;   // SIGTERM: it is saved
//     }
//     manager.save(run, validation_loss());
//   }
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/serialization/training_checkpoint.h>

namespace tenon {

// Says when a manager saves, and which files stay.
struct CheckpointManagerOptions {
  // Saves when the number of steps is a multiple of it; with 0 steps do not matter.
  int64_t every_steps = 0;
  // Saves when so many minutes have passed since the last save; with 0 time does not matter.
  double every_minutes = 0;
  // Sets the number of the newest files that stay, at least 1.
  int64_t keep = 3;
  // Says which metric is the best: "min" the smallest, "max" the largest.
  std::string mode = "min";
  // Writes while the training goes on; the next save waits for it.
  bool async = true;
  // Lets SIGUSR1 and SIGTERM make the next step() save; after SIGTERM it returns false. A second
  // SIGTERM ends the process as usual; one that no step() has seen does so when the manager is
  // destroyed.
  bool on_signals = false;
  // Limits the bytes of a file, as SaveOptions::max_shard_size does: a file of more bytes is an
  // index, with its shards beside it, which go when it goes.
  uint64_t max_shard_size = 0;
};

// Saves a run into the files FOLDER/step-000000000500.h5 and so on; latest.h5 is a symbolic link to
// the newest, and best.h5 the one with the best metric, which stays when its other name is removed.
// Belongs to one thread, and the folder to one manager at a time; a forked child does not use it.
class TENON_API CheckpointManager {
 public:
  // Makes the folder if there is none, and removes what processes left that were killed while they
  // saved there. Throws a ValueError for an option outside its range and for a second manager with
  // `on_signals`, and a CheckpointError if nothing can be written there or another manager, of this
  // process or another one, uses the folder (as far as its file system knows locks).
  explicit CheckpointManager(const std::filesystem::path& folder,
                             const CheckpointManagerOptions& options = {});
  // Waits for the last save. An error that nobody has asked for is written to the log.
  ~CheckpointManager();
  CheckpointManager(const CheckpointManager&) = delete;
  CheckpointManager& operator=(const CheckpointManager&) = delete;

  // Loads the newest file that is whole, as load(path, run) does, and returns its report; nullopt
  // if there are no files. Damaged ones are skipped, and the log and skipped() name them. A file of
  // a later step that was written before latest.h5 counts as older: the run went back since then.
  // Throws a CheckpointError if the files cannot be listed or all are damaged, and if one cannot be
  // read here and now, which may be whole (no permission, too many open files, a faulty disk, no
  // process that reads HDF5, a newer format); a DeviceError if a device of the model fails; and
  // what load throws if the newest whole one does not fit.
  std::optional<CheckpointReport> resume(Checkpoint& run, const LoadOptions& options = {});

  // Counts a step of the run (++run.step), and saves if it is time to. Returns false once SIGTERM
  // has come, when the run is saved and written. Throws what save() throws, also for a save that
  // has been running since an earlier step; the step is counted, and saved if it is time to,
  // nevertheless.
  bool step(Checkpoint& run, std::optional<double> metric = std::nullopt);
  // Saves now. With the best metric so far, which is never NaN, the file becomes best.h5. Throws a
  // CheckpointError if the system refuses, also to read the metric of the best so far, and if the
  // folder has files of an earlier run and resume() was not called, because files of two runs would
  // be taken for one. The error of a save that has been running since an earlier step is thrown
  // after this one has begun.
  void save(const Checkpoint& run, std::optional<double> metric = std::nullopt);
  // Waits until the last save is written. Throws its error.
  void wait();

  // Returns the folder as an absolute path.
  const std::filesystem::path& folder() const { return folder_; }
  // Returns the newest file; nullopt if there is none. Of files that an earlier process wrote,
  // resume() finds out which is the newest that is whole: before that, nobody has looked into them.
  std::optional<std::filesystem::path> latest() const;
  // Returns the file with the best metric; nullopt if there is none.
  std::optional<std::filesystem::path> best() const;
  // Returns why resume() has skipped files, the newest first.
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct File {
    int64_t step;
    std::filesystem::path path;
    std::optional<double> metric;
    bool left = false;  // of a later step than newer ones: the run went back
  };

  void lock_folder();
  void require_own_process() const;
  std::optional<CheckpointReport> load_newest(Checkpoint& run, const LoadOptions& options);
  std::vector<File> files_in_folder() const;
  static void sort(std::vector<File>& files);
  bool is_time(int64_t step) const;
  void start(const Checkpoint& run, std::optional<double> metric);
  void read_best_metric();
  void publish(const File& file);

  const std::filesystem::path folder_;
  const CheckpointManagerOptions options_;
  std::vector<File> files_;  // of this run, the oldest first
  bool resumed_ = false, stop_ = false, best_known_ = false;
  std::optional<double> best_;
  std::vector<std::string> skipped_;
  std::optional<File> writing_;
  PendingSave pending_;
  Clock::time_point saved_at_ = Clock::now();
  int lock_ = -1;        // the folder, open and locked
  uint32_t generation_;  // of forks: a child of the process leaves the files alone
};

}  // namespace tenon
