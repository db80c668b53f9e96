// Public data, brought from its home and checked.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <tenon/core/api.h>

namespace tenon::data {

struct RemoteFile {
  std::string_view name;  // in the folder
  std::string_view url;
  std::string_view md5;
};

// Brings the files that are not in `folder` yet there, with the `curl` program, and checks each
// against its checksum before it gets its name; the folder is made where it is missing. `report`
// gets one line a file. DataError where curl is missing or fails, a checksum differs, or another
// file has the name already.
TENON_API void fetch(std::span<const RemoteFile> files, const std::filesystem::path& folder,
                     const std::function<void(const std::string&)>& report = {});

}  // namespace tenon::data
