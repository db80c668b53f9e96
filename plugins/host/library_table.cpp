#include <atomic>
#include <cstdint>
#include <string>

#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

#include <tenon/plugins/host/library_table.h>

namespace tenon::plugins {

namespace {

// A segment of code. Segments are only added, and never freed: dladdr would take locks, which a
// thread may hold when a signal comes.
struct Segment {
  uintptr_t begin, end;
  LoadedLibrary library;
  Segment* next = nullptr;
};
constinit std::atomic<Segment*> segments{nullptr};

void add(Segment* segment) {
  segment->next = segments.load();
  while (!segments.compare_exchange_weak(segment->next, segment)) {
  }
}

struct Search {
  const link_map* map;
  const LoadedLibrary& library;
};

int enter_segments(dl_phdr_info* info, size_t, void* data) {
  const auto& search = *static_cast<const Search*>(data);
  if (info->dlpi_addr != search.map->l_addr || search.map->l_name != std::string(info->dlpi_name))
    return 0;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || !(header.p_flags & PF_X)) continue;
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    add(new Segment{begin, begin + header.p_memsz, search.library});
  }
  return 1;
}

}  // namespace

void enter_library(void* handle, const LoadedLibrary& library) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return;
  Search search{map, library};
  dl_iterate_phdr(enter_segments, &search);
}

const LoadedLibrary* library_at(const void* address) noexcept {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const Segment* s = segments.load(); s; s = s->next)
    if (at >= s->begin && at < s->end) return &s->library;
  return nullptr;
}

const LoadedLibrary* library_on_this_stack() noexcept {
  if (!segments.load()) return nullptr;
  // Not by backtrace(), which opens the library of the unwinder, and this is asked at exit.
  const LoadedLibrary* found = nullptr;
  const auto look = [](_Unwind_Context* frame, void* out) {
    const auto* library = library_at(reinterpret_cast<const void*>(_Unwind_GetIP(frame)));
    *static_cast<const LoadedLibrary**>(out) = library;
    return library ? _URC_END_OF_STACK : _URC_NO_REASON;  // of which the first ends the walk
  };
  _Unwind_Backtrace(look, &found);
  return found;
}

}  // namespace tenon::plugins
