#include <algorithm>
#include <cerrno>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/checkpoint_manager.h>
#include <tenon/serialization/file_names.h>
#include <tenon/serialization/part_state.h>
#include <tenon/serialization/shards.h>
#include <tenon/serialization/step_names.h>
#include <tenon/serialization/stop_signals.h>

namespace tenon {
namespace {

bool is_of_manager(const std::string& name) { return step_of(name).has_value(); }

[[noreturn]] void refuse_folder(const std::filesystem::path& folder, const std::string& why) {
  throw CheckpointError(fmt::format("CheckpointManager '{}': {}", printable(folder.native()), why));
}

// Runs body(); what the system refuses it becomes a CheckpointError that names the folder.
template <class Body>
auto naming_folder(const std::filesystem::path& folder, Body&& body) {
  try {
    return naming_lack_of_memory<CheckpointError>("CheckpointManager", folder, body);
  } catch (const std::filesystem::filesystem_error& error) {
    refuse_folder(folder, error.what());
  }
}

void log_lost(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& named) {
    log_failed_save(named);
  } catch (...) {
  }
}

}  // namespace

CheckpointManager::CheckpointManager(const std::filesystem::path& folder,
                                     const CheckpointManagerOptions& options)
    : folder_(naming_folder(folder, [&] { return absolute_path(folder); })),
      options_(options),
      generation_(fork_generation()) {
  const auto refuse = [](const char* what, const std::string& found, const char* wanted) {
    throw ValueError(
        fmt::format("CheckpointManager: {} is {}; it has to be {}", what, found, wanted));
  };
  if (options.keep < 1) refuse("keep", std::to_string(options.keep), "at least 1");
  if (options.every_steps < 0)
    refuse("every_steps", std::to_string(options.every_steps), "at least 0");
  if (!(options.every_minutes >= 0))
    refuse("every_minutes", fmt::format("{}", options.every_minutes), "at least 0");
  if (options.mode != "min" && options.mode != "max")
    refuse("mode", '"' + printable(options.mode) + '"', "\"min\" or \"max\"");
  naming_folder(folder_, [&] {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) refuse_folder(folder_, "cannot make the folder: " + error.message());
    require_can_save(folder_ / kBest);
    lock_folder();
    try {
      remove_left_overs(folder_, is_of_manager);
      remove_unused_shards(folder_, is_of_manager);
      files_ = files_in_folder();
      resumed_ = files_.empty();
      if (options.on_signals) StopSignals::watch();
    } catch (...) {
      close(lock_);
      throw;
    }
  });
}

// Two managers would remove each other's files. The system ends the lock with the process.
void CheckpointManager::lock_folder() {
  lock_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0 || flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  close(lock_);
  refuse_folder(folder_,
                "another CheckpointManager uses it, in this process, in another one or in a child "
                "that another one left behind. End that, or give another folder");
}

CheckpointManager::~CheckpointManager() {
  try {
    wait();
  } catch (const std::exception& error) {
    log_failed_save(error);
  }
  if (options_.on_signals) StopSignals::leave();
  // Forked children have the same lock, and may live longer.
  if (generation_ == fork_generation()) flock(lock_, LOCK_UN);
  close(lock_);
}

std::vector<CheckpointManager::File> CheckpointManager::files_in_folder() const {
  std::vector<File> files;
  std::error_code error;
  // Not std::filesystem::directory_iterator: that of libstdc++ ends the process where memory fails.
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(folder_.c_str()), closedir);
  while (opened) {
    errno = 0;
    const dirent* entry = readdir(opened.get());
    if (!entry) break;
    const auto step = step_of(entry->d_name);
    const std::filesystem::path path = folder_ / entry->d_name;
    if (step && !std::filesystem::is_directory(path, error)) files.push_back({*step, path, {}});
  }
  if (errno != 0)
    refuse_folder(folder_, "cannot list its files: " + std::system_category().message(errno));
  const std::filesystem::path latest = folder_ / kLatest;
  const auto newest = step_of(std::filesystem::read_symlink(latest, error).native());
  require_answer(error, latest);
  const auto written = std::filesystem::last_write_time(latest, error);
  require_answer(error, latest);
  for (File& file : files)
    if (newest && !error && file.step > *newest) {
      std::error_code gone;
      const auto before = std::filesystem::last_write_time(file.path, gone);
      require_answer(gone, file.path);
      file.left = !gone && before < written;
    }
  sort(files);
  return files;
}

// The oldest come first.
void CheckpointManager::sort(std::vector<File>& files) {
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return a.left != b.left ? a.left : a.step < b.step;
  });
}

// A child of a fork has the folder in common with its parent, and the lock guards nothing there.
void CheckpointManager::require_own_process() const {
  if (generation_ != fork_generation())
    refuse_folder(
        folder_,
        "it was made by the process that this one was forked from, which uses the folder. "
        "Make a CheckpointManager after the fork, with a folder of its own");
}

std::optional<CheckpointReport> CheckpointManager::resume(Checkpoint& run,
                                                          const LoadOptions& options) {
  require_own_process();
  return naming_folder(folder_, [&] { return load_newest(run, options); });
}

