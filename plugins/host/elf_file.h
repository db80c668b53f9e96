// What the file of a shared library says of itself, read without loading it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <link.h>

namespace tenon::plugins {

// The dynamic part of a shared library for this machine. Everything that it reads is checked
// against the bytes that are there.
class ElfFile {
 public:
  struct Symbol {
    std::string name;
    uint64_t address, bytes;
    bool is_data, is_weak;
  };

  // Throws Refused for a file that is not a complete shared library for this machine.
  explicit ElfFile(const std::string& path);

  // The symbols that the library gives to others, and the libraries that it asks for (DT_NEEDED).
  const std::vector<Symbol>& exported() const { return exported_; }
  const std::vector<std::string>& needed() const { return needed_; }
  // Libraries that the dynamic linker runs while it loads this one (DT_AUDIT, DT_DEPAUDIT).
  const std::vector<std::string>& auditors() const { return auditors_; }
  const Symbol* find(std::string_view name) const;

  // Copies bytes as they will lie at an address of the library before it is relocated. Returns
  // false if the file does not have them.
  bool read(uint64_t address, void* to, uint64_t bytes) const;
  // Returns what the linker will write at an address: the place in the library to which a pointer
  // there points; 0 for a null pointer; nothing if it points elsewhere or this cannot be told.
  std::optional<uint64_t> pointer_at(uint64_t address) const;
  // Returns the text at an address, or nothing if there is none of a reasonable length.
  std::optional<std::string> text_at(uint64_t address) const;

 private:
  void read_dynamic();
  void read_symbols(uint64_t table, uint64_t count, uint64_t names);
  void read_relocations(uint64_t table, uint64_t bytes, uint64_t symbols);

  std::string bytes_;
  std::vector<ElfW(Phdr)> segments_;
  std::vector<Symbol> exported_;
  std::vector<std::string> needed_, auditors_;
  std::map<uint64_t, std::optional<uint64_t>> pointers_;  // by the address of the pointer
};

}  // namespace tenon::plugins
