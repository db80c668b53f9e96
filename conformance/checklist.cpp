#include <set>

#include <fmt/format.h>

#include <tenon/conformance/checklist.h>
#include <tenon/conformance/driver.h>
#include <tenon/core/error.h>

namespace tenon::conformance {

namespace {

bool is_asked_for(const Options& options, const Line& line) {
  return options.op.empty() || options.op == line.name || (line.op && options.op == line.op);
}

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
  for (auto& [name, reason] : list.cases.unreadable)
    list.known.push_back({"cases", "", "", name, Status::failed, "cannot be read: " + reason});
}

}  // namespace

Checklist make_checklist(const Options& options, const Subject& subject) {
  Checklist list;
  list.cases = read_case_folder(options.cases, subject.reference);
  note_cases_beside(options, list);
  const Effort effort{.runs = 48, .elsewhere = true, .seed = options.seed};
  const auto add = [&](const Line& line, std::vector<Check> checks) {
    for (auto& check : checks) {
      if (options.dtype && check.dtype != *options.dtype) continue;
      check.promised = subject.device.type() == "cpu" && contains(line.types, check.dtype);
      list.checks.push_back(std::move(check));
    }
  };
  for (auto& family : table())
    for (size_t i = 0; i < family.lines.size(); ++i) {
      const Line& line = family.lines[i];
      if (!is_asked_for(options, line)) continue;
      add(line, case_checks(line, subject, list.cases, effort));
      add(line, layout_checks(line, subject, i, effort));
      add(line, shape_checks(line, subject, i, effort));
      add(line, repeat_checks(line, subject, i, effort));
      add(line, gradient_checks(line, subject, i, effort));
    }
  return list;
}

void require_known_op(const std::string& op) {
  if (op.empty()) return;
  std::set<std::string> names;
  for (auto& family : table())
    for (auto& line : family.lines) {
      names.insert(line.name);
      if (line.op) names.insert(line.op);
    }
  if (!names.count(op))
    throw ValueError(
        fmt::format("no operator is called \"{}\"; there are {}", op, fmt::join(names, ", ")));
}

}  // namespace tenon::conformance
