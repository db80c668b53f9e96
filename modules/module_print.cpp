// Printing as PyTorch's torch.nn.Module.__repr__ does.
#include <ostream>
#include <unordered_map>

#include <tenon/core/format.h>
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
  for (size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1))
    text.insert(at + 1, "  ");
  return text;
}

struct Line {
  std::string key, text;
  size_t count = 1;
  std::string last_key;

  std::string str() const {
    if (count == 1) return fmt::format("({}): {}", key, text);
    return fmt::format("({}-{}): {} x {}", key, last_key, count, text);
  }
};

// For each tensor, the path of the module that it was first printed with.
using Owners = std::unordered_map<const void*, std::string>;

std::string print(ModuleRef module, const std::string& path, Owners& owners);

// Which of the module's own tensors were already printed with an earlier module, as a remark such
// as "  # weight, bias shared with encoder".
struct Shared : FieldVisitor {
  std::vector<std::pair<std::string, std::string>> names_by_owner;
  const std::string& path;
  Owners& owners;
  Shared(ModuleRef m, const std::string& path, Owners& owners) : path(path), owners(owners) {
    m.type->visit(m.self, *this);
  }
  void parameter(std::string_view name, Tensor& t) override { look(name, t); }
  void buffer(std::string_view name, Tensor& t, bool) override { look(name, t); }
  void look(std::string_view name, const Tensor& t) {
    const std::string& owner = owners.emplace(t.impl().get(), path).first->second;
    if (owner == path) return;
    for (auto& [names, known] : names_by_owner)
      if (known == owner) return void(names.append(", ").append(name));
    names_by_owner.emplace_back(name, owner);
  }
  std::string str() const {
    std::string text;
    for (auto& [names, owner] : names_by_owner) {
      text += fmt::format("{}{} shared with {}", text.empty() ? "  # " : "; ", names,
                          owner.empty() ? "the model itself" : owner);
    }
    return text;
  }
};

struct Lines : FieldVisitor {
  std::vector<Line> lines;
  bool merge;  // equal neighbours into one line
  const std::string& path;
  Owners& owners;
  Lines(ModuleRef m, const std::string& path, Owners& owners)
      : merge(m.type->list), path(path), owners(owners) {
    m.type->visit(m.self, *this);
  }
  void child(std::string_view name, ModuleRef m) override {
    std::string text = indented(
        print(m, path.empty() ? std::string(name) : fmt::format("{}.{}", path, name), owners));
    if (merge && !lines.empty() && lines.back().text == text) {
      ++lines.back().count;
      lines.back().last_key = name;
    } else {
      lines.push_back({std::string(name), std::move(text), 1, {}});
    }
  }
};

std::string print(ModuleRef module, const std::string& path, Owners& owners) {
  const std::string shared = Shared(module, path, owners).str();
  std::vector<std::string> lines =
      lines_of(module.type->extra_repr ? module.type->extra_repr(module.self) : std::string());
  Lines children(module, path, owners);
  if (children.lines.empty() && lines.size() <= 1)
    return fmt::format("{}({}){}", module.type->name, lines.empty() ? "" : lines[0], shared);
  for (auto& child : children.lines) lines.push_back(child.str());
  std::string body;
  for (auto& line : lines) body += "\n  " + line;
  return fmt::format("{}({}\n){}", module.type->name, body, shared);
}

}  // namespace

std::string str(ModuleRef module) {
  Owners owners;
  return print(module, "", owners);
}

std::ostream& operator<<(std::ostream& out, ModuleRef module) { return out << str(module); }

}  // namespace tenon::nn
