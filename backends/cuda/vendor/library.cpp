#include "vendor/library.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <vector>

#include <dlfcn.h>

#include <tenon/plugins/sdk/sdk.h>
#include <tenon/plugins/sdk/vendor_library.h>

#include "vendor/nvrtc.h"

#ifndef TENON_CUDA_LIBRARY_DIRS
#define TENON_CUDA_LIBRARY_DIRS ""
#endif

namespace tenon::cuda {

namespace {

namespace fs = std::filesystem;

using Check =
    std::function<std::string(void* library)>;  // what is wrong with it; empty where nothing is

std::string environment(const char* name) {
  const char* value = secure_getenv(name);  // not in programs with raised privileges
  return value ? value : "";
}

// The working directory is never searched: relative and empty entries are passed over.
std::vector<fs::path> folders_of(std::string_view list) {
  std::vector<fs::path> folders;
  while (!list.empty()) {
    auto end = std::min(list.find(':'), list.size());
    if (list.front() == '/') folders.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return folders;
}

[[maybe_unused]] std::vector<fs::path> subfolders(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end;
       it.increment(ignored))
    found.push_back(it->path());
  std::sort(found.begin(), found.end());
  return found;
}

// lib/python3.x/site-packages/nvidia/<package>/lib, and lib itself, where conda puts its packages.
[[maybe_unused]] std::vector<fs::path> python_folders() {
  std::vector<fs::path> folders;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    fs::path root = environment(variable);
    if (!root.is_absolute()) continue;
    folders.push_back(root / "lib");
    for (auto& python : subfolders(root / "lib"))
      if (python.filename().string().starts_with("python"))
        for (auto& package : subfolders(python / "site-packages" / "nvidia"))
          folders.push_back(package / "lib");
  }
  return folders;
}

class Search {
 public:
  Search(const char* file, const Check& check) : file_(file), check_(check) {}

  void* run() {
    for (auto& folder : folders_of(environment("TENON_CUDA_LIBRARY_PATH")))
      if (try_path(folder / file_)) return library_;
#if !defined(TENON_CUDA_EMULATED)  // a device that runs on the CPU has no use for the real ones
    if (try_path(file_)) return library_;
#endif
    auto folders = folders_of(TENON_CUDA_LIBRARY_DIRS);
#if !defined(TENON_CUDA_EMULATED)
    for (auto& folder : python_folders()) folders.push_back(folder);
#endif
    std::error_code ignored;
    for (auto& folder : folders)
      if (fs::exists(folder / file_, ignored) ? try_path(folder / file_) : absent(folder))
        return library_;
    return nullptr;
  }
  const std::string& tried() const { return tried_; }

 private:
  // A library that is opened and not taken stays open: some cannot be closed again.
  bool try_path(const fs::path& path) {
    std::string wrong;
    void* library = sdk::open_library(path.c_str(), RTLD_NOW | RTLD_LOCAL, wrong);
    if (library) wrong = check_(library);
    if (wrong.empty()) return library_ = library, true;
    // dlerror's text begins with the name where it is about the file itself.
    tried_ += "\n  " + (wrong.starts_with(path.string()) ? wrong : path.string() + ": " + wrong);
    return false;
  }

  bool absent(const fs::path& folder) {
    tried_ += "\n  " + folder.string() + ": has no " + file_;
    return false;
  }

  const char* file_;
  const Check& check_;
  void* library_ = nullptr;
  std::string tried_;
};

// A table, or why there is none; made once in a process.
template <class Table>
struct Loaded {
  Table table{};
  std::string why_not;

  // The files are tried one after the other, each in all places.
  Loaded(const char* what, std::initializer_list<const char*> files,
         bool (*fill)(void*, Table&, std::string&), std::string (*check_version)(const Table&)) {
    const Check check = [&](void* library) {
      std::string wrong;
      return fill(library, table, wrong) ? check_version(table) : wrong;
    };
    std::string tried;
    for (const char* file : files) {
      Search search(file, check);
      if (search.run()) return;
      tried += search.tried();
    }
    why_not = std::string(what) + " cannot be used; tried, in this order:" + tried +
              "\nInstall it, or name its folder in TENON_CUDA_LIBRARY_PATH";
  }

