// `tenon plugin check`.
#include <algorithm>
#include <iostream>

#include <tenon/core/base/printable.h>
#include <tenon/plugins/host/plugin_check.h>

#include "commands.h"

namespace tenon::tools {

bool check_plugin_file(const std::string& path) {
  using plugins::Finding;
  const auto findings = plugins::check_plugin(path);
  for (auto& f : findings)
    std::cout << (f.kind == Finding::good     ? "good    "
                  : f.kind == Finding::remark ? "remark  "
                                              : "fault   ")
              << printable(f.what) << "\n";
  const auto faults = std::count_if(findings.begin(), findings.end(),
                                    [](auto& f) { return f.kind == Finding::fault; });
  if (faults > 0)
    std::cout << "it cannot be used: " << faults << (faults == 1 ? " fault\n" : " faults\n");
  else
    std::cout << "it can be loaded; see `tenon devices` for what it does then\n";
  return faults == 0;
}

}  // namespace tenon::tools
