#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <tuple>

#include <dirent.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <tenon/plugins/host/discovery.h>
#include <tenon/plugins/host/files.h>

namespace tenon::plugins {

namespace {

namespace fs = std::filesystem;

constexpr const char* kManifestSuffix = ".tenon.json";

std::string find_install_place() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&scan), &info) == 0 || !info.dli_fname) return {};
  std::error_code error;
  auto library = fs::canonical(info.dli_fname, error);
  return error ? std::string() : (library.parent_path() / "tenon" / "plugins").string();
}

// Determined when libtenon is loaded, because the path may be relative and the working directory
// may change later. Never freed, because it is needed until the process has ended.
const std::string& install_folder = *new std::string(find_install_place());

void add_refused(const std::string& path, size_t rank, std::string reason,
                 std::vector<Candidate>& found) {
  Candidate c;
  c.manifest.path = path.empty() ? "(empty)" : path;
  c.status = Status::refused;
  c.reason = std::move(reason);
  c.place = rank;
  found.push_back(std::move(c));
}

void add_manifest(const std::string& path, size_t rank, std::vector<Candidate>& found) {
  Candidate c;
  c.place = rank;
  c.manifest.path = path;
  try {
    c.manifest.path = canonical_path(path);
    for (auto& other : found) {
      if (other.manifest.path != c.manifest.path) continue;
      other.place = std::min(other.place, rank);
      return;
    }
    read_manifest(c.manifest);
    check_loadable(c.manifest);
  } catch (const Unsuitable& e) {
    c.status = Status::unsuitable;
    c.reason = e.what();
  } catch (const Refused& e) {
    c.status = Status::refused;
    c.reason = e.what();
  }
  found.push_back(std::move(c));
}

// Lists the manifests in a folder. The iterators of std::filesystem would end the process if memory
// is short.
std::vector<std::string> manifests_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(folder.c_str()), closedir);
  std::vector<std::string> manifests;
  if (stream) errno = 0;
  for (dirent* entry; stream && (entry = readdir(stream.get())); errno = 0)
    if (std::string_view(entry->d_name).ends_with(kManifestSuffix))
      manifests.push_back(folder + "/" + entry->d_name);
  require_descriptors(errno, folder);
  if (errno == ENOMEM) throw std::bad_alloc();
  if (errno) throw Refused(fmt::format("folder cannot be read: {}", std::strerror(errno)));
  std::sort(manifests.begin(), manifests.end());
  return manifests;
}

void scan_folder(const std::string& folder, size_t rank, std::vector<Candidate>& found) {
  require_trusted_folder(folder);
  for (auto& path : manifests_in(folder)) add_manifest(path, rank, found);
}

}  // namespace

std::vector<std::string> environment_places() {
  std::vector<std::string> places;
  const char* text = secure_getenv("TENON_PLUGIN_PATH");
  if (!text || !*text) return places;
  std::string rest = text;
  for (size_t colon; (colon = rest.find(':')) != std::string::npos; rest = rest.substr(colon + 1))
    places.push_back(rest.substr(0, colon));
  places.push_back(rest);
  return places;
}

std::vector<std::string> names_in(const char* variable) {
  std::vector<std::string> names;
  const char* text = secure_getenv(variable);
  for (std::string_view rest = text ? text : ""; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (comma > 0) names.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return names;
}

const std::string& install_place() { return install_folder; }

std::string scan(const std::string& place, size_t rank, std::vector<Candidate>& found) {
  try {
    auto path = canonical_path(place);
    struct stat s {};
    if (stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode))
      scan_folder(path, rank, found);
    else if (path.ends_with(kManifestSuffix))
      add_manifest(path, rank, found);
    else
      throw Refused(fmt::format("neither a folder nor a manifest (*{})", kManifestSuffix));
    return "";
  } catch (const Refused& e) {
    add_refused(place, rank, e.what(), found);
    return e.what();
  }
}

bool goes_before(const Candidate& a, const Candidate& b) {
  return std::tuple(a.place, -int64_t{a.manifest.preference}, std::string_view(a.manifest.path)) <
         std::tuple(b.place, -int64_t{b.manifest.preference}, std::string_view(b.manifest.path));
}

}  // namespace tenon::plugins
