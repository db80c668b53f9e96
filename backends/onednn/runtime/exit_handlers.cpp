#include "runtime/exit_handlers.h"

#include <cstdint>
#include <string_view>

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tenon::onednn {
namespace {

// Replaces __cxa_atexit and registers nothing.
int forget(void (*)(void*), void*, void*) { return 0; }

// What the dynamic linker knows of a library.
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  // The tables of addresses in other libraries: those of functions that are called, and all others.
  struct {
    const ElfW(Rela) * begin = nullptr;
    size_t bytes = 0;
  } calls, others;
  bool all_at_once = false;  // the linker filled all of them in at once, and made them read-only
};

// Some dynamic linkers give offsets in the library, and others addresses in memory.
template <class T>
const T* address(const link_map& library, ElfW(Addr) at) {
  return reinterpret_cast<const T*>(at < library.l_addr ? library.l_addr + at : at);
}

Tables tables_of(const link_map& library) {
  Tables tables;
  for (auto* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const auto at = entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = address<ElfW(Sym)>(library, at);
        break;
      case DT_STRTAB:
        tables.names = address<char>(library, at);
        break;
      case DT_JMPREL:
        tables.calls.begin = address<ElfW(Rela)>(library, at);
        break;
      case DT_PLTRELSZ:
        tables.calls.bytes = entry->d_un.d_val;
        break;
      case DT_RELA:
        tables.others.begin = address<ElfW(Rela)>(library, at);
        break;
      case DT_RELASZ:
        tables.others.bytes = entry->d_un.d_val;
        break;
      case DT_BIND_NOW:
        tables.all_at_once = true;
        break;
      case DT_FLAGS:
        tables.all_at_once |= (entry->d_un.d_val & DF_BIND_NOW) != 0;
        break;
      case DT_FLAGS_1:
        tables.all_at_once |= (entry->d_un.d_val & DF_1_NOW) != 0;
        break;
      default:
        break;
    }
  }
  return tables;
}

bool overwrite(void** slot, void* function, bool protect) {
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) / page_bytes * page_bytes);
  if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(slot, function, __ATOMIC_RELEASE);
  if (protect) mprotect(page, page_bytes, PROT_READ);
  return true;
}

}  // namespace

bool keep_static_objects_of(const void* function) {
  Dl_info info;
  link_map* library = nullptr;
  if (!dladdr1(function, &info, reinterpret_cast<void**>(&library), RTLD_DL_LINKMAP) || !library)
    return false;
  const Tables tables = tables_of(*library);
  if (!tables.symbols || !tables.names) return false;
  bool done = false;
  for (auto& table : {tables.calls, tables.others})
    for (size_t i = 0; i < table.bytes / sizeof(ElfW(Rela)); ++i) {
      const auto symbol = ELF64_R_SYM(table.begin[i].r_info);
      if (!symbol ||
          std::string_view(tables.names + tables.symbols[symbol].st_name) != "__cxa_atexit")
        continue;
      auto** slot = reinterpret_cast<void**>(library->l_addr + table.begin[i].r_offset);
      if (!overwrite(slot, reinterpret_cast<void*>(forget), tables.all_at_once)) return false;
      done = true;
    }
  return done;
}

}  // namespace tenon::onednn
