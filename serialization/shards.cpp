#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <memory>
#include <set>
#include <system_error>

#include <dirent.h>
#include <sys/random.h>
#include <unistd.h>

#include <tenon/core/base/input_file.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/shards.h>
#include <tenon/serialization/tensor_file.h>
#include <tenon/serialization/verified_file.h>

namespace tenon {
namespace {

constexpr size_t kMaxShards = 99'999;  // names have five digits
constexpr std::string_view kEnding = ".h5";
constexpr auto kClockSetBack = std::chrono::minutes(10);  // at most

std::string key_of(size_t number, const char* what) {
  return fmt::format("shard.{:05}.{}", number + 1, what);
}

std::string hex_of(const Checksum& sum) { return fmt::format("{:016x}{:016x}", sum.high, sum.low); }

uint64_t number_from_hex(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, 16);
  if (text.size() != 16 || error != std::errc() || stop != end)
    throw CheckpointError("its list of shards is damaged: a checksum has 32 hexadecimal digits");
  return number;
}

// Whether the text is that of a number of so many digits.
bool is_number(std::string_view text, size_t digits, std::string_view of) {
  return text.size() == digits && text.find_first_not_of(of) == text.npos;
}

[[noreturn]] void cannot_look(const std::filesystem::path& path, int error) {
  throw CheckpointError(fmt::format("cannot look into '{}': {}", printable(path.native()),
                                    std::system_category().message(error)));
}

// Throws unless the list is complete: what it lacks would be taken for unused.
std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(folder.c_str()), closedir);
  if (!opened) cannot_look(folder, errno);
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(opened.get());
    if (!entry && errno != 0) cannot_look(folder, errno);
    if (!entry) return names;
    names.emplace_back(entry->d_name);
  }
}

// Returns the names of the shards that a file lists; none if it is no index. Throws if it is a
// checkpoint that cannot be read.
std::vector<std::string> listed_in(const std::filesystem::path& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::none) cannot_look(path, error.value());
  if (type != std::filesystem::file_type::regular) return {};
  std::array<std::byte, kCheckpointHeaderBytes> first;
  {
    const InputFile file(path, "cannot look into", InputFile::throw_as<CheckpointError>);
    const size_t count = file.read(first.data(), first.size(), 0);
    if (count == 0 || !begins_as_checkpoint({first.data(), count})) return {};
    if (decode_header({first.data(), count}).pieces_at == 0) return {};  // older than indexes
  }
  std::vector<std::string> names;
  const VerifiedFile index(path, VerifiedFile::Shards::listed);
  for (const Shard& shard : index.shards()) names.push_back(shard.name);
  return names;
}

// Takes out what a file that cannot be read may list: it may be an index. An index is written after
// its shards, so that it does not list newer ones, unless the clock was set back in between.
void spare_older(const std::filesystem::path& folder, const std::string& name,
                 std::set<std::string>& unused, const std::string& why) {
  const auto written = [&](const std::string& of) {
    std::error_code error;
    const auto time = std::filesystem::last_write_time(folder / of, error);
    if (error) cannot_look(folder / of, error.value());
    return time;
  };
  const auto last = written(name) + kClockSetBack;
  if (std::erase_if(unused, [&](const std::string& shard) {
        return index_of_shard(shard) == name || written(shard) <= last;
      }) > 0)
    log_message(TN_LOG_WARNING, "tenon", fmt::format("shards of earlier saves stay: {}", why));
}

void remove_unused(const std::filesystem::path& folder,
                   const std::function<bool(const std::string& index)>& is_meant) {
  if (access(folder.c_str(), R_OK) != 0) return;  // it may be one that takes files and lists none
  const auto is_ours = [&](const std::string& name) {
    const std::optional<std::string> index = index_of_shard(name);
    return index && is_meant(*index);
  };
  std::set<std::string> unused;
  bool unfinished = false;
  for (const std::string& name : names_in(folder)) {
    if (is_ours(name)) unused.insert(name);
    unfinished = unfinished || is_ours(name_of_unfinished(name).value_or(""));
  }
  if (unfinished) remove_left_overs(folder, is_ours);
  if (unused.empty()) return;
  // Whoever wrote one of these shards and has not finished has an index that is not finished. It is
  // looked for after the shards: a save that has ended meanwhile is in an index by now.
  const std::vector<std::string> names = names_in(folder);
  for (const std::string& name : names)
    if (const auto index = name_of_unfinished(name); index && is_meant(*index)) {
      remove_left_over(folder / name);  // stays while it is being written
      std::error_code error;
      if (std::filesystem::symlink_status(folder / name, error).type() !=
          std::filesystem::file_type::not_found)
        return;
    }
  for (const std::string& name : names) {
    if (index_of_shard(name) || name_of_unfinished(name)) continue;
    try {
      for (const std::string& used : listed_in(folder / name)) unused.erase(used);
    } catch (const CheckpointError& error) {
      spare_older(folder, name, unused, error.what());
    }
  }
  for (const std::string& name : unused) remove_left_over(folder / name);
}

}  // namespace