  const Table& get() const {
    if (!why_not.empty()) throw sdk::Error(TN_CODE_UNAVAILABLE, why_not);
    return table;
  }
};

bool find_function(void* library, const char* name, void** function, std::string& wrong) {
  *function = dlsym(library, name);
  if (!*function) wrong = std::string("has no function ") + name;
  return *function != nullptr;
}

#define TENON_FIND(name) \
  &&find_function(library, #name, reinterpret_cast<void**>(&table.name), wrong)
bool fill(void* library, CublasLt& table, std::string& wrong) {
  return true TENON_CUBLASLT_FUNCTIONS(TENON_FIND);
}
bool fill(void* library, Cudnn& table, std::string& wrong) {
  return true TENON_CUDNN_FUNCTIONS(TENON_FIND);
}
bool fill(void* library, Nccl& table, std::string& wrong) {
  return true TENON_NCCL_FUNCTIONS(TENON_FIND);
}
bool fill(void* library, Nvrtc& table, std::string& wrong) {
  return true TENON_NVRTC_FUNCTIONS(TENON_FIND);
}
#undef TENON_FIND

std::string not_wanted(const std::string& found, const std::string& wanted) {
  return "is version " + found + ", wanted is " + wanted;
}

std::string wrong_version(const CublasLt& t) {
  const size_t v = t.cublasLtGetVersion(), major = v / 10000;
  return major == CUBLAS_VER_MAJOR
             ? ""
             : not_wanted(std::to_string(v), std::to_string(CUBLAS_VER_MAJOR) + ".x");
}

std::string wrong_version(const Cudnn& t) {
  const size_t v = t.cudnnGetVersion();
  return v / 10000 == 9 ? "" : not_wanted(std::to_string(v), "9.x (from 90000)");
}

std::string wrong_version(const Nccl& t) {
  constexpr int oldest = NCCL_VERSION(2, 18, 0);
  int v = 0;
  const bool answered = t.ncclGetVersion(&v) == ncclSuccess;
  if (answered && v >= oldest) return "";
  return not_wanted(answered ? std::to_string(v) : "unknown",
                    sdk::text("at least 2.18 ({})", oldest));
}

// What it compiles is C++20, which it knows since 12.0.
std::string wrong_version(const Nvrtc& t) {
  int major = 0, minor = 0;
  const bool answered = t.nvrtcVersion(&major, &minor) == 0;
  return answered && major >= 12 ? "" : not_wanted(std::to_string(major), "at least 12");
}

#define TENON_TEXT(x) #x
#define TENON_TEXT_OF(x) TENON_TEXT(x)

}  // namespace

const CublasLt& cublaslt() {
  static const Loaded<CublasLt> loaded(
      "cuBLASLt", {"libcublasLt.so." TENON_TEXT_OF(CUBLAS_VER_MAJOR)}, fill, wrong_version);
  return loaded.get();
}

const Cudnn& cudnn() {
  static const Loaded<Cudnn> loaded("cuDNN", {"libcudnn.so.9"}, fill, wrong_version);
  return loaded.get();
}

const Nccl& nccl() {
  static const Loaded<Nccl> loaded("NCCL", {"libnccl.so.2"}, fill, wrong_version);
  return loaded.get();
}

// First the one of the toolkit that the other kernels are compiled by.
const Nvrtc& nvrtc() {
  constexpr bool is_old = CUDART_VERSION < 13000;
  static const Loaded<Nvrtc> loaded(
      "NVRTC",
      {is_old ? "libnvrtc.so.12" : "libnvrtc.so.13", is_old ? "libnvrtc.so.13" : "libnvrtc.so.12"},
      fill, wrong_version);
  return loaded.get();
}

void throw_status(cublasStatus_t status, const std::string& what) {
  const tn_code code = status == CUBLAS_STATUS_ALLOC_FAILED      ? TN_CODE_OUT_OF_MEMORY
                       : status == CUBLAS_STATUS_NOT_SUPPORTED   ? TN_CODE_UNSUPPORTED
                       : status == CUBLAS_STATUS_ARCH_MISMATCH   ? TN_CODE_UNSUPPORTED
                       : status == CUBLAS_STATUS_NOT_INITIALIZED ? TN_CODE_UNAVAILABLE
                                                                 : TN_CODE_INTERNAL;
  throw sdk::Error(code,
                   sdk::text("{}: {} (cuBLASLt status {})", what,
                             cublaslt().cublasLtGetStatusString(status), static_cast<int>(status)));
}

void throw_status(cudnnStatus_t status, const std::string& what) {
  const bool no_memory = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                         status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
  const tn_code code = no_memory                                           ? TN_CODE_OUT_OF_MEMORY
                       : category == CUDNN_STATUS_NOT_SUPPORTED            ? TN_CODE_UNSUPPORTED
                       : status < static_cast<int>(CUDNN_STATUS_BAD_PARAM) ? TN_CODE_UNAVAILABLE
                                                                           : TN_CODE_INTERNAL;
  char detail[256] = "";
  cudnn().cudnnGetLastErrorString(detail, sizeof detail);
  throw sdk::Error(
      code, what + ": " + cudnn().cudnnGetErrorString(status) + (*detail ? ": " : "") + detail);
}

void throw_status(ncclResult_t result, const std::string& what) {
  std::string message = what + ": " + nccl().ncclGetErrorString(result);
  if (const char* detail = nccl().ncclGetLastError(nullptr); detail && *detail)
    message += std::string(": ") + detail;
  throw sdk::Error(TN_CODE_INTERNAL, message);
}

}  // namespace tenon::cuda
