// One file from which a training goes on: the model with everything else that has a state.
//
//   tenon::Checkpoint run{.model = net, .optimizer = optimizer, .scheduler = scheduler,
//                         .scaler = scaler, .loader = loader};
//   if (resume) tenon::load("run.h5", run);
//   while (loader.state().epoch < 10) {
//     for (auto& [x, y] : loader) {
//       …                                           // a step
//       if (++run.step % 1000 == 0) tenon::save("run.h5", run);
//     }
//     ++run.epoch;
//   }
//
// docs/checkpoints.md describes the file, checkpoint_manager.h who saves at intervals.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/modules/fields.h>
#include <tenon/serialization/checkpoint_value.h>
#include <tenon/serialization/key_map.h>
#include <tenon/serialization/load_report.h>
#include <tenon/serialization/save_options.h>

namespace tenon {

namespace optim {
class Optimizer;
class SavedSchedule;
}  // namespace optim
namespace amp {
class GradScaler;
}
namespace data {
class DataLoader;
}

// One part of a checkpoint, which it does not own, or several with names of their own:
// `.optimizer = adam` or `.optimizer = {{"generator", adam}, {"critic", sgd}}`.
template <class T>
class CheckpointParts {
 public:
  // A part with its name, which is empty for a part that is the only one.
  struct Named {
    // Names a part.
    Named(std::string name, T& part) : name(std::move(name)), part(&part) {}
    std::string name;
    T* part;
  };
  // Makes a list without parts.
  CheckpointParts() = default;
  // Takes the only part of its kind.
  CheckpointParts(T& part) : parts_{Named("", part)} {}
  // Takes parts with their names.
  CheckpointParts(std::initializer_list<Named> parts) : parts_(parts) {}
  // Return iterators over the parts.
  typename std::vector<Named>::const_iterator begin() const { return parts_.begin(); }
  typename std::vector<Named>::const_iterator end() const { return parts_.end(); }

 private:
  std::vector<Named> parts_;
};

// A model of a checkpoint, which lives longer than the call: a temporary one does not compile.
struct CheckpointModel : nn::ModuleRef {
  // Refers to no model.
  CheckpointModel() = default;
  // Refer to a model.
  CheckpointModel(nn::ModuleRef model) : ModuleRef(model) {}
  template <class M>
    requires std::is_base_of_v<nn::ModuleTag, M>
  CheckpointModel(const M& model) : ModuleRef(model) {}
  template <class M>
    requires std::is_base_of_v<nn::ModuleTag, M>  // of an lvalue, M is a reference
  CheckpointModel(M&& model) = delete;
};

// Says of which parts a checkpoint consists; those that are not given are left out. All that are
// given have to live as long as it is used.
struct Checkpoint {
  // Names the model of the run.
  CheckpointModel model = {};
  // Names a second model, such as an AveragedModel of the first.
  CheckpointModel average = {};
  // Names the optimizers, which are saved with their parameters by the names in the model, so that
  // they fit a wrapped model, too, and groups in another order.
  CheckpointParts<optim::Optimizer> optimizer = {};
  // Names the schedulers.
  CheckpointParts<optim::SavedSchedule> scheduler = {};
  // Names the gradient scalers.
  CheckpointParts<amp::GradScaler> scaler = {};
  // Names the loaders, of which the next batch and the seed are saved.
  CheckpointParts<data::DataLoader> loader = {};
  // Saves the generator of all random operators, which manual_seed sets.
  bool random = true;
  // Counts the epochs, as the program does. Like the two below, it is written to the file, and set
  // by a load.
  int64_t epoch = 0;
  // Counts the steps.
  int64_t step = 0;
  // Holds values of the program's own.
  CheckpointValues user = {};
};

// Tells what a load did with each part.
struct TENON_API CheckpointReport {
  // The report of the model.
  LoadReport model;
  // The report of the average, if there is one.
  std::optional<LoadReport> average;
  // The parts that were loaded: "model", "optimizer", "random".
  std::vector<std::string> loaded;
  // Parts that were asked for and stay as they are, with the reason; empty if the load was strict.
  std::vector<std::string> missing;
  // Parts of the file that nobody asked for; empty if the load was strict.
  std::vector<std::string> unused;

  // Returns some lines: the parts, and the reports of the models.
  std::string str() const;
};
// Prints report.str().
TENON_API std::ostream& operator<<(std::ostream& out, const CheckpointReport& report);

// Writes all parts into one file, as save(path, model) does; `load(path, model)` reads the model of
// it. Throws a CheckpointError as that does, and a StateDictError for a parameter of an optimizer
// that the model does not have, and for two parts with one name.
TENON_API void save(const std::filesystem::path& path, const Checkpoint& run,
                    const SaveOptions& options = {});

// Loads all parts from a file, and sets epoch, step and user of `run`. Everything is read and
// checked before anything is changed: if it throws, all parts are as they were. Throws a
// CheckpointError if the file is missing or damaged, and a StateDictError if
//
//   - the file lacks a part, or has one that was not asked for. `.random = false` leaves the
//     generator as it is in any case;
//   - names or shapes of the model do not fit, as load(path, model) says;
//   - an optimizer, scheduler or scaler is of another type, an optimizer has other parameters or
//     groups, or a loader another batch size or another number of examples.
//
// With `.strict = false`, such parts stay as they are and the report names them; of a model or an
// optimizer with other parameters, those that it has in common with the file are loaded. Shapes of
// `model` that do not fit are an error even then, unless LoadOptions::only, which concerns nothing
// but the models, leaves those tensors out.
TENON_API CheckpointReport load(const std::filesystem::path& path, Checkpoint& run,
                                const LoadOptions& options = {});
// Does the same for parts that are listed in the call, if epoch, step and user do not matter.
TENON_API CheckpointReport load(const std::filesystem::path& path, Checkpoint&& run,
                                const LoadOptions& options = {});

// A save that runs while the training goes on.
class TENON_API PendingSave {
 public:
  // Makes one for no save: it is ready.
  PendingSave();
  PendingSave(PendingSave&&) noexcept;
  // Waits for its own save, as the destructor does, and takes over the other.
  PendingSave& operator=(PendingSave&&) noexcept;
  // Waits for the save. An error that nobody has asked for is written to the log.
  ~PendingSave();

  // Returns whether wait() would return at once.
  bool ready() const;
  // Waits until the file is written. Throws the error of the save, once.
  void wait();

 private:
  friend class AsyncSave;
  struct Work;
  explicit PendingSave(std::unique_ptr<Work> work);
  void finish() noexcept;
  std::unique_ptr<Work> work_;
};

// Saves a run as save does, while the training goes on: it copies the values of all parts to the
// memory of the host, for which it waits, and writes the file in a thread of its own. The parts may
// change meanwhile. Saves of one path are written in the order in which they began. Throws what
// save throws before it writes, and a CheckpointError if no thread can be started.
[[nodiscard]] TENON_API PendingSave save_async(const std::filesystem::path& path,
                                               const Checkpoint& run,
                                               const SaveOptions& options = {});

}  // namespace tenon
