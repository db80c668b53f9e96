#include "symbols.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <elf.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tenon::emulated {

namespace {

// To some compilers the zone behind a variable in which the address sanitizer allows nobody is a
// part of it.
size_t usable_bytes(void* at, size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  if (void* zone = __asan_region_is_poisoned(at, bytes))
    return static_cast<size_t>(static_cast<char*>(zone) - static_cast<char*>(at));
#else
  (void)at;
#endif
  return bytes;
}

constexpr std::string_view kShared = "B12tenon_shared", kBounds = "tenon_bounds_";

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "emulated device: %s\n", what);
  std::abort();
}

// A number, or one of the names that the plugin's kernels use.
unsigned bounds_of(std::string_view symbol) {
  const std::string_view text = symbol.substr(symbol.find(kBounds) + kBounds.size());
  if (text.starts_with("kBlock")) return 256;
  if (text.starts_with("kMaxThreads")) return 1024;
  const int number = std::atoi(std::string(text).c_str());
  if (number < 1)
    fail("__launch_bounds__ of a name that tests/cuda/emulated/symbols.cpp does not know");
  return static_cast<unsigned>(number);
}

struct Table {
  std::map<std::string, char*, std::less<>> functions;  // by what follows "_Z" in their names
  std::map<const void*, Kernel> found;                  // by address
  std::vector<SharedVariable> of_functions;

  Table() {
    Dl_info info;
    if (!dladdr(reinterpret_cast<const void*>(&kernel_at), &info))
      fail("its own module cannot be found");
    // The program itself may go by a relative name.
    std::ifstream file(info.dli_fname, std::ios::binary);
    if (!file) file.open("/proc/self/exe", std::ios::binary);
    file.seekg(0, std::ios::end);
    std::string bytes(static_cast<size_t>(std::max<std::streamoff>(file.tellg(), 0)), '\0');
    file.seekg(0);
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    read(bytes, static_cast<char*>(info.dli_fbase));
  }

  void read(const std::string& bytes, char* base) {
    Elf64_Ehdr header;
    if (bytes.size() < sizeof header) fail("its own module cannot be read");
    std::memcpy(&header, bytes.data(), sizeof header);
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    std::memcpy(sections.data(), bytes.data() + header.e_shoff,
                sections.size() * sizeof(Elf64_Shdr));
    std::vector<std::pair<std::string_view, Elf64_Sym>> variables;
    for (auto& section : sections) {
      if (section.sh_type != SHT_SYMTAB) continue;
      const char* names = bytes.data() + sections[section.sh_link].sh_offset;
      for (size_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, bytes.data() + section.sh_offset + at, sizeof symbol);
        const std::string_view name = names + symbol.st_name;
        const auto type = ELF64_ST_TYPE(symbol.st_info);
        if (name.starts_with("_ZZ") && name.find(kShared) != name.npos && type == STT_OBJECT)
          variables.emplace_back(name, symbol);
        if (!name.starts_with("_Z") || name.starts_with("_ZZ") || name.find('.') != name.npos ||
            type != STT_FUNC)
          continue;
        functions.emplace(name.substr(2), base + symbol.st_value);
        if (name.find(kBounds) != name.npos)
          found[base + symbol.st_value].most_threads = bounds_of(name);
      }
    }
    if (variables.empty())
      fail("its module was stripped of the symbols by which shared memory is found");
    for (auto& [name, symbol] : variables) {
      char* at = base + symbol.st_value;
      take(name.substr(3), {at, usable_bytes(at, symbol.st_size)});
    }
    for (auto& [function, kernel] : found)
      kernel.shared.insert(kernel.shared.end(), of_functions.begin(), of_functions.end());
  }

  // A variable's name begins with that of its function. One without bounds may be no kernel, but
  // called by any.
  void take(std::string_view name, SharedVariable variable) {
    for (size_t end = name.size(); (end = name.rfind('E', end - 1)) != name.npos && end > 0;) {
      auto function = functions.find(name.substr(0, end));
      if (function == functions.end()) continue;
      auto& kernel = found[function->second];
      kernel.shared_bytes += variable.bytes;
      if (function->first.find(kBounds) == std::string::npos) break;
      kernel.shared.push_back(variable);
      return;
    }
    of_functions.push_back(variable);
  }
};

}  // namespace

const Kernel& kernel_at(const void* function) {
  static auto& table = *new Table;
  static auto& unnamed = *new Kernel{1024, 0, table.of_functions};
  auto it = table.found.find(function);
  return it == table.found.end() ? unnamed : it->second;
}

}  // namespace tenon::emulated
