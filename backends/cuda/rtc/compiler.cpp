#include "rtc/compiler.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <tenon/plugins/sdk/sdk.h>

#include "rtc/headers.h"
#include "vendor/nvrtc.h"

namespace tenon::cuda {
namespace {

// Members round as they are written, each by itself: products and sums of two members must not
// become one operation. The plugin's pointwise kernels are compiled likewise (CMakeLists.txt).
constexpr const char* kOptions[] = {"--std=c++20", "--fmad=false",
                                    "--device-as-default-execution-space", "--disable-warnings"};

constexpr size_t kMaxLog = 600;

const Nvrtc& compiler() {
  try {
    return nvrtc();
  } catch (const sdk::Error& e) {
    sdk::unsupported(std::string("is compiled when it is needed, and ") + e.what());
  }
}

void require(NvrtcResult result, const char* what) {
  if (result != 0) sdk::unsupported("{}: {}", what, nvrtc().nvrtcGetErrorString(result));
}

class Program {
 public:
  explicit Program(const std::string& source) {
    std::vector<const char*> names, texts;
    for (auto& header : rtc_headers()) {
      names.push_back(header.name);
      texts.push_back(header.text);
    }
    require(
        compiler().nvrtcCreateProgram(&program_, source.c_str(), "program.cu",
                                      static_cast<int>(names.size()), texts.data(), names.data()),
        "nvrtcCreateProgram");
  }
  ~Program() { nvrtc().nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void compile(const std::string& architecture) {
    std::vector<const char*> options(std::begin(kOptions), std::end(kOptions));
    options.push_back(architecture.c_str());
    const NvrtcResult result =
        nvrtc().nvrtcCompileProgram(program_, static_cast<int>(options.size()), options.data());
    if (result != 0) sdk::unsupported("NVRTC: {}: {}", nvrtc().nvrtcGetErrorString(result), log());
  }

  std::string machine_code() const {
    size_t bytes = 0;
    require(nvrtc().nvrtcGetCUBINSize(program_, &bytes), "nvrtcGetCUBINSize");
    std::string code(bytes, '\0');
    require(nvrtc().nvrtcGetCUBIN(program_, code.data()), "nvrtcGetCUBIN");
    return code;
  }

 private:
  // The beginning of what it says, where the first error is.
  std::string log() const {
    size_t bytes = 0;
    if (nvrtc().nvrtcGetProgramLogSize(program_, &bytes) != 0 || bytes < 2) return "(no log)";
    std::string text(bytes, '\0');
    if (nvrtc().nvrtcGetProgramLog(program_, text.data()) != 0) return "(no log)";
    text.resize(bytes - 1);  // it ends with a zero
    if (text.size() > kMaxLog) text.replace(kMaxLog, text.npos, " …");
    return text;
  }

  NvrtcProgram program_ = nullptr;
};

std::string digest_of_headers() {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (auto& header : rtc_headers())
    for (const std::string_view text :
         {std::string_view(header.name), std::string_view(header.text)})
      for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return std::to_string(hash);
}

std::string architecture_of(int capability) {
  return "--gpu-architecture=sm_" + std::to_string(capability);
}

}  // namespace

std::string compiler_key(int capability) {
  static const std::string headers = digest_of_headers();
  int major = 0, minor = 0;
  require(compiler().nvrtcVersion(&major, &minor), "nvrtcVersion");
  std::string key = sdk::text("NVRTC {}.{}, headers {}", major, minor, headers);
  for (const char* option : kOptions) key = key + " " + option;
  return key + " " + architecture_of(capability) + "\n";
}

std::string compile(const std::string& source, int capability) {
  Program program(source);
  program.compile(architecture_of(capability));
  return program.machine_code();
}

}  // namespace tenon::cuda
