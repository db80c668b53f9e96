// Printing as PyTorch's torch.nn.Module.__repr__ does.
#include <ostream>

#include <tenon/modules/module.h>

namespace tenon::nn {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; !text.empty();) {
    size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end == text.npos ? end : end - begin));
    if (end == text.npos) break;
    begin = end + 1;
  }
  return lines;
}

std::string indented(std::string text) {
  for (size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) text.insert(at + 1, "  ");
  return text;
}

struct Line {
  std::string key, text;
  size_t count = 1;
  std::string last_key;

  std::string str() const {
    if (count == 1) return "(" + key + "): " + text;
    return "(" + key + "-" + last_key + "): " + std::to_string(count) + " x " + text;
  }
};

struct Lines : FieldVisitor {
  std::vector<Line> lines;
  bool merge;  // equal neighbours into one line
  explicit Lines(ModuleRef m) : merge(m.type->list) { m.type->visit(m.self, *this); }
  void child(std::string_view name, ModuleRef m) override {
    std::string text = indented(nn::str(m));
    if (merge && !lines.empty() && lines.back().text == text) {
      ++lines.back().count;
      lines.back().last_key = name;
    } else {
      lines.push_back({std::string(name), std::move(text), 1, {}});
    }
  }
};

}  // namespace

std::string str(ModuleRef module) {
  std::vector<std::string> lines = lines_of(module.type->extra_repr ? module.type->extra_repr(module.self) : std::string());
  std::string head = std::string(module.type->name) + "(";
  Lines children(module);
  if (children.lines.empty() && lines.size() <= 1) return head + (lines.empty() ? "" : lines[0]) + ")";
  for (auto& child : children.lines) lines.push_back(child.str());
  for (auto& line : lines) head += "\n  " + line;
  return head + "\n)";
}

std::ostream& operator<<(std::ostream& out, ModuleRef module) { return out << str(module); }

}  // namespace tenon::nn
