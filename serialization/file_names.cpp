#include <cerrno>
#include <memory>

#include <fcntl.h>
#include <unistd.h>

#include <tenon/core/base/log.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/format.h>
#include <tenon/serialization/file_names.h>

namespace tenon {
namespace {

// Gives make() a name beside `name`, and then moves what it made there.
void replace_name(const std::filesystem::path& name, auto&& make) {
  const std::filesystem::path temporary =
      name.parent_path() / fmt::format(".{}.new", name.filename().native());
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  // It is still there after an error, and if both were names of one file.
  const auto remove = [&](const std::filesystem::path* path) {
    std::filesystem::remove(*path, ignored);
  };
  const std::unique_ptr<const std::filesystem::path, decltype(remove)> removed(&temporary, remove);
  make(temporary);
  std::filesystem::rename(temporary, name);
}

void copy_lastingly(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::copy_file(from, to);
  const int file = ::open(to.c_str(), O_RDONLY | O_CLOEXEC);
  const int error = file < 0 || fsync(file) != 0 ? errno : 0;
  if (file >= 0) close(file);
  if (error)
    throw std::filesystem::filesystem_error("cannot sync the copy to disk", to,
                                            std::error_code(error, std::system_category()));
}

}  // namespace

void point_to(const std::filesystem::path& name, const std::filesystem::path& file) {
  try {
    replace_name(name, [&](const std::filesystem::path& temporary) {
      std::filesystem::create_symlink(file.filename(), temporary);
    });
  } catch (const std::filesystem::filesystem_error& error) {
    const std::error_code& code = error.code();
    if (code != std::errc::operation_not_permitted && code != std::errc::not_supported &&
        code != std::errc::operation_not_supported && code != std::errc::function_not_supported)
      throw;
    log_message(TN_LOG_INFO, "tenon",
                fmt::format("there is no '{}', because its file system has no symbolic links",
                            printable(name.native())));
  }
}

void require_answer(const std::error_code& error, const std::filesystem::path& path) {
  if (error && error != std::errc::no_such_file_or_directory &&
      error != std::errc::not_a_directory && error != std::errc::invalid_argument &&
      error != std::errc::too_many_symbolic_link_levels)  // a link to itself
    throw std::filesystem::filesystem_error("cannot look at it", path, error);
}

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  const bool found = std::filesystem::exists(path, error);
  require_answer(error, path);
  return found;
}

void give_another_name(const std::filesystem::path& name, const std::filesystem::path& file) {
  replace_name(name, [&](const std::filesystem::path& temporary) {
    std::error_code error;
    std::filesystem::create_hard_link(file, temporary, error);
    if (error) copy_lastingly(file, temporary);  // not all file systems have links
  });
}

}  // namespace tenon
