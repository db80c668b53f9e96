#include <sstream>

#include <tenon/modules/compile.h>

namespace tenon::detail {

std::string compiled_module_text(nn::ModuleRef module) {
  std::istringstream lines(nn::str(module));
  std::string text = "Compiled(\n";
  const char* indent = "  (module): ";
  for (std::string line; std::getline(lines, line); indent = "  ") text += indent + line + "\n";
  return text + ")";
}

}  // namespace tenon::detail
