#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <tenon/conformance/checklist.h>
#include <tenon/conformance/driver.h>
#include <tenon/conformance/joint/joint.h>
#include <tenon/conformance/levels.h>
#include <tenon/conformance/processes.h>
#include <tenon/conformance/run.h>
#include <tenon/conformance/speed.h>
#include <tenon/core/base/edit_distance.h>
#include <tenon/core/error.h>

namespace tenon::conformance {

namespace {

// Cases of operators that Tenon does not have say nothing about a backend.
void note_cases_beside(const Options& options, Checklist& list) {
  std::set<std::string> names;
  for (auto& family : table())
    for (auto& line : family.lines)
      if (!line.no_reference) names.insert(line.name);
  for (auto& [op, cases] : list.cases.by_op) {
    if (names.count(op) || (!options.op.empty() && options.op != op)) continue;
    for (auto& c : cases)
      list.known.push_back(
          {"cases", op, "", c->name, Status::skipped, "because Tenon has no such operator"});
  }
  for (auto& [name, reason, too_new] : list.cases.unreadable)
    list.known.push_back(
        {"cases", "", "", name, too_new ? Status::skipped : Status::failed,
         too_new ? "because this HDF5 is too old for the file" : "cannot be read: " + reason});
}

}  // namespace

namespace {

// Functions that are made of several operators are in no level.
bool is_required(const Line& line) {
  const OperatorLevel* level = level_of(line.op ? line.op : line.name);
  return level && level->level == Level::required;
}

}  // namespace

bool is_asked_for(const Options& options, const Line& line) {
  if (options.required_only && !is_required(line)) return false;
  return options.op.empty() || options.op == line.name || (line.op && options.op == line.op);
}

namespace {

// Who asks for an operator is told where the files have no case of it.
void note_missing_cases(const Options& options, Checklist& list) {
  if (options.op.empty()) return;
  std::set<std::string> missing;
  for (auto& family : table())
    for (auto& line : family.lines)
      if (!line.no_reference && is_asked_for(options, line) && !list.cases.by_op.count(line.name))
        missing.insert(line.name);
  for (auto& op : missing)
    list.known.push_back({"cases", op, "", "every case", Status::skipped,
                          "because " + options.cases + " has no case of it"});
}

}  // namespace

namespace {

std::vector<Check> all_joint_checks(const Options& options, const Subject& subject,
                                    const std::vector<std::string>& command,
                                    const std::vector<std::string>& passed_before,
                                    const std::function<void()>& alive) {
  const Launch launch{
      .command = command, .limit = options.limit, .checked = options.checked, .alive = alive};
  const auto named = [](Check& check) {
    check.name = check.op + ": " + check.name;
    check.op = "";
  };
  auto checks = joint_checks(subject);
  for (auto& check : checks) {
    named(check);
    if (std::count(passed_before.begin(), passed_before.end(), check.name))
      launch.passed->insert(check.name);
    check.run = [run = check.run, name = check.name, passed = launch.passed] {
      run();
      passed->insert(name);
    };
  }
  if (command.empty()) return checks;
  for (auto& check : process_checks(launch)) {
    named(check);
    checks.push_back(std::move(check));
  }
  return checks;
}

// Required are the dtypes of the table on Tenon's own cpu backend, and f32 on every backend if only
// required operators are checked. Gradients in half types, which only the reference files have, are
// not required.
bool is_promised(const Check& check, const Line& line, const Subject& subject,
                 const Options& options) {
  if (options.required_only && check.dtype == f32) return true;
  const bool in_table = check.section != "cases" || !contains(kHalves, check.dtype);
  return in_table && subject.device.type() == "cpu" &&
         contains(types_for(line, subject), check.dtype);
}

}  // namespace

Checklist make_checklist(const Options& options, const Subject& subject,
                         const std::vector<std::string>& command, const Resumption& resumption,
                         const Listener& listener) {
  Checklist list;
  if (options.speed) {
    list.checks = speed_checks(options, subject);
    return list;
  }
  const auto wants = [&](const std::string& section) {
    return options.section.empty() || options.section == section;
  };
  if (wants("joint") && options.op.empty() && !options.dtype)
    list.checks = all_joint_checks(options, subject, command, resumption.passed, listener.alive);
  if (wants("cases")) {
    std::set<std::string> wanted;
    for (auto& family : table())
      for (auto& line : family.lines)
        if (is_asked_for(options, line)) wanted.insert(line.name);
    const auto& without = resumption.without_files;
    list.cases = read_case_folder(options.cases, subject.reference,
                                  {.wanted = [&](auto& op) { return wanted.contains(op); },
                                   .without = {without.begin(), without.end()},
                                   .begins = listener.reading});
    note_cases_beside(options, list);
    note_missing_cases(options, list);
  }
  const Effort effort{.runs = 48, .elsewhere = true, .optional = true, .seed = options.seed};
  const auto add = [&](const Line& line, std::vector<Check> checks) {
    for (auto& check : checks) {
      if (options.dtype && check.dtype != *options.dtype) continue;
      check.promised = is_promised(check, line, subject, options);
      list.checks.push_back(std::move(check));
    }
  };
  const auto for_each_line = [&](const auto& visit) {
    for (auto& family : table()) {
      if (listener.alive) listener.alive();
      for (size_t i = 0; i < family.lines.size(); ++i)
        if (is_asked_for(options, family.lines[i])) visit(family.lines[i], i);
    }
  };
  // Those of a section that nobody asks for are not even made: thousands of shapes are drawn for
  // them, in each process.
  for_each_line([&](const Line& line, size_t i) {
    if (wants("cases")) add(line, case_checks(line, subject, list.cases, effort));
    if (wants("layouts")) {
      add(line, layout_checks(line, subject, i, effort));
      add(line, large_checks(line, subject));
    }
    if (wants("shapes")) add(line, shape_checks(line, subject, i, effort));
    if (wants("repeat")) add(line, repeat_checks(line, subject, i, effort));
    if (wants("gradients")) add(line, gradient_checks(line, subject, i, effort));
  });
  // At the end: without checked mode, those of repetition rely on memory that is used again at
  // once, and after large tensors there is more of it.
  if (wants("sizes"))
    for_each_line([&](const Line& line, size_t) { add(line, size_checks(line, subject)); });
  return list;
}

std::set<std::string> operator_names() {
  std::set<std::string> names;
  for (auto& family : table())
    for (auto& line : family.lines) {
      names.insert(line.name);
      if (line.op) names.insert(line.op);
    }
  return names;
}

void require_known_op(const std::string& op) {
  if (op.empty()) return;
  const auto names = operator_names();
  const size_t gradient = op.find("_backward");
  if (gradient != op.npos && names.count(op.substr(0, gradient)))
    throw ValueError(fmt::format("{} is the gradient of {}, and checked with --op {}", op,
                                 op.substr(0, gradient), op.substr(0, gradient)));
  if (names.count(op)) return;
  constexpr size_t kFar = 3;
  std::vector<std::string> near[kFar];
  for (auto& name : names)
    if (const size_t distance = edit_distance(op, name); distance < kFar)
      near[distance].push_back(name);
  const auto& nearest = near[1].empty() ? near[2] : near[1];
  throw ValueError(fmt::format(
      "no operator is called \"{}\"{}; --list-ops prints the names of all {}", op,
      nearest.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(nearest, " or ")),
      names.size()));
}

}  // namespace tenon::conformance
