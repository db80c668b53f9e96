#include <ostream>

#include <tenon/core/base/printable.h>
#include <tenon/core/format.h>
#include <tenon/serialization/load_report.h>

namespace tenon {
namespace {

constexpr size_t kShown = 8;

template <class T, class Print>
void list(std::string& text, const char* title, const std::vector<T>& entries, Print&& print) {
  if (entries.empty()) return;
  text += fmt::format("\n  {}: ", title);
  for (size_t i = 0; i < entries.size() && i < kShown; ++i)
    text += (i ? ", " : "") + print(entries[i]);
  if (entries.size() > kShown) text += fmt::format(" and {} more", entries.size() - kShown);
}

}  // namespace

std::string_view name_of(FileFormat format) {
  switch (format) {
    case FileFormat::tenon:
      return "Tenon";
    case FileFormat::safetensors:
      return "safetensors";
    case FileFormat::torch:
      return "PyTorch";
    case FileFormat::npy:
      return "NumPy .npy";
    case FileFormat::npz:
      return "NumPy .npz";
    case FileFormat::hdf5:
      return "HDF5";
  }
  return "unknown";
}

std::string LoadReport::str() const {
  std::string text = fmt::format("loaded {} of {} tensors", loaded(),
                                 loaded() + missing.size() + mis_shaped.size());
  auto plain = [](const std::string& key) { return printable(key); };
  list(text, "renamed", renamed, [](const Renamed& r) {
    return fmt::format("{} -> {}", printable(r.from), printable(r.to));
  });
  list(text, "missing from the checkpoint", missing, plain);
  list(text, "unexpected in the checkpoint", unexpected, plain);
  list(text, "of another shape", mis_shaped, [](const MisShaped& m) {
    return fmt::format("{} {} instead of {}", printable(m.key), m.in_checkpoint, m.in_model);
  });
  list(text, "cast", cast, [](const Cast& c) {
    return fmt::format("{} from {} to {}", printable(c.key), c.from, c.to);
  });
  list(text, "one tensor under two names", tied,
       [](const Tied& t) { return fmt::format("{} is {}", printable(t.key), printable(t.with)); });
  list(text, "left out", skipped, plain);
  list(text, "rules that match no name", unused_rules, plain);
  list(text, "not tensors", not_tensors, plain);
  if (unverified && format)
    text += fmt::format("\n  unverified: {} {} file has no checksums of Tenon's",
                        *format == FileFormat::hdf5 ? "an" : "a", name_of(*format));
  return text;
}

std::string to_string(const LoadReport& report) { return report.str(); }
std::ostream& operator<<(std::ostream& out, const LoadReport& report) {
  return out << report.str();
}

}  // namespace tenon
