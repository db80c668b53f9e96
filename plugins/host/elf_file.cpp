#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <elf.h>
#include <fmt/core.h>

#include <tenon/plugins/host/elf_file.h>
#include <tenon/plugins/host/files.h>
#include <tenon/plugins/host/manifest.h>

namespace tenon::plugins {

namespace {

constexpr uint64_t kLargestFile = uint64_t{4} << 30;
// No honest library comes near these; a forged one would keep us busy.
constexpr size_t kMaxSegments = 64;
constexpr uint64_t kMaxEntries = 1 << 22;
constexpr size_t kLongestText = 4096, kMaxSumOfTexts = 64 << 20;

#if defined(__x86_64__)
constexpr uint32_t kRelative = R_X86_64_RELATIVE, kAbsolute = R_X86_64_64;
#elif defined(__aarch64__)
constexpr uint32_t kRelative = R_AARCH64_RELATIVE, kAbsolute = R_AARCH64_ABS64;
#else
constexpr uint32_t kRelative = ~0u, kAbsolute = ~0u;  // unknown here: no pointer can be told
#endif

}  // namespace

ElfFile::ElfFile(const std::string& path) {
  require_shared_library(path);
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error || size > kLargestFile)
    throw Refused(fmt::format("library of {} bytes is too large to look into: {}", size, path));
  bytes_.resize(size);
  std::ifstream file(path, std::ios::binary);
  if (!file.read(bytes_.data(), static_cast<std::streamsize>(size)))
    throw Refused(fmt::format("library cannot be read: {}", path));
  ElfW(Ehdr) head;
  std::memcpy(&head, bytes_.data(), sizeof head);
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    const uint64_t at = uint64_t{i} * sizeof(ElfW(Phdr));
    if (head.e_phoff > size || size - head.e_phoff < at + sizeof(ElfW(Phdr)))
      throw Refused(fmt::format("library changed while it was read: {}", path));
    ElfW(Phdr) segment;
    std::memcpy(&segment, bytes_.data() + head.e_phoff + at, sizeof segment);
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    if (segments_.size() == kMaxSegments)
      throw Refused(fmt::format("library has more than {} segments: {}", kMaxSegments, path));
    segments_.push_back(segment);
  }
  read_dynamic();
}

bool ElfFile::read(uint64_t address, void* to, uint64_t bytes) const {
  for (auto& s : segments_) {
    if (s.p_type != PT_LOAD || address < s.p_vaddr || address - s.p_vaddr > s.p_memsz ||
        bytes > s.p_memsz - (address - s.p_vaddr))
      continue;
    const uint64_t inside = address - s.p_vaddr;
    // What lies in memory behind the bytes of the file is zero.
    const uint64_t there = inside < s.p_filesz ? std::min(bytes, s.p_filesz - inside) : 0;
    const uint64_t offset = s.p_offset + inside;
    if (there > 0 && (offset > bytes_.size() || there > bytes_.size() - offset)) return false;
    if (there > 0) std::memcpy(to, bytes_.data() + offset, there);
    std::memset(static_cast<char*>(to) + there, 0, bytes - there);
    return true;
  }
  return false;
}

std::optional<std::string> ElfFile::text_at(uint64_t address) const {
  std::string text;
  for (char c; text.size() < kLongestText; text += c) {
    if (!read(address + text.size(), &c, 1)) return std::nullopt;
    if (c == 0) return text;
  }
  return std::nullopt;
}

std::optional<uint64_t> ElfFile::pointer_at(uint64_t address) const {
  if (auto known = pointers_.find(address); known != pointers_.end()) return known->second;
  uint64_t value = 0;
  // Without a relocation only a null pointer means something.
  if (kRelative == ~0u || !read(address, &value, sizeof value) || value != 0) return std::nullopt;
  return 0;
}

const ElfFile::Symbol* ElfFile::find(std::string_view name) const {
  auto it = std::find_if(exported_.begin(), exported_.end(),
                         [&](const Symbol& s) { return s.name == name; });
  return it == exported_.end() ? nullptr : &*it;
}

void ElfFile::read_dynamic() {
  std::map<int64_t, uint64_t> first;  // the first entry of each tag
  std::vector<uint64_t> needed, auditors;
  for (auto& s : segments_) {
    if (s.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = 0; at + sizeof(ElfW(Dyn)) <= s.p_memsz; at += sizeof(ElfW(Dyn))) {
      ElfW(Dyn) entry;
      if (!read(s.p_vaddr + at, &entry, sizeof entry) || entry.d_tag == DT_NULL) break;
      first.emplace(entry.d_tag, entry.d_un.d_val);
      if (entry.d_tag == DT_NEEDED) needed.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_AUDIT || entry.d_tag == DT_DEPAUDIT)
        auditors.push_back(entry.d_un.d_val);
    }
  }
  const uint64_t names = first[DT_STRTAB], symbols = first[DT_SYMTAB];
  for (uint64_t offset : needed)
    if (auto name = text_at(names + offset)) needed_.push_back(*name);
  for (uint64_t offset : auditors) auditors_.push_back(text_at(names + offset).value_or("?"));
  // The symbol table does not say how long it is. The names lie behind it in all libraries that
  // the common linkers make.
  if (symbols && names > symbols)
    read_symbols(symbols, (names - symbols) / sizeof(ElfW(Sym)), names);
  if (first[DT_RELA]) read_relocations(first[DT_RELA], first[DT_RELASZ], symbols);
}

void ElfFile::read_symbols(uint64_t table, uint64_t count, uint64_t names) {
  size_t text = 0;
  for (uint64_t i = 1; i < std::min(count, kMaxEntries) && text < kMaxSumOfTexts; ++i) {
    ElfW(Sym) s;
    if (!read(table + i * sizeof s, &s, sizeof s)) return;
    const auto binding = s.st_info >> 4, type = s.st_info & 15;
    const auto visibility = s.st_other & 3;
    if (s.st_shndx == SHN_UNDEF || s.st_shndx == SHN_ABS ||
        (binding != STB_GLOBAL && binding != STB_WEAK && binding != STB_GNU_UNIQUE) ||
        (visibility != STV_DEFAULT && visibility != STV_PROTECTED))
      continue;
    auto name = text_at(names + s.st_name);
    text += name ? name->size() + 1 : kLongestText;
    if (name)
      exported_.push_back(
          {*name, s.st_value, s.st_size, type == STT_OBJECT, binding != STB_GLOBAL});
  }
}

void ElfFile::read_relocations(uint64_t table, uint64_t bytes, uint64_t symbols) {
  const uint64_t count = std::min<uint64_t>(bytes / sizeof(ElfW(Rela)), kMaxEntries);
  for (uint64_t i = 0; i < count; ++i) {
    ElfW(Rela) r;
    if (!read(table + i * sizeof r, &r, sizeof r)) return;
    const uint32_t type = ELF64_R_TYPE(r.r_info);
    std::optional<uint64_t> target;
    if (type == kRelative) {
      target = static_cast<uint64_t>(r.r_addend);
    } else if (type == kAbsolute) {
      ElfW(Sym) s;
      const uint64_t at = symbols + ELF64_R_SYM(r.r_info) * sizeof s;
      if (read(at, &s, sizeof s) && s.st_shndx != SHN_UNDEF)
        target = s.st_value + static_cast<uint64_t>(r.r_addend);
    }
    pointers_[r.r_offset] = target;
  }
}

}  // namespace tenon::plugins
