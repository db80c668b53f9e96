// Reads the pickle of a state dict without executing it: a pickle is a program, and of its
// instructions only those are known here that build dictionaries, lists, numbers, texts and the
// description of tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/dtype.h>

namespace tenon {

// The functions and types of Python that a state dict needs. None of them is called.
enum class PickleGlobal {
  ordered_dict,
  size,
  rebuild_tensor,
  rebuild_tensor_v3,
  rebuild_parameter,
  storage,
  untyped_storage,
  dtype
};
struct KnownGlobal {
  std::string_view module, name;
  PickleGlobal kind;
  // For a storage or dtype:
  std::string_view dtype_name = {};
  size_t element_bytes = 0;
  std::optional<DType> dtype = {};  // nullopt if Tenon does not have it
};

enum class PickleKind : uint8_t {
  none,
  boolean,
  integer,
  big_integer,
  real,
  text,
  tuple,
  list,
  dict,
  global,
  storage,
  tensor,
  tensor_v3
};

struct PickleValue {
  PickleKind kind = PickleKind::none;
  // An integer or boolean itself; for a storage and a tensor, the position of the tuple that
  // describes it: its persistent id, or the arguments of the function that rebuilds it.
  int64_t integer = 0;
  std::string_view text = {};      // of a text, in the bytes of the pickle
  const KnownGlobal* global = {};  // of a global
  // Positions of values: the elements of a tuple or list; key, value, key, value … of a dict.
  std::vector<uint32_t> items = {};
};

// The values of a pickle, which refer to each other by position. A value may contain itself.
struct Pickle {
  std::vector<char> bytes;
  std::vector<PickleValue> values;
  uint32_t root = 0;
};

// A pickle may be so long, and build so many values: a state dict has about 20 for a tensor.
inline constexpr uint64_t kMaxPickleBytes = uint64_t{64} << 20;
inline constexpr size_t kMaxPickleValues = size_t{4} << 20;

// Throws a CheckpointError for an instruction or a global that a state dict does not need, which it
// names, and for a pickle that is not one. Nothing recurses, and memory is bounded by the limits.
Pickle read_pickle(std::vector<char> bytes);

// Returns what a value is: "a tensor", "a dictionary of 3 entries", "a number".
std::string describe(const Pickle& pickle, uint32_t value);

}  // namespace tenon
