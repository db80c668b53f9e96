// Downloads public data sets and checks them.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <tenon/core/api.h>

namespace tenon::data {

// A file to download.
struct RemoteFile {
  // The name of the file in the folder.
  std::string_view name;
  // Tells where the file is.
  std::string_view url;
  // Its checksum, as 32 hexadecimal digits.
  std::string_view md5;
};

// Downloads the files that are not in `folder` yet, with the program `curl`. Each file gets its
// name after its checksum was found to be right. The folder is made if it does not exist. `report`
// is called with one line for each file. Throws a DataError if curl is missing or fails, if a
// checksum differs, or if another file has the name already.
TENON_API void fetch(std::span<const RemoteFile> files, const std::filesystem::path& folder,
                     const std::function<void(const std::string&)>& report = {});

}  // namespace tenon::data
