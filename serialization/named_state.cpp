#include <algorithm>
#include <charconv>
#include <set>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/serialization/named_state.h>

namespace tenon {
namespace {

constexpr std::string_view kGroups = "param_groups.", kState = "state.";

// Splits "12.rest" into 12 and "rest". Returns false for any other text.
bool split_number(std::string_view text, size_t& number, std::string_view& rest) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop == end || *stop != '.') return false;
  rest = text.substr(static_cast<size_t>(stop - text.data()) + 1);
  return true;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMax = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMax; ++i)
    text += fmt::format("{}\"{}\"", i ? ", " : "", printable(names[i]));
  return names.size() > kMax ? fmt::format("{} and {} more", text, names.size() - kMax) : text;
}

// What the values of a file say about an optimizer.
struct StoredOptimizer {
  // For each group its options ("lr") and parameters.
  std::vector<std::map<std::string, double, std::less<>>> options;
  std::vector<std::vector<std::string>> params;
  // For each parameter what is known of it ("exp_avg").
  std::map<std::string, std::map<std::string, const CheckpointValue*>, std::less<>> states;
};

StoredOptimizer read_optimizer(const CheckpointValues& values) {
  StoredOptimizer stored;
  std::vector<std::map<size_t, std::string>> params;  // of each group, by position
  auto unexpected = [](const std::string& name) {
    throw StateDictError(fmt::format("unexpected \"{}\"", printable(name)));
  };
  for (const auto& [name, value] : values) {
    size_t group = 0, position = 0;
    std::string_view what;
    if (!name.starts_with(kGroups)) continue;
    // No optimizer has more groups than the file has values.
    if (!split_number(std::string_view(name).substr(kGroups.size()), group, what) ||
        group >= values.size())
      unexpected(name);
    if (stored.options.size() <= group) {
      stored.options.resize(group + 1);
      params.resize(group + 1);
    }
    if (!what.starts_with("params.")) {
      stored.options[group].emplace(what, value.number());
      continue;
    }
    const std::string with_dot = std::string(what.substr(7)) + ".";
    std::string_view rest;
    if (!split_number(with_dot, position, rest) || !rest.empty() ||
        !params[group].emplace(position, value.text()).second)
      unexpected(name);
    if (!stored.states.try_emplace(value.text()).second)
      throw StateDictError(
          fmt::format("the parameter \"{}\" is there twice", printable(value.text())));
  }
  for (size_t g = 0; g < params.size(); ++g) {
    std::vector<std::string>& names = stored.params.emplace_back();
    for (auto& [position, name] : params[g]) {
      if (position != names.size())
        throw StateDictError(fmt::format("group {} has no parameter {}", g, names.size()));
      names.push_back(std::move(name));
    }
  }
  for (const auto& [name, value] : values) {
    if (name == "type" || name.starts_with(kGroups)) continue;
    if (!name.starts_with(kState)) unexpected(name);
    // The longest name of a parameter with which it begins: both may have dots.
    const std::string_view rest = std::string_view(name).substr(kState.size());
    auto owner = stored.states.end();
    size_t dot = rest.size();
    while (owner == stored.states.end() && dot != 0 &&
           (dot = rest.rfind('.', dot - 1)) != rest.npos)
      owner = stored.states.find(rest.substr(0, dot));
    if (owner == stored.states.end()) unexpected(name);
    owner->second.emplace(rest.substr(dot + 1), &value);
  }
  return stored;
}

// Brings what is stored to the numbers of the parameters and groups of one optimizer.
class OptimizerFit {
 public:
  OptimizerFit(optim::Optimizer& optimizer, const StoredOptimizer& stored,
               const std::vector<std::vector<std::string>>& names,
               const std::map<std::string, std::string>& file_names, bool strict)
      : optimizer_(optimizer), stored_(stored), strict_(strict) {
    if (!strict) present_ = optimizer.state_dict();
    for (const auto& aliases : names) {
      shown_.push_back(aliases.front());
      in_file_.push_back(find(aliases, file_names));
    }
  }

  FittedOptimizer result() {
    check_parameters();
    size_t first = 0;
    for (size_t g = 0; g < optimizer_.num_groups(); ++g) {
      const size_t count = optimizer_.params(g).size();
      add_group(g, first, count);
      for (size_t i = 0; i < count; ++i) add_parameter(first + i, optimizer_.params(g)[i]);
      first += count;
    }
    fitted_.state.give_memory = true;  // it was read for this
    return std::move(fitted_);
  }