std::optional<CheckpointReport> CheckpointManager::load_newest(Checkpoint& run,
                                                               const LoadOptions& options) {
  wait();
  files_ = files_in_folder();
  skipped_.clear();
  while (!files_.empty()) {
    try {
      CheckpointReport report = load_run(files_.back().path, run, options);
      resumed_ = true;
      return report;
    } catch (const UnreadFileError& error) {
      // It may be whole, and the steps since the one before are not thrown away for a moment's
      // failure.
      refuse_folder(folder_,
                    fmt::format("whether a checkpoint is whole cannot be seen: {}. Try again, or "
                                "move it away to go on from the one before",
                                error.what()));
    } catch (const CheckpointError& error) {
      skipped_.emplace_back(error.what());
      log_message(TN_LOG_WARNING, "tenon",
                  fmt::format("skipped a damaged checkpoint: {}", error.what()));
      files_.pop_back();
    }
  }
  if (!skipped_.empty())
    refuse_folder(folder_, fmt::format("none of its {} checkpoints can be read; move them away to "
                                       "start again. The newest: {}",
                                       skipped_.size(), skipped_.front()));
  resumed_ = true;
  return std::nullopt;
}

bool CheckpointManager::is_time(int64_t step) const {
  if (options_.every_steps > 0 && step % options_.every_steps == 0) return true;
  return options_.every_minutes > 0 &&
         std::chrono::duration<double, std::ratio<60>>(Clock::now() - saved_at_).count() >=
             options_.every_minutes;
}

bool CheckpointManager::step(Checkpoint& run, std::optional<double> metric) {
  if (run.step == std::numeric_limits<int64_t>::max())
    throw ValueError("CheckpointManager: the step is the largest number that a step can have");
  ++run.step;
  const bool asked = options_.on_signals && StopSignals::take_save();
  stop_ = stop_ || (options_.on_signals && StopSignals::stop());
  const bool due = asked || stop_ || is_time(run.step);
  if (due)
    save(run, metric);
  else if (pending_.ready())
    wait();
  return !stop_;
}

void CheckpointManager::save(const Checkpoint& run, std::optional<double> metric) {
  std::exception_ptr earlier;
  try {
    wait();
  } catch (...) {
    earlier = std::current_exception();
  }
  try {
    start(run, metric);
    if (stop_) wait();
  } catch (...) {
    if (earlier) log_lost(earlier);  // the caller gets one of two errors
    throw;
  }
  if (earlier) std::rethrow_exception(earlier);
}

void CheckpointManager::start(const Checkpoint& run, std::optional<double> metric) {
  require_own_process();
  if (!resumed_)
    refuse_folder(folder_, fmt::format("it has {} checkpoints of an earlier run; call resume(run) "
                                       "first to go on, or give another folder",
                                       files_.size()));
  if (run.step < 0)
    throw ValueError(
        fmt::format("CheckpointManager: the step is {}; it has to be at least 0", run.step));
  naming_folder(folder_, [&] {
    File file{run.step, folder_ / name_of_step(run.step), metric};
    saved_at_ = Clock::now();
    if (options_.async) {
      pending_ = start_save(file.path, run, metric, {options_.max_shard_size});
      writing_ = std::move(file);
    } else {
      save_run(file.path, run, metric, {options_.max_shard_size});
      publish(file);
    }
  });
}

void CheckpointManager::wait() {
  if (generation_ != fork_generation()) return;
  const std::optional<File> file = std::exchange(writing_, std::nullopt);
  pending_.wait();
  if (file) naming_folder(folder_, [&] { publish(*file); });
}

void CheckpointManager::read_best_metric() {
  if (best_known_) return;
  try {
    if (is_there(folder_ / kBest)) {
      const VerifiedFile file(folder_ / kBest);
      file.verify_rest();
      const CheckpointValues values = read_part(folder_ / kBest, file, kProgressGroup);
      if (const CheckpointValue* metric = values.find("metric")) best_ = metric->number();
    }
  } catch (const UnreadFileError&) {
    throw;  // it may be whole: it stays
  } catch (const Error& error) {
    log_message(TN_LOG_WARNING, "tenon",
                fmt::format("the best checkpoint so far is damaged and will be replaced: {}",
                            error.what()));
  }
  best_known_ = true;
}

// A file has been written: the names follow, and then the oldest goes.
void CheckpointManager::publish(const File& file) {
  std::erase_if(files_, [&](const File& other) { return other.step == file.step; });
  for (File& other : files_) other.left = other.left || other.step > file.step;
  files_.push_back(file);
  sort(files_);
  std::exception_ptr unnamed;  // what is beyond `keep` goes nevertheless
  try {
    point_to(folder_ / kLatest, file.path);
  } catch (...) {
    unnamed = std::current_exception();
  }
  // Those before take part, too: where this threw, they have not.
  for (const File& other : files_) {
    if (!other.metric || std::isnan(*other.metric)) continue;
    read_best_metric();
    if (best_ && !(options_.mode == "min" ? *other.metric < *best_ : *other.metric > *best_))
      continue;
    give_another_name(folder_ / kBest, other.path);
    best_ = other.metric;
  }
  while (files_.size() > static_cast<size_t>(options_.keep)) {
    std::error_code error;
    std::filesystem::remove(files_.front().path, error);
    if (error)
      log_message(TN_LOG_WARNING, "tenon",
                  fmt::format("an old checkpoint stays, '{}' cannot be removed: {}",
                              printable(files_.front().path.native()), error.message()));
    files_.erase(files_.begin());
  }
  remove_unused_shards(folder_, is_of_manager);
  if (unnamed) std::rethrow_exception(unnamed);
}

std::optional<std::filesystem::path> CheckpointManager::latest() const {
  if (files_.empty()) return std::nullopt;
  return files_.back().path;
}

std::optional<std::filesystem::path> CheckpointManager::best() const {
  return naming_folder(folder_, [&]() -> std::optional<std::filesystem::path> {
    if (!is_there(folder_ / kBest)) return std::nullopt;
    return folder_ / kBest;
  });
}

}  // namespace tenon
