#include <algorithm>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include <tenon/core/base/never_destroyed.h>
#include <tenon/plugins/host/cpu_features.h>

namespace tenon::plugins {

namespace {

// Reads the file as far as the features of the first processor. A stream of the standard library
// would end early without an error if memory is short.
std::string beginning_of_cpuinfo() {
  struct File {
    const int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ~File() {
      if (fd >= 0) close(fd);
    }
  } file;
  std::string text;
  char part[4096];
  for (ssize_t n; file.fd >= 0 && (n = read(file.fd, part, sizeof part)) > 0;) {
    text.append(part, static_cast<size_t>(n));
    if (text.find("\n\n") != text.npos) break;
  }
  return text;
}

void add_words(std::string_view line, std::set<std::string>& found) {
  for (size_t begin; (begin = line.find_first_not_of(" \t")) != line.npos;) {
    line.remove_prefix(begin);
    const auto word = line.substr(0, line.find_first_of(" \t"));
    found.emplace(word);
    line.remove_prefix(word.size());
  }
}

struct Features {
  std::set<std::string> found;
  Features() {
    const std::string text = beginning_of_cpuinfo();
    for (std::string_view rest = text; !rest.empty() && found.empty();) {
      const auto line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const auto colon = line.find(':');
      if (colon != line.npos && (line.starts_with("flags") || line.starts_with("Features")))
        add_words(line.substr(colon + 1), found);
    }
  }
};

}  // namespace

const std::set<std::string>& cpu_features() {
  static constinit NeverDestroyed<Features> features;  // a device may be opened at exit
  return features.get().found;
}

}  // namespace tenon::plugins