bool is_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

CheckpointValues values_of_shards(const std::vector<Shard>& shards) {
  CheckpointValues values{{"count", shards.size()}};
  for (size_t i = 0; i < shards.size(); ++i) {
    values[key_of(i, "name")] = shards[i].name;
    values[key_of(i, "bytes")] = shards[i].bytes;
    values[key_of(i, "checksum")] = hex_of(shards[i].header);
  }
  return values;
}

std::vector<Shard> shards_from(const CheckpointValues& values) {
  try {
    const uint64_t count = values.at("count").natural();
    if (count == 0 || count > values.size())
      throw CheckpointError(fmt::format("its list of shards is damaged: it would have {}", count));
    std::vector<Shard> shards;
    for (size_t i = 0; i < count; ++i) {
      Shard& shard = shards.emplace_back();
      shard.name = values.at(key_of(i, "name")).text();
      shard.bytes = values.at(key_of(i, "bytes")).natural();
      const std::string& hex = values.at(key_of(i, "checksum")).text();
      if (hex.size() != 32) number_from_hex("");
      shard.header = {.low = number_from_hex(std::string_view(hex).substr(16)),
                      .high = number_from_hex(std::string_view(hex).substr(0, 16))};
      if (!is_file_name(shard.name))
        throw CheckpointError(
            fmt::format("its list of shards names '{}', which is not a file in "
                        "its folder",
                        excerpt(shard.name)));
    }
    return shards;
  } catch (const StateDictError& error) {
    throw CheckpointError(fmt::format("its list of shards is damaged: {}", error.what()));
  }
}

std::string name_of_shard(const std::string& index, uint64_t save, size_t number, size_t count) {
  return fmt::format("{}.{:016x}-{:05}-of-{:05}{}", index, save, number + 1, count, kEnding);
}

std::optional<std::string> index_of_shard(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789", kHex = "0123456789abcdef", kOf = "-of-";
  constexpr size_t kTail = 1 + 16 + 1 + 5 + kOf.size() + 5 + kEnding.size();
  if (name.size() <= kTail) return std::nullopt;
  const std::string_view tail = name.substr(name.size() - kTail);
  if (tail[0] != '.' || !is_number(tail.substr(1, 16), 16, kHex) || tail[17] != '-' ||
      !is_number(tail.substr(18, 5), 5, kDigits) || tail.substr(23, 4) != kOf ||
      !is_number(tail.substr(27, 5), 5, kDigits) || tail.substr(32) != kEnding)
    return std::nullopt;
  return std::string(name.substr(0, name.size() - kTail));
}

uint64_t number_of_save() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) == sizeof number) return number;
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return static_cast<uint64_t>(now) ^ static_cast<uint64_t>(getpid()) << 44;
}

std::vector<size_t> divide(const std::vector<StoredTensor>& tensors, uint64_t max_shard_size) {
  std::vector<size_t> ends;
  uint64_t bytes = 0;
  for (size_t i = 0; max_shard_size > 0 && i < tensors.size(); ++i) {
    const uint64_t more = value_bytes(tensors[i].shape, tensors[i].dtype);
    if (bytes > 0 && (more > max_shard_size || bytes > max_shard_size - more)) {
      ends.push_back(i);
      bytes = 0;
    }
    bytes += more;
  }
  ends.push_back(tensors.size());
  if (ends.size() > kMaxShards)
    throw CheckpointError(
        fmt::format("with a .max_shard_size of {} bytes it would have {} shards, and it can have "
                    "{}; give a larger one",
                    max_shard_size, ends.size(), kMaxShards));
  return ends;
}

void remove_unused_shards(const std::filesystem::path& folder,
                          const std::function<bool(const std::string& index)>& is_meant) noexcept {
  try {
    try {
      remove_unused(folder, is_meant);
    } catch (const CheckpointError& error) {
      log_message(TN_LOG_WARNING, "tenon",
                  fmt::format("shards of earlier saves stay: {}", error.what()));
    }
  } catch (const std::exception&) {  // there is no memory
  }
}

}  // namespace tenon
