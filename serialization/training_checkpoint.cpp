#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <ostream>
#include <system_error>
#include <thread>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/input_file.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/hdf5.h>
#include <tenon/serialization/part_state.h>
#include <tenon/serialization/save_turn.h>

namespace tenon {
namespace {

std::string cannot_save(const std::filesystem::path& path) {
  return fmt::format("cannot save checkpoint '{}': ", printable(path.native()));
}

std::optional<std::vector<std::string>> wrappers_in(const Checkpoint& run) {
  if (!run.model.self) return std::nullopt;
  return wrappers_of(run.model);
}

// Returns what is to be written; errors name the file.
std::vector<FileEntry> collect(const std::filesystem::path& path, const Checkpoint& run,
                               std::optional<double> metric) {
  try {
    return entries_of(run, metric);
  } catch (const StateDictError& error) {
    throw StateDictError(cannot_save(path) + error.what());
  } catch (const CheckpointError& error) {
    throw CheckpointError(cannot_save(path) + error.what());
  }
}

std::string line_of(const char* title, const std::vector<std::string>& entries) {
  std::string text;
  for (const std::string& entry : entries) text += (text.empty() ? "" : "; ") + entry;
  return entries.empty() ? "" : fmt::format("\n{}: {}", title, text);
}

}  // namespace

std::string CheckpointReport::str() const {
  std::string parts;
  for (const std::string& part : loaded) parts += (parts.empty() ? "" : ", ") + part;
  std::string text = "loaded " + (parts.empty() ? "nothing" : parts);
  text += line_of("left as it was", missing) + line_of("not used", unused);
  if (!model.matched.empty() || !model.renamed.empty()) text += "\nmodel: " + model.str();
  if (average) text += "\naverage: " + average->str();
  return text;
}
std::ostream& operator<<(std::ostream& out, const CheckpointReport& report) {
  return out << report.str();
}

void save_run(const std::filesystem::path& path, const Checkpoint& run,
              std::optional<double> metric, const SaveOptions& options) {
  naming_lack_of_memory<CheckpointError>("cannot save checkpoint", path, [&] {
    const SaveTurn turn(path);
    const std::vector<FileEntry> entries = collect(path, run, metric);
    turn.wait();
    write_checkpoint(path, entries, wrappers_in(run), options);
  });
}
void save(const std::filesystem::path& path, const Checkpoint& run, const SaveOptions& options) {
  save_run(path, run, std::nullopt, options);
}

CheckpointReport load_run(const std::filesystem::path& path, Checkpoint& run,
                          const LoadOptions& options) {
  std::optional<VerifiedFile> file(path);
  PreparedRun prepared(path, *file, run, options);
  file->verify_rest();
  if (!options.low_memory) file.reset();  // its memory is not needed any more
  return prepared.commit();
}
CheckpointReport load(const std::filesystem::path& path, Checkpoint& run,
                      const LoadOptions& options) {
  return naming_lack_of_memory<CheckpointError>("cannot load checkpoint", path,
                                                [&] { return load_run(path, run, options); });
}
CheckpointReport load(const std::filesystem::path& path, Checkpoint&& run,
                      const LoadOptions& options) {
  return load(path, run, options);
}

// ---- behind the training

void log_failed_save(const std::exception& error) noexcept {
  try {
    log_message(TN_LOG_ERROR, "tenon", error.what());
  } catch (const std::bad_alloc&) {
    log_message(TN_LOG_ERROR, "tenon", "a save failed");  // so short that it takes no memory
  }
}

struct PendingSave::Work {
  std::filesystem::path path;
  std::vector<FileEntry> entries;
  std::optional<std::vector<std::string>> wrappers;
  SaveOptions options;
  std::optional<SaveTurn> turn;
  std::exception_ptr error;
  std::atomic<bool> done = false;
  const uint32_t generation = fork_generation();
  std::thread thread;

  void write() noexcept {
    try {
      naming_lack_of_memory<CheckpointError>("cannot save checkpoint", path, [&] {
        turn->wait();
        write_checkpoint(path, entries, std::move(wrappers), options);
      });
    } catch (...) {
      error = std::current_exception();
    }
    turn.reset();
    entries = {};  // a copy of the whole run, which nobody needs until wait() is called
    done = true;
  }
};

PendingSave::PendingSave() = default;
PendingSave::PendingSave(std::unique_ptr<Work> work) : work_(std::move(work)) {}
PendingSave::PendingSave(PendingSave&&) noexcept = default;
PendingSave& PendingSave::operator=(PendingSave&& other) noexcept {
  finish();
  work_ = std::move(other.work_);
  return *this;
}
PendingSave::~PendingSave() { finish(); }

bool PendingSave::ready() const {
  return !work_ || work_->done || work_->generation != fork_generation();
}

void PendingSave::wait() {
  if (!work_) return;
  // The thread is in the parent of this process, which waits for it.
  if (work_->generation != fork_generation()) return static_cast<void>(work_.release());
  work_->thread.join();
  const std::unique_ptr<Work> work = std::move(work_);
  if (work->error) std::rethrow_exception(work->error);
}

void PendingSave::finish() noexcept {
  try {
    wait();
  } catch (const std::exception& error) {
    log_failed_save(error);
  }
}

class AsyncSave {
 public:
  static PendingSave start(const std::filesystem::path& path, const Checkpoint& run,
                           std::optional<double> metric, const SaveOptions& options);
};

namespace {

// Handlers run in the opposite order. So HDF5, which a save uses, ends after the saves.
void end_saves_before_hdf5() {
  static std::once_flag once;
  std::call_once(once, [] {
    const h5::Session started;
    std::atexit(wait_for_all_saves);
  });
}

}  // namespace

PendingSave AsyncSave::start(const std::filesystem::path& path, const Checkpoint& run,
                             std::optional<double> metric, const SaveOptions& options) {
  return naming_lack_of_memory<CheckpointError>("cannot save checkpoint", path, [&] {
    end_saves_before_hdf5();
    auto work = std::make_unique<PendingSave::Work>();
    const NoGrad not_recorded;
    work->path = absolute_path(path);  // where it leads now
    work->options = options;
    work->turn.emplace(path);
    work->entries = collect(path, run, metric);
    work->wrappers = wrappers_in(run);
    for (FileEntry& entry : work->entries) {
      const Tensor& tensor = entry.tensor;
      if (!tensor.defined()) continue;  // the save says so
      entry.tensor =
          tensor.device().type() == "cpu" ? tensor.detach().clone() : tensor.detach().to(Device());
    }
    for (FileEntry& entry : work->entries)
      if (entry.tensor.defined()) entry.tensor.wait();
    try {
      work->thread = std::thread([work = work.get()] { work->write(); });
    } catch (const std::system_error& error) {
      throw CheckpointError(
          fmt::format("{}no thread for it can be started: {}", cannot_save(path), error.what()));
    }
    return PendingSave(std::move(work));
  });
}

PendingSave start_save(const std::filesystem::path& path, const Checkpoint& run,
                       std::optional<double> metric, const SaveOptions& options) {
  return AsyncSave::start(path, run, metric, options);
}
PendingSave save_async(const std::filesystem::path& path, const Checkpoint& run,
                       const SaveOptions& options) {
  return AsyncSave::start(path, run, std::nullopt, options);
}

}  // namespace tenon