 private:
  // Returns the name in the file; empty if it has none of the names.
  std::string find(const std::vector<std::string>& aliases,
                   const std::map<std::string, std::string>& file_names) const {
    for (const std::string& alias : aliases) {
      const auto renamed = file_names.find(alias);
      const std::string& name = renamed == file_names.end() ? alias : renamed->second;
      if (stored_.states.contains(name)) return name;
    }
    return "";
  }

  void check_parameters() {
    std::vector<std::string> missing, unexpected;
    for (size_t i = 0; i < shown_.size(); ++i)
      if (in_file_[i].empty()) missing.push_back(shown_[i]);
    const std::set<std::string> used(in_file_.begin(), in_file_.end());
    for (const auto& [name, state] : stored_.states)
      if (!used.contains(name)) unexpected.push_back(name);
    std::string text;
    if (!missing.empty())
      text += fmt::format("the file has no state of the parameters {}", listed(missing));
    if (!unexpected.empty())
      text += fmt::format("{}this optimizer does not have the parameters {} of the file",
                          text.empty() ? "" : ", and ", listed(unexpected));
    if (text.empty()) return;
    if (strict_) throw StateDictError(text + ". Give the optimizer the parameters that it had");
    fitted_.left.push_back(text);
  }

  // Returns the group of the file that has the same parameters.
  size_t same_group(size_t first, size_t count) const {
    std::vector<std::string> wanted(in_file_.begin() + static_cast<std::ptrdiff_t>(first),
                                    in_file_.begin() + static_cast<std::ptrdiff_t>(first + count));
    if (optimizer_.order_counts()) {
      const auto found = std::find(stored_.params.begin(), stored_.params.end(), wanted);
      return found == stored_.params.end() ? SIZE_MAX
                                           : static_cast<size_t>(found - stored_.params.begin());
    }
    std::sort(wanted.begin(), wanted.end());
    for (size_t g = 0; g < stored_.params.size(); ++g) {
      std::vector<std::string> params = stored_.params[g];
      std::sort(params.begin(), params.end());
      if (params == wanted) return g;
    }
    return SIZE_MAX;
  }

  void add_group(size_t group, size_t first, size_t count) {
    const size_t from = same_group(first, count);
    const std::string prefix = fmt::format("{}{}.", kGroups, group);
    fitted_.file_group.push_back(from);
    if (from != SIZE_MAX) {
      fitted_.state.numbers.emplace_back(prefix + "params", static_cast<double>(count));
      for (const auto& [option, value] : stored_.options[from])
        fitted_.state.numbers.emplace_back(prefix + option, value);
      return;
    }
    const std::string text = fmt::format(
        "no group of the file has the parameters of group {} here{}", group,
        optimizer_.order_counts() ? ", in the same order, which counts for this optimizer" : "");
    if (strict_)
      throw StateDictError(text + ". Group the parameters as they were when it was saved");
    fitted_.left.push_back(text + "; its options stay");
    keep(prefix);
  }

  // Takes what the optimizer has now.
  void keep(const std::string& prefix) {
    for (const auto& [key, value] : present_.numbers)
      if (key.starts_with(prefix)) fitted_.state.numbers.emplace_back(key, value);
    for (const auto& [key, tensor] : present_.tensors)
      if (key.starts_with(prefix)) fitted_.state.tensors.set(key, tensor);
  }

  void add_parameter(size_t index, const Tensor& parameter) {
    const std::string prefix = fmt::format("{}{}.", kState, index);
    const auto state = stored_.states.find(in_file_[index]);
    if (state == stored_.states.end()) return keep(prefix);
    for (const auto& [what, value] : state->second) {
      if (!value->is_tensor()) {
        fitted_.state.numbers.emplace_back(prefix + what, value->number());
        continue;
      }
      const Tensor& tensor = value->tensor();
      if (!optimizer_.order_counts() && tensor.shape() != parameter.shape())
        throw StateDictError(fmt::format(
            "\"{}\" of the parameter \"{}\" has shape {}, and the parameter {}", printable(what),
            printable(shown_[index]), tensor.shape(), parameter.shape()));
      fitted_.state.tensors.set(prefix + what, tensor);
    }
  }

