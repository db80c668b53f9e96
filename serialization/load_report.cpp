#include <ostream>

#include <tenon/core/base/printable.h>
#include <tenon/serialization/load_report.h>

namespace tenon {
namespace {

constexpr size_t shown = 8;

template <class T, class Print>
void list(std::string& text, const char* title, const std::vector<T>& entries, Print&& print) {
  if (entries.empty()) return;
  text += std::string("\n  ") + title + ": ";
  for (size_t i = 0; i < entries.size() && i < shown; ++i)
    text += (i ? ", " : "") + print(entries[i]);
  if (entries.size() > shown) text += " and " + std::to_string(entries.size() - shown) + " more";
}

}  // namespace

std::string LoadReport::str() const {
  std::string text = "loaded " + std::to_string(loaded()) + " of " +
                     std::to_string(loaded() + missing.size() + mis_shaped.size()) + " tensors";
  auto plain = [](const std::string& key) { return printable(key); };
  list(text, "renamed", renamed,
       [](const Renamed& r) { return printable(r.from) + " -> " + printable(r.to); });
  list(text, "missing from the checkpoint", missing, plain);
  list(text, "unexpected in the checkpoint", unexpected, plain);
  list(text, "of another shape", mis_shaped, [](const MisShaped& m) {
    return printable(m.key) + " " + m.in_checkpoint.str() + " instead of " + m.in_model.str();
  });
  list(text, "cast", cast, [](const Cast& c) {
    return printable(c.key) + " from " + std::string(name_of(c.from)) + " to " +
           std::string(name_of(c.to));
  });
  list(text, "one tensor under two names", tied,
       [](const Tied& t) { return printable(t.key) + " is " + printable(t.with); });
  return text;
}

std::string to_string(const LoadReport& report) { return report.str(); }
std::ostream& operator<<(std::ostream& out, const LoadReport& report) {
  return out << report.str();
}

}  // namespace tenon
