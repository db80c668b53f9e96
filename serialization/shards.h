// Checkpoints in several files: an index, and shards beside it, which are checkpoints themselves.
//
// The shards of each save have names of their own, and the index appears after all of them: so
// until it does, the old index with its shards is what there is. docs/checkpoints.md describes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/serialization/checkpoint_value.h>
#include <tenon/serialization/checksum.h>
#include <tenon/serialization/image.h>

namespace tenon {

// The group of an index. Its values list the shards.
inline constexpr const char* kShardsGroup = "@shards";

// So many shards of an index stay open, and no other save can change what is read of them. Others
// are open only while they are read: most systems let a process have 1024 files open.
inline constexpr size_t kMaxOpenShards = 128;

struct Shard {
  std::string name;  // in the folder of the index
  uint64_t bytes = 0;
  Checksum header;  // checksum_of_header, which depends on every byte of the shard
};

// Whether it is the name of a file in a folder, and leads nowhere else.
bool is_file_name(const std::string& name);

CheckpointValues values_of_shards(const std::vector<Shard>& shards);
// Throws a CheckpointError for values that list no shards, and for names that lead elsewhere.
std::vector<Shard> shards_from(const CheckpointValues& values);

// Returns "model.h5.0123456789abcdef-00001-of-00003.h5" for the index "model.h5" and number 0.
std::string name_of_shard(const std::string& index, uint64_t save, size_t number, size_t count);
// Returns "model.h5" for it, and nullopt for other names.
std::optional<std::string> index_of_shard(std::string_view name);
// Returns a number that no other save has.
uint64_t number_of_save();

// Returns for each shard how many tensors come before its end. Tensors keep their order. Throws a
// CheckpointError if there would be too many shards.
std::vector<size_t> divide(const std::vector<StoredTensor>& tensors, uint64_t max_shard_size);

// Removes the shards in a folder that no index there lists, and what killed processes left of them,
// for indexes whose names `is_meant` accepts. Does nothing while one of these is being written, and
// leaves what is older than a checkpoint in the folder that cannot be read: it may be an index.
// Never throws; what stays goes with a later save.
void remove_unused_shards(const std::filesystem::path& folder,
                          const std::function<bool(const std::string& index)>& is_meant) noexcept;

}  // namespace tenon
