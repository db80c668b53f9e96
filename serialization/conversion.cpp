#include <algorithm>
#include <functional>
#include <regex>
#include <unordered_map>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/conversion.h>

namespace tenon {
namespace {

// The limit exists because the matcher of the standard library recurses for each character.
constexpr size_t kMaxMatchedBytes = 1024;

class Pattern {
 public:
  // `role` says in errors which option of the user the text is.
  Pattern(const char* role, const std::string& text) : role_(role), text_(text) {
    run([&] { regex_.assign(text, std::regex::ECMAScript | std::regex::optimize); });
  }
  bool found_in(const std::string& name) const {
    require_short(name);
    return run([&] { return std::regex_search(name, regex_); });
  }
  std::string replaced(const std::string& name, const std::string& by) const {
    return run([&] { return std::regex_replace(name, regex_, by); });
  }

 private:
  template <class F>
  auto run(F&& f) const -> decltype(f()) {
    try {
      return f();
    } catch (const std::regex_error& error) {
      // For a "*" with nothing before it, the standard library's message is about parentheses.
      const bool repeats = error.code() == std::regex_constants::error_paren &&
                           text_.find_first_of("()") == text_.npos;
      throw ValueError(fmt::format(
          "load: {} '{}' cannot be used as a regular expression: {}", role_, printable(text_),
          repeats ? "there is nothing before a '*', '+' or '?' that it could repeat"
                  : error.what()));
    }
  }
  static void require_short(const std::string& name) {
    if (name.size() > kMaxMatchedBytes)
      throw StateDictError(fmt::format(
          "load: the name '{}' has {} bytes, and a regular expression is searched in at most {}",
          excerpt(name), name.size(), kMaxMatchedBytes));
  }

  const char* role_;
  std::string text_;
  std::regex regex_;
};

void require_permutation(const LoadRule& rule) {
  const Shape& order = rule.permute;
  for (size_t i = 0; i < order.size(); ++i)
    if (std::find(order.begin(), order.end(), static_cast<int64_t>(i)) == order.end())
      throw ValueError(
          fmt::format("load: the rule '{}' permutes by {}, which does not have each dimension from "
                      "0 to {} once",
                      printable(rule.pattern), order, order.size() - 1));
}

Shape permuted(const Shape& shape, const Shape& order) {
  Shape result = shape;
  for (size_t i = 0; i < order.size(); ++i) result[i] = shape[order[i]];
  return result;
}

void require_distinct(const std::vector<std::string>& before, const KeySide& side) {
  std::unordered_map<std::string_view, size_t> seen;
  for (size_t i = 0; i < side.tensors.size(); ++i)
    if (auto [at, fresh] = seen.emplace(side.tensors[i].key, i); !fresh)
      throw StateDictError(fmt::format("load: the rules turn both '{}' and '{}' into '{}'",
                                       printable(before[at->second]), printable(before[i]),
                                       printable(side.tensors[i].key)));
}

// Which tensors of a side `only` asks for.
std::vector<bool> asked_for(const KeySide& side, const std::string& only) {
  std::vector<bool> asked(side.tensors.size(), true);
  if (only.empty()) return asked;
  const Pattern pattern(".only", only);
  const std::vector<std::string> names = names_without_wrappers(side);
  for (size_t i = 0; i < names.size(); ++i) asked[i] = pattern.found_in(names[i]);
  return asked;
}

}  // namespace

Conversion::Conversion(const KeySide& source, const LoadOptions& options) {
  KeySide all = source;
  std::vector<std::vector<Shape>> permutations(all.tensors.size());
  std::vector<std::string> before;
  for (const NamedShape& tensor : source.tensors) before.push_back(tensor.key);
  for (const LoadRule& rule : options.rules) {
    require_permutation(rule);
    const Pattern pattern("the rule", rule.pattern);
    bool used = false;
    for (size_t i = 0; i < all.tensors.size(); ++i) {
      NamedShape& tensor = all.tensors[i];
      const bool moves = !rule.permute.empty();
      const bool concerned = !moves || tensor.shape.size() == rule.permute.size();
      if (!concerned && (used || tensor.key.size() > kMaxMatchedBytes)) continue;
      if (!pattern.found_in(tensor.key)) continue;
      used = true;
      if (!concerned) continue;
      tensor.key = pattern.replaced(tensor.key, rule.replacement);
      tensor.shape = permuted(tensor.shape, rule.permute);
      if (moves) permutations[i].push_back(rule.permute);
    }
    if (!used) unused_rules_.push_back(rule.pattern);
  }
  if (!options.rules.empty()) require_distinct(before, all);
  const std::vector<bool> asked = asked_for(all, options.only);
  side_.wrappers = all.wrappers;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!asked[i]) continue;
    side_.tensors.push_back(std::move(all.tensors[i]));
    positions_.push_back(i);
    permutations_.push_back(std::move(permutations[i]));
  }
}

Tensor Conversion::apply(size_t i, const Tensor& values) const {
  Tensor result = values;
  for (const Shape& order : permutations_[i]) result = result.permute(order);
  return result;
}

namespace {

// A word that is spelled wrong would leave a model as it was, without an error.
void require_some(const KeySide& wanted, const KeySide& model, const LoadOptions& options,
                  const std::string& model_name) {
  if (!options.strict || !wanted.tensors.empty() || model.tensors.empty()) return;
  throw StateDictError(fmt::format(
      "load: .only '{}' matches no name of {}, whose tensors are named like \"{}\", without the "
      "segments of wrappers such as \"module.\"",
      printable(options.only), model_name, printable(names_without_wrappers(model).front())));
}

KeyMap map_naming_rules(const Conversion& conversion, const KeySide& wanted,
                        const LoadOptions& options, const std::string& model_name) {
  try {
    return map_keys(conversion.side(), wanted, options, model_name);
  } catch (const StateDictError& error) {
    if (conversion.unused_rules().empty()) throw;
    std::string text = error.what();
    for (const std::string& pattern : conversion.unused_rules())
      text += fmt::format("\n\tThe rule '{}' matches no name of the file.", printable(pattern));
    throw StateDictError(text);
  }
}

}  // namespace

KeyMap map_converted(const Conversion& conversion, const KeySide& source, const KeySide& model,
                     const LoadOptions& options, const std::string& model_name) {
  const std::vector<bool> asked = asked_for(model, options.only);
  KeySide wanted{{}, model.wrappers};
  std::vector<size_t> positions;
  std::vector<std::string> skipped;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!asked[i]) {
      skipped.push_back(model.tensors[i].key);
      continue;
    }
    wanted.tensors.push_back(model.tensors[i]);
    positions.push_back(i);
  }
  require_some(wanted, model, options, model_name);
  KeyMap map = map_naming_rules(conversion, wanted, options, model_name);
  map.report.unused_rules = conversion.unused_rules();
  map.report.skipped = std::move(skipped);
  map.report.matched.clear();
  map.report.renamed.clear();
  for (auto& [from, to] : map.pairs) {
    const std::string& key = source.tensors[conversion.position(from)].key;
    const std::string& target = wanted.tensors[to].key;
    if (key == target)
      map.report.matched.push_back(target);
    else
      map.report.renamed.push_back({key, target});
    to = positions[to];
  }
  return map;
}

}  // namespace tenon
