#include <tenon/plugins/host/cpu_features.h>

#include <fstream>
#include <sstream>

namespace tenon::plugins {

const std::set<std::string>& cpu_features() {
  // Never freed, as a device may be opened while the process ends.
  static const auto& features = *[] {
    auto& found = *new std::set<std::string>;
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; found.empty() && std::getline(file, line);) {
      auto colon = line.find(':');
      if (colon == std::string::npos || (!line.starts_with("flags") && !line.starts_with("Features"))) continue;
      std::istringstream words(line.substr(colon + 1));
      for (std::string word; words >> word;) found.insert(word);
    }
    return &found;
  }();
  return features;
}

}  // namespace tenon::plugins
