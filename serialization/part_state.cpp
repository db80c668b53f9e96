#include <algorithm>
#include <array>
#include <memory>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/factories.h>
#include <tenon/core/format.h>
#include <tenon/core/random.h>
#include <tenon/data/loader.h>
#include <tenon/modules/optim/grad_scaler.h>
#include <tenon/serialization/loader_state.h>
#include <tenon/serialization/part_state.h>
#include <tenon/serialization/ties.h>
#include <tenon/serialization/value_text.h>

namespace tenon {
namespace {

constexpr const char *kOptimizer = "@optimizer", *kScheduler = "@scheduler", *kScaler = "@scaler",
                     *kLoader = "@loader", *kAverage = "@average", *kRandom = "@random",
                     *kUser = "@user";

std::string group_of(const char* kind, const std::string& name) {
  return name.empty() ? kind : fmt::format("{}.{}", kind, name);
}

// ---- saving

void add_values(std::vector<FileEntry>& entries, const std::string& group,
                const CheckpointValues& values) {
  if (const char* fault = fault_of_key(group.substr(1)))
    throw CheckpointError(
        fmt::format("cannot store the part {}: {}. Rename it", part_name(group), fault));
  for (const FileEntry& other : entries)
    if (other.group == group && other.key == kValuesKey)
      throw StateDictError(
          fmt::format("there are two parts of the name {}; give each its own", part_name(group)));
  if (values.contains(kValuesKey))
    throw CheckpointError(fmt::format(
        "cannot store a value \"{}\" of the part {}: the file has all numbers and texts of a part "
        "under this name. Rename it",
        kValuesKey, part_name(group)));
  const std::string text = values_to_json(values);
  entries.push_back({group, kValuesKey,
                     from_host(text.data(), u8, {static_cast<int64_t>(text.size())},
                               {.dtype = u8, .device = Device()})});
  for (const auto& [name, value] : values)
    if (value.is_tensor()) entries.push_back({group, name, value.tensor()});
}

}  // namespace

std::string part_name(const std::string& group) {
  const size_t dot = group.find('.');
  if (dot == group.npos) return printable(group.substr(1));
  return fmt::format("{} \"{}\"", printable(group.substr(1, dot - 1)),
                     printable(group.substr(dot + 1)));
}

bool is_known_group(const std::string& group) {
  const std::string kind = group.substr(0, group.find('.'));
  if (kind != group)
    return kind == kOptimizer || kind == kScheduler || kind == kScaler || kind == kLoader;
  for (const char* known :
       {kOptimizer, kScheduler, kScaler, kLoader, kAverage, kRandom, kUser, kProgressGroup})
    if (group == known) return true;
  return false;
}

namespace {
// The rate that a scheduler has come to is in its optimizer.
void require_its_optimizer(const Checkpoint& run, const std::string& name,
                           const optim::SavedSchedule& scheduler) {
  for (const auto& [other, optimizer] : run.optimizer)
    if (optimizer == &scheduler.optimizer()) return;
  throw StateDictError(
      fmt::format("cannot store {}: its optimizer, which has the rates that it has come to, is not "
                  "among the parts. Give it as .optimizer",
                  part_name(group_of(kScheduler, name))));
}
}  // namespace

std::vector<FileEntry> entries_of(const Checkpoint& run, std::optional<double> metric) {
  std::vector<FileEntry> entries;
  if (run.model.self)
    for (const auto& [key, tensor] : nn::state_dict(run.model))
      entries.push_back({"", key, tensor});
  if (run.average.self)
    for (const auto& [key, tensor] : nn::state_dict(run.average))
      entries.push_back({kAverage, key, tensor});
  const ParameterNames names(run.model);
  for (const auto& [name, part] : run.optimizer)
    add_values(entries, group_of(kOptimizer, name), optimizer_values(*part, names));
  for (const auto& [name, part] : run.scheduler) {
    require_its_optimizer(run, name, *part);
    add_values(entries, group_of(kScheduler, name), schedule_values(part->state_dict()));
  }
  for (const auto& [name, part] : run.scaler)
    add_values(entries, group_of(kScaler, name), schedule_values(part->state_dict()));
  for (const auto& [name, part] : run.loader)
    add_values(entries, group_of(kLoader, name), loader_values(*part));
  if (run.random) {
    const RandomState state = random_state();
    add_values(entries, kRandom, {{"seed", state.seed}, {"offset", state.offset}});
  }
  CheckpointValues progress{{"epoch", run.epoch}, {"step", run.step}};
  if (metric) progress["metric"] = *metric;
  add_values(entries, kProgressGroup, progress);
  if (!run.user.empty()) add_values(entries, kUser, run.user);
  return entries;
}

// ---- loading

namespace {

[[noreturn]] void refuse_part(const std::filesystem::path& path, const std::string& group,
                              const std::string& why) {
  throw CheckpointError(fmt::format("cannot load checkpoint '{}': the part {}: {}",
                                    printable(path.native()), part_name(group), why));
}

std::vector<StoredTensor> tensors_of(const std::filesystem::path& path, const VerifiedFile& file,
                                     const std::string& group) {
  try {
    return file.group(group);
  } catch (const NamedFileError&) {
    throw;
  } catch (const CheckpointError& error) {
    refuse_part(path, group, error.what());
  }
}

// Returns numbers and texts.
CheckpointValues numbers_of(const std::filesystem::path& path, const VerifiedFile& file,
                            const std::string& group, const std::vector<StoredTensor>& tensors) {
  const auto text = std::find_if(tensors.begin(), tensors.end(),
                                 [](auto& tensor) { return tensor.key == kValuesKey; });
  if (text == tensors.end()) refuse_part(path, group, fmt::format("it has no \"{}\"", kValuesKey));
  if (text->dtype != u8) refuse_part(path, group, "its values are no text");
  CheckpointValues values;
  try {
    std::string json(text->bytes, '\0');  // no longer than the file
    file.read(*text, json.data());
    values = values_from_json(json);
  } catch (const NamedFileError&) {
    throw;
  } catch (const CheckpointError& error) {
    refuse_part(path, group, error.what());
  }
  for (const StoredTensor& tensor : tensors)
    if (values.contains(tensor.key))
      refuse_part(path, group, fmt::format("it has \"{}\" twice", printable(tensor.key)));
  return values;
}

}  // namespace

CheckpointValues read_part(const std::filesystem::path& path, const VerifiedFile& file,
                           const std::string& group) {
  const std::vector<StoredTensor> tensors = tensors_of(path, file, group);
  CheckpointValues values = numbers_of(path, file, group, tensors);
  for (const StoredTensor& tensor : tensors)
    if (tensor.key != kValuesKey) values[tensor.key] = read_stored(path, file, tensor);
  return values;
}

std::vector<CheckpointPartInfo> describe_parts(const std::filesystem::path& path,
                                               const VerifiedFile& file) {
  std::vector<CheckpointPartInfo> parts;
  for (const std::string& group : file.contents().groups) {
    CheckpointPartInfo& part = parts.emplace_back();
    part.name = group.substr(1);
    part.known = is_known_group(group);
    if (!part.known) continue;
    const std::vector<StoredTensor> tensors = tensors_of(path, file, group);
    if (group != kAverage) part.values = numbers_of(path, file, group, tensors);
    for (const StoredTensor& tensor : tensors)
      if (tensor.key != kValuesKey)
        part.tensors.push_back({tensor.key, tensor.shape, tensor.dtype});
  }
  return parts;
}

PreparedRun::PreparedRun(const std::filesystem::path& path, const VerifiedFile& file,
                         Checkpoint& run, const LoadOptions& options)
    : path_(path), run_(run), strict_(options.strict) {
  in_file_ = file.contents().groups;
  prepare_models(file, options);
  prepare_optimizers(file);
  prepare_schedules(file);
  prepare_loaders(file);
  prepare_rest(file);
  check_unused();
}

void PreparedRun::fail(const std::string& why) const {
  throw StateDictError(fmt::format(
      "cannot load checkpoint '{}': {}{}", printable(path_.native()), why,
      strict_ ? ". Load with .strict = false to take what fits and leave the rest" : ""));
}

// Returns whether the file has a part that was asked for.
bool PreparedRun::takes(const std::string& group) {
  taken_.push_back(group);
  if (std::find(in_file_.begin(), in_file_.end(), group) != in_file_.end()) return true;
  std::string found;
  for (const std::string& other : in_file_)
    if (other != kProgressGroup) found += (found.empty() ? "" : ", ") + part_name(other);
  const std::string text = fmt::format("the file has no {}", part_name(group));
  if (strict_)
    fail(fmt::format("{} was asked for, and {}; it has {}", part_name(group), text,
                     found.empty() ? "a model alone, or nothing" : found));
  report_.missing.push_back(fmt::format("{}: {}", part_name(group), text));
  return false;
}

// Runs body(), which prepares a part. If it does not fit, the load fails, or the part is left.
template <class Body>
void PreparedRun::fit(const std::string& group, Body&& body) {
  std::string why;
  try {
    body();
    report_.loaded.push_back(part_name(group));
    return;
  } catch (const StateDictError& error) {
    why = fmt::format("{}: {}", part_name(group), error.what());
  }
  if (strict_) fail(why);
  report_.missing.push_back(why);
}

void PreparedRun::prepare_models(const VerifiedFile& file, const LoadOptions& options) {
  const ImageContents& contents = file.contents();
  if (run_.model.self) {
    model_.emplace(path_, file, contents.tensors, contents.wrappers, run_.model, options);
    model_->check(path_);
    for (auto [from, to] : model_->map.pairs)
      file_names_[model_->staged.targets()[to].name] = contents.tensors[from].key;
    report_.loaded.emplace_back("model");
  } else if (!contents.tensors.empty()) {
    if (strict_) fail("the file has a model, and no .model was given");
    report_.unused.emplace_back("model");
  }
  if (!run_.average.self || !takes(kAverage)) return;
  fit(kAverage, [&] {
    PreparedModel prepared(path_, file, file.group(kAverage), std::nullopt, run_.average, options);
    prepared.check(path_);
    if (model_) check_ties_between(model_->map, model_->staged, prepared.map, prepared.staged);
    average_ = std::move(prepared);  // only what fits is committed
  });
}

void PreparedRun::prepare_optimizers(const VerifiedFile& file) {
  const ParameterNames names(run_.model);
  for (const auto& [name, part] : run_.optimizer) {
    const std::string group = group_of(kOptimizer, name);
    if (!takes(group)) continue;
    fit(group, [&, part = part] {
      FittedOptimizer fitted =
          fit_optimizer(*part, read_part(path_, file, group), names, file_names_, strict_);
      commits_.push_back(part->prepare_load(fitted.state));
      file_groups_[part] = std::move(fitted.file_group);
      for (const std::string& left : fitted.left)
        report_.missing.push_back(fmt::format("{}: {}", part_name(group), left));
    });
  }
}

void PreparedRun::prepare_schedules(const VerifiedFile& file) {
  for (const auto& [name, part] : run_.scheduler) {
    const std::string group = group_of(kScheduler, name);
    if (!takes(group)) continue;
    fit(group, [&, part = part] {
      const CheckpointValues values = read_part(path_, file, group);
      const std::string type = values.at("type").text();
      if (type != part->name())
        throw StateDictError(
            fmt::format("it is of type {} in the file and {} here", printable(type), part->name()));
      commits_.push_back(
          part->prepare_load(schedule_state(values, file_groups_[&part->optimizer()])));
    });
  }
  for (const auto& [name, part] : run_.scaler) {
    const std::string group = group_of(kScaler, name);
    if (!takes(group)) continue;
    fit(group, [&, part = part] {
      commits_.push_back(part->prepare_load(schedule_state(read_part(path_, file, group))));
    });
  }
}

void PreparedRun::prepare_loaders(const VerifiedFile& file) {
  for (const auto& [name, part] : run_.loader) {
    const std::string group = group_of(kLoader, name);
    if (!takes(group)) continue;
    fit(group, [&, part = part] {
      const CheckpointValues there = read_part(path_, file, group);
      require_same_order(there, loader_values(*part));
      try {
        commits_.push_back(part->prepare_state(
            {.epoch = there.at("epoch").natural(), .position = there.at("position").whole()},
            there.at("seed").natural()));
      } catch (const ValueError& error) {
        throw StateDictError(error.what());
      }
    });
  }
}

void PreparedRun::prepare_rest(const VerifiedFile& file) {
  taken_.insert(taken_.end(), {kUser, kRandom, kProgressGroup});
  const auto has = [&](const char* group) {
    return std::find(in_file_.begin(), in_file_.end(), group) != in_file_.end();
  };
  if (run_.random && takes(kRandom))
    fit(kRandom, [&] {
      const CheckpointValues values = read_part(path_, file, kRandom);
      const RandomState state{.seed = values.at("seed").natural(),
                              .offset = values.at("offset").natural()};
      commits_.emplace_back([state] { set_random_state(state); });
    });
  if (has(kProgressGroup)) {
    const CheckpointValues values = read_part(path_, file, kProgressGroup);
    try {
      commits_.emplace_back(
          [this, epoch = values.at("epoch").whole(), step = values.at("step").whole()] {
            run_.epoch = epoch, run_.step = step;
          });
    } catch (const StateDictError& error) {
      fail(fmt::format("{}: {}", part_name(kProgressGroup), error.what()));
    }
  }
  auto user = std::make_shared<CheckpointValues>();
  if (has(kUser)) *user = read_part(path_, file, kUser);
  commits_.emplace_back([this, user] { std::swap(run_.user, *user); });
}

void PreparedRun::check_unused() {
  for (const std::string& group : in_file_)
    if (std::find(taken_.begin(), taken_.end(), group) == taken_.end())
      report_.unused.push_back(part_name(group));
  if (!strict_ || report_.unused.empty()) return;
  std::string names;
  for (const std::string& name : report_.unused) names += (names.empty() ? "" : ", ") + name;
  fail(fmt::format("the file has parts that were not asked for: {}", names));
}

CheckpointReport PreparedRun::commit() {
  if (model_) model_->commit(path_);
  if (average_) average_->commit(path_);
  for (auto& finish : commits_) finish();
  if (model_) report_.model = std::move(model_->map.report);
  if (average_) report_.average = std::move(average_->map.report);
  return std::move(report_);
}

}  // namespace tenon
