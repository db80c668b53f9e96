// Further names of a checkpoint. What the system refuses is a std::filesystem::filesystem_error.
#pragma once

#include <filesystem>
#include <system_error>

namespace tenon {

// Makes `name` a symbolic link to a file of the same folder. Where the file system has none,
// nothing gets the name: a copy would take as long as the save.
void point_to(const std::filesystem::path& name, const std::filesystem::path& file);
// Gives a file another name as well, which it keeps when it loses its own: a hard link, or a copy,
// which is on the disk before it gets a name that counts.
void give_another_name(const std::filesystem::path& name, const std::filesystem::path& file);

// Throws unless the system could say what is there, which may be nothing.
void require_answer(const std::error_code& error, const std::filesystem::path& path);
bool is_there(const std::filesystem::path& path);

}  // namespace tenon