  optim::Optimizer& optimizer_;
  const StoredOptimizer& stored_;
  const bool strict_;
  optim::OptimizerState present_;
  std::vector<std::string> shown_, in_file_;  // names here and in the file, by position
  FittedOptimizer fitted_;
};

}  // namespace

ParameterNames::ParameterNames(nn::ModuleRef model) : known_(model.self != nullptr) {
  if (!known_) return;
  for (const nn::StateEntry& entry : nn::state_entries(model))
    if (!entry.is_buffer) names_[entry.tensor.impl().get()].push_back(entry.name);
}

std::vector<std::vector<std::string>> ParameterNames::of(const optim::Optimizer& optimizer) const {
  std::vector<std::vector<std::string>> names;
  for (size_t g = 0; g < optimizer.num_groups(); ++g)
    for (size_t i = 0; i < optimizer.params(g).size(); ++i) {
      const Tensor& parameter = optimizer.params(g)[i];
      const auto found = names_.find(parameter.impl().get());
      if (known_ && found == names_.end())
        throw StateDictError(fmt::format(
            "parameter {} of group {}, of shape {}, is not one of the model, so it has no name: "
            "give the model that has all parameters of the optimizer",
            i, g, parameter.shape()));
      names.push_back(known_ ? found->second
                             : std::vector<std::string>{std::to_string(names.size())});
    }
  return names;
}

CheckpointValues optimizer_values(optim::Optimizer& optimizer, const ParameterNames& known) {
  const auto names = known.of(optimizer);
  CheckpointValues values{{"type", optimizer.name()}};
  size_t index = 0;
  for (size_t g = 0; g < optimizer.num_groups(); ++g)
    for (size_t i = 0; i < optimizer.params(g).size(); ++i)
      values[fmt::format("{}{}.params.{}", kGroups, g, i)] = names[index++].front();
  // "state.3.exp_avg" becomes "state.fc1.weight.exp_avg".
  auto named = [&](const std::string& key) {
    size_t at = 0;
    std::string_view what;
    if (!key.starts_with(kState) ||
        !split_number(std::string_view(key).substr(kState.size()), at, what))
      return key;
    return fmt::format("{}{}.{}", kState, names.at(at).front(), what);
  };
  const optim::OptimizerState state = optimizer.state_dict();
  for (const auto& [key, number] : state.numbers)
    if (!(key.starts_with(kGroups) && key.ends_with(".params"))) values[named(key)] = number;
  for (const auto& [key, tensor] : state.tensors) values[named(key)] = tensor;
  return values;
}

FittedOptimizer fit_optimizer(optim::Optimizer& optimizer, const CheckpointValues& values,
                              const ParameterNames& names,
                              const std::map<std::string, std::string>& file_names, bool strict) {
  const std::string type = values.at("type").text();
  if (type != optimizer.name())
    throw StateDictError(fmt::format("it is of type {} in the file and {} here. Make {} to go on",
                                     printable(type), optimizer.name(), printable(type)));
  const StoredOptimizer stored = read_optimizer(values);
  return OptimizerFit(optimizer, stored, names.of(optimizer), file_names, strict).result();
}

CheckpointValues schedule_values(const optim::SchedulerState& state) {
  CheckpointValues values;
  for (const auto& [key, number] : state.numbers) values[key] = number;
  for (const auto& [key, text] : state.texts) values[key] = text;
  return values;
}

optim::SchedulerState schedule_state(const CheckpointValues& values,
                                     const std::vector<size_t>& file_group) {
  // "schedulers.0.base_lrs.1": the rate of group 1.
  auto moved = [&](const std::string& key) {
    const size_t dot = key.rfind('.');
    size_t group = 0;
    std::string_view rest;
    const std::string ending = dot == key.npos ? "" : key.substr(dot + 1) + ".";
    if (dot == key.npos || !std::string_view(key).substr(0, dot).ends_with("_lrs") ||
        !split_number(ending, group, rest))
      return key;
    const auto own = std::find(file_group.begin(), file_group.end(), group);
    if (own == file_group.end()) return key;
    return fmt::format("{}.{}", key.substr(0, dot), own - file_group.begin());
  };
  optim::SchedulerState state;
  for (const auto& [key, value] : values) {
    if (value.is_text())
      state.texts.emplace_back(key, value.text());
    else
      state.numbers.emplace_back(moved(key), value.number());
  }
  return state;
}

}  // namespace tenon
