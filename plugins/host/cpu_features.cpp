#include <algorithm>
#include <cctype>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <tenon/core/base/never_destroyed.h>
#include <tenon/plugins/host/cpu_features.h>
#include <tenon/plugins/host/files.h>

namespace tenon::plugins {

namespace {

// Reads the file as far as the features of the first processor. A stream of the standard library
// would end early without an error if memory is short.
std::string beginning_of_cpuinfo() {
  struct File {
    const int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ~File() {
      if (fd >= 0) close(fd);
    }
  } file;
  if (file.fd < 0) require_descriptors(errno, "/proc/cpuinfo");
  std::string text;
  char part[4096];
  for (ssize_t n; file.fd >= 0 && (n = read(file.fd, part, sizeof part)) > 0;) {
    text.append(part, static_cast<size_t>(n));
    if (text.find("\n\n") != text.npos) break;
  }
  return text;
}

void add_words(std::string_view line, std::set<std::string>& found) {
  for (size_t begin; (begin = line.find_first_not_of(" \t")) != line.npos;) {
    line.remove_prefix(begin);
    const auto word = line.substr(0, line.find_first_of(" \t"));
    found.emplace(word);
    line.remove_prefix(word.size());
  }
}

struct Features {
  std::set<std::string> found;
  Features() {
    const std::string text = beginning_of_cpuinfo();
    for (std::string_view rest = text; !rest.empty() && found.empty();) {
      const auto line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const auto colon = line.find(':');
      if (colon != line.npos && (line.starts_with("flags") || line.starts_with("Features")))
        add_words(line.substr(colon + 1), found);
    }
  }
};

// The names in /proc/cpuinfo of what a library may be compiled for, on x86 and ARM.
constexpr std::string_view kKnown =
    "mmx fxsr sse sse2 pni ssse3 sse4_1 sse4_2 sse4a misalignsse cx8 cx16 lahf_lm popcnt cmov "
    "clflush clflushopt clwb syscall rdtscp 3dnow 3dnowext 3dnowprefetch pclmulqdq aes sha_ni "
    "sha512 sm3 sm4 movbe abm bmi1 bmi2 tbm adx f16c fma fma4 xop xsave xsaveopt xsavec xsaves avx "
    "avx2 avx_vnni avx_vnni_int8 avx_vnni_int16 avx_ifma avx_ne_convert avx512f avx512cd avx512er "
    "avx512pf avx512bw avx512dq avx512vl avx512ifma avx512vbmi avx512_vbmi2 avx512_vnni "
    "avx512_bitalg avx512_vpopcntdq avx512_4vnniw avx512_4fmaps avx512_vp2intersect avx512_bf16 "
    "avx512_fp16 avx10 amx_tile amx_int8 amx_bf16 amx_fp16 amx_complex gfni vaes vpclmulqdq rdrand "
    "rdseed rdpid fsgsbase erms fsrm rtm hle movdiri movdir64b serialize waitpkg cldemote "
    "wbnoinvd pku prefetchwt1 cmpccxadd fp asimd evtstrm pmull sha1 sha2 crc32 atomics fphp "
    "asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3 asimddp sve asimdfhm dit uscat ilrcpc "
    "flagm ssbs sb paca pacg dcpodp sve2 sveaes svepmull svebitperm svesha3 svesm4 flagm2 frint "
    "svei8mm svef32mm svef64mm svebf16 i8mm bf16 dgh rng bti mte sve2p1 sme sme2 smei16i64 "
    "smef64f64 "
    "smei8i32 smef16f32 smeb16f32 smef32f32 smefa64 wfxt ebf16";

// Letters and digits alone, in lower case: "AVX-512F" and "avx_512f" are "avx512f".
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::string remark_on_feature(const std::string& name) {
  std::set<std::string> known = cpu_features();
  add_words(kKnown, known);
  if (known.contains(name)) return "";
  // As compilers call them.
  constexpr std::pair<std::string_view, const char*> others[] = {
      {"lzcnt", "abm"},        {"sse3", "pni"},   {"bmi", "bmi1"},
      {"pclmul", "pclmulqdq"}, {"sha", "sha_ni"}, {"neon", "asimd"}};
  for (auto& [other, real] : others)
    if (plain(name) == other) return fmt::format(" (no known name; did you mean {}?)", real);
  for (auto& real : known)
    if (plain(name) == plain(real)) return fmt::format(" (no known name; did you mean {}?)", real);
  return " (no known name)";
}

const std::set<std::string>& cpu_features() {
  static constinit NeverDestroyed<Features> features;  // a device may be opened at exit
  return features.get().found;
}

}  // namespace tenon::plugins
