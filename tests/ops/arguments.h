// How the public functions name their arguments, read in the headers that declare them: parameters,
// and the fields of the structs that hold options.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "places.h"

namespace tenon::test::arguments {

using Names = std::set<std::string, std::less<>>;

inline bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// What a list of parameters or of members declares. A name is the last word before a comma, a
// default value or the end; the words before it are its type.
struct Declared {
  Names names, types;
};
inline Declared declared_in(std::string_view list) {
  Declared found;
  std::string word;
  int depth = 0;          // of brackets
  bool by_value = false;  // behind a =
  const auto end_of_one = [&] {
    if (!by_value && !word.empty()) found.names.insert(word);
    word.clear();
    by_value = false;
  };
  for (size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (in_word(c)) {
      const size_t begin = i;
      while (i + 1 < list.size() && in_word(list[i + 1])) ++i;
      if (by_value || depth > 0) continue;
      if (!word.empty()) found.types.insert(word);
      word = list.substr(begin, i + 1 - begin);
    } else if (c == '(' || c == '{' || c == '<') {
      if (c == '<' && !word.empty()) found.types.insert(word);
      ++depth;
    } else if (c == ')' || c == '}' || c == '>') {
      --depth;
    } else if (depth == 0 && c == '=') {
      if (!word.empty()) found.names.insert(word);
      by_value = true;
    } else if (depth == 0 && (c == ',' || c == ';')) {
      end_of_one();
    }
  }
  end_of_one();
  return found;
}

inline std::string without_comments(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t comment = std::min(text.find("//", at), text.size());
    result += text.substr(at, comment - at);
    at = std::min(text.find('\n', comment), text.size());
  }
  return result;
}

// The word that ends right before `end`.
inline std::string word_before(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && in_word(text[begin - 1])) --begin;
  return std::string(text.substr(begin, end - begin));
}

// Calls f(word behind `keyword`, where that ends) for each time that it is there.
template <class F>
void for_each_behind(std::string_view text, std::string_view keyword, F&& f) {
  for (size_t at = text.find(keyword); at != text.npos; at = text.find(keyword, at + 1)) {
    size_t end = at + keyword.size();
    while (end < text.size() && in_word(text[end])) ++end;
    f(word_before(text, end), end);
  }
}

// By function: {"clamp": {"x", "min", "max"}}. Empty where the sources are not.
inline const std::map<std::string, Names, std::less<>>& of_functions() {
  static const auto found = [] {
    std::map<std::string, Names, std::less<>> functions, fields;
    std::string text;
    const std::filesystem::path core = std::filesystem::path(reference_dir()) / "../../core";
    if (!std::filesystem::exists(core)) return functions;
    for (auto& folder : {core, core / "ops"})
      for (auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() != ".h") continue;
        std::ifstream file(entry.path());
        text += without_comments(std::string(std::istreambuf_iterator<char>(file), {}));
      }
    for_each_behind(text, "struct ", [&](const std::string& name, size_t end) {
      const size_t begin = text.find_first_of("{;", end);
      if (begin == text.npos || text[begin] == ';') return;
      const size_t close = text.find("\n};", begin);
      fields[name] = declared_in(std::string_view(text).substr(begin + 1, close - begin - 1)).names;
    });
    for_each_behind(text, "using ", [&](const std::string& name, size_t end) {
      const size_t stop = text.find(';', end);
      for (auto& [of, names] : std::map(fields))
        if (text.substr(end, stop - end).starts_with(" = " + of + "<")) fields[name] = names;
    });
    const auto read = [&](const std::string&, size_t at) {
      const size_t stop = text.find(';', at), open = text.find('(', at);
      if (open > stop) return;
      const size_t close = text.rfind(')', stop);
      const Declared declared =
          declared_in(std::string_view(text).substr(open + 1, close - open - 1));
      Names& names = functions[word_before(text, open)];
      names.insert(declared.names.begin(), declared.names.end());
      for (auto& type : declared.types)
        if (const auto of = fields.find(type); of != fields.end())
          names.insert(of->second.begin(), of->second.end());
    };
    for (const char* before : {"TENON_API ", "\n  Tensor ", "\n  Tensor& "})  // and methods
      for_each_behind(text, before, read);
    return functions;
  }();
  return found;
}

// Whether `text` has the word, not as a part of a longer one.
inline bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if ((at == 0 || !in_word(text[at - 1])) &&
        (at + word.size() == text.size() || !in_word(text[at + word.size()])))
      return true;
  return false;
}

}  // namespace tenon::test::arguments
