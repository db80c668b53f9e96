#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/pickle.h>

namespace tenon {
namespace {

constexpr auto kStorage = PickleGlobal::storage;
constexpr auto kDtype = PickleGlobal::dtype;
constexpr std::array kGlobals = {
    KnownGlobal{"collections", "OrderedDict", PickleGlobal::ordered_dict},
    KnownGlobal{"torch", "Size", PickleGlobal::size},
    KnownGlobal{"torch._utils", "_rebuild_tensor_v2", PickleGlobal::rebuild_tensor},
    KnownGlobal{"torch._utils", "_rebuild_tensor_v3", PickleGlobal::rebuild_tensor_v3},
    KnownGlobal{"torch._utils", "_rebuild_parameter", PickleGlobal::rebuild_parameter},
    KnownGlobal{"torch", "UntypedStorage", PickleGlobal::untyped_storage},
    KnownGlobal{"torch.storage", "UntypedStorage", PickleGlobal::untyped_storage},
    KnownGlobal{"torch", "FloatStorage", kStorage, "float32", 4, f32},
    KnownGlobal{"torch", "DoubleStorage", kStorage, "float64", 8, f64},
    KnownGlobal{"torch", "HalfStorage", kStorage, "float16", 2, f16},
    KnownGlobal{"torch", "BFloat16Storage", kStorage, "bfloat16", 2, bf16},
    KnownGlobal{"torch", "LongStorage", kStorage, "int64", 8, i64},
    KnownGlobal{"torch", "IntStorage", kStorage, "int32", 4, i32},
    KnownGlobal{"torch", "ByteStorage", kStorage, "uint8", 1, u8},
    KnownGlobal{"torch", "BoolStorage", kStorage, "bool", 1, boolean},
    KnownGlobal{"torch", "CharStorage", kStorage, "int8", 1},
    KnownGlobal{"torch", "ShortStorage", kStorage, "int16", 2},
    KnownGlobal{"torch", "ComplexFloatStorage", kStorage, "complex64", 8},
    KnownGlobal{"torch", "ComplexDoubleStorage", kStorage, "complex128", 16},
    KnownGlobal{"torch", "float32", kDtype, "float32", 4, f32},
    KnownGlobal{"torch", "float64", kDtype, "float64", 8, f64},
    KnownGlobal{"torch", "float16", kDtype, "float16", 2, f16},
    KnownGlobal{"torch", "bfloat16", kDtype, "bfloat16", 2, bf16},
    KnownGlobal{"torch", "int64", kDtype, "int64", 8, i64},
    KnownGlobal{"torch", "int32", kDtype, "int32", 4, i32},
    KnownGlobal{"torch", "uint8", kDtype, "uint8", 1, u8},
    KnownGlobal{"torch", "bool", kDtype, "bool", 1, boolean},
    KnownGlobal{"torch", "int8", kDtype, "int8", 1},
    KnownGlobal{"torch", "int16", kDtype, "int16", 2},
    KnownGlobal{"torch", "uint16", kDtype, "uint16", 2},
    KnownGlobal{"torch", "uint32", kDtype, "uint32", 4},
    KnownGlobal{"torch", "uint64", kDtype, "uint64", 8},
    KnownGlobal{"torch", "complex64", kDtype, "complex64", 8},
    KnownGlobal{"torch", "complex128", kDtype, "complex128", 16},
    KnownGlobal{"torch", "float8_e4m3fn", kDtype, "float8_e4m3fn", 1},
    KnownGlobal{"torch", "float8_e5m2", kDtype, "float8_e5m2", 1},
    KnownGlobal{"torch", "float8_e4m3fnuz", kDtype, "float8_e4m3fnuz", 1},
    KnownGlobal{"torch", "float8_e5m2fnuz", kDtype, "float8_e5m2fnuz", 1},
    KnownGlobal{"torch", "float8_e8m0fnu", kDtype, "float8_e8m0fnu", 1},
};

// What the four values are that a pickle makes most often, and which need no memory of their own.
enum : uint32_t { kNone, kTrue, kFalse, kEmptyTuple };

[[noreturn]] void bad_pickle(const std::string& why) {
  throw CheckpointError("its pickle is damaged: " + why);
}

[[noreturn]] void refuse_pickle(const std::string& what) {
  throw CheckpointError(
      fmt::format("its pickle {}, which a state dict of tensors does not need and which is not "
                  "executed. Save a state dict: torch.save(model.state_dict(), path)",
                  what));
}

// The machine of the pickle protocol: a stack of values, marks in it, and a memo.
class Unpickler {
 public:
  explicit Unpickler(Pickle& pickle) : pickle_(pickle) {
    const std::array kinds = {PickleKind::none, PickleKind::boolean, PickleKind::boolean,
                              PickleKind::tuple};
    for (PickleKind kind : kinds) add({.kind = kind, .integer = 0});
    pickle.values[kTrue].integer = 1;
  }

  void run() {
    while (!done_) step(next<unsigned char>());
    if (at_ != pickle_.bytes.size() || stack_.size() != 1 || !marks_.empty())
      bad_pickle("it does not end with its one value");
    pickle_.root = stack_[0];
  }

 private:
  // ---- bytes ----

  std::string_view take(uint64_t count) {
    if (count > pickle_.bytes.size() - at_) bad_pickle("it is cut off");
    const std::string_view text(pickle_.bytes.data() + at_, count);
    at_ += count;
    return text;
  }
  template <class T>
  T next() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view line() {
    const std::string_view rest(pickle_.bytes.data() + at_, pickle_.bytes.size() - at_);
    const size_t end = rest.find('\n');
    if (end == rest.npos) bad_pickle("it is cut off");
    return take(end + 1).substr(0, end);
  }

  // ---- values ----

  uint32_t add(PickleValue value) {
    if (pickle_.values.size() == kMaxPickleValues)
      throw CheckpointError(fmt::format("its pickle has more than {} values", kMaxPickleValues));
    pickle_.values.push_back(std::move(value));
    return static_cast<uint32_t>(pickle_.values.size() - 1);
  }
  void push(uint32_t value) {
    if (stack_.size() == kMaxPickleValues)
      throw CheckpointError(fmt::format("its pickle has more than {} values", kMaxPickleValues));
    stack_.push_back(value);
  }
  void push_new(PickleValue value) { push(add(std::move(value))); }
  void push_integer(int64_t value) { push_new({.kind = PickleKind::integer, .integer = value}); }
  void push_text(std::string_view text) { push_new({.kind = PickleKind::text, .text = text}); }
  // What lies below the last mark is not there for an instruction.
  void require_values(size_t count) const {
    if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < count)
      bad_pickle("an instruction lacks its values");
  }
  uint32_t pop() {
    require_values(1);
    const uint32_t value = stack_.back();
    stack_.pop_back();
    return value;
  }
  std::vector<uint32_t> pop_many(size_t count) {
    require_values(count);
    std::vector<uint32_t> values(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return values;
  }
  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) bad_pickle("an instruction lacks its mark");
    std::vector<uint32_t> values = pop_many(stack_.size() - marks_.back());
    marks_.pop_back();
    return values;
  }
  PickleValue& top(PickleKind kind, const char* what) {
    require_values(1);
    PickleValue& value = pickle_.values[stack_.back()];
    if (value.kind != kind) refuse_pickle(what);
    return value;
  }

  // ---- instructions ----

  void push_tuple(std::vector<uint32_t> items) {
    if (items.empty())
      push(kEmptyTuple);
    else
      push_new({.kind = PickleKind::tuple, .items = std::move(items)});
  }
  void extend(PickleKind kind, const std::vector<uint32_t>& values, const char* what) {
    PickleValue& target = top(kind, what);
    if (kind == PickleKind::dict && values.size() % 2 != 0) bad_pickle("a key lacks its value");
    target.items.insert(target.items.end(), values.begin(), values.end());
  }
  void memoize(uint64_t index) {
    require_values(1);
    if (index >= kMaxPickleValues) bad_pickle("its memo is too large");
    if (index >= memo_.size()) memo_.resize(index + 1, kMaxPickleValues);
    memo_[index] = stack_.back();
  }
  void recall(uint32_t index) {
    if (index >= memo_.size() || memo_[index] == kMaxPickleValues)
      bad_pickle("it recalls a value that it does not have");
    push(memo_[index]);
  }
  void push_global(std::string_view module, std::string_view name) {
    const auto known = std::find_if(kGlobals.begin(), kGlobals.end(), [&](const KnownGlobal& g) {
      return g.module == module && g.name == name;
    });
    if (known == kGlobals.end())
      refuse_pickle(fmt::format("names {}.{}", excerpt(module), excerpt(name)));
    push_new({.kind = PickleKind::global, .global = &*known});
  }
  void push_stack_global() {
    const std::vector<uint32_t> names = pop_many(2);
    const PickleValue &module = pickle_.values[names[0]], &name = pickle_.values[names[1]];
    if (module.kind != PickleKind::text || name.kind != PickleKind::text)
      bad_pickle("the name of a global is not a text");
    push_global(module.text, name.text);
  }
  void push_long(uint64_t count) {
    const std::string_view digits = take(count);
    if (count > sizeof(int64_t)) return push_new({.kind = PickleKind::big_integer});
    int64_t value =
        count > 0 && (digits.back() & 0x80) ? -1 : 0;  // two's complement, little-endian
    std::memcpy(&value, digits.data(), count);
    push_integer(value);
  }
  // A call: none happens. What it would give is noted.
  void reduce() {
    const std::vector<uint32_t> call = pop_many(2);
    const PickleValue &function = pickle_.values[call[0]], &arguments = pickle_.values[call[1]];
    if (function.kind != PickleKind::global || arguments.kind != PickleKind::tuple)
      refuse_pickle("calls something that is not a function by name");
    const std::vector<uint32_t>& items = arguments.items;
    const KnownGlobal& global = *function.global;
    switch (global.kind) {
      case PickleGlobal::ordered_dict:
        if (!items.empty()) refuse_pickle("makes an OrderedDict from arguments");
        return push_new({.kind = PickleKind::dict});
      case PickleGlobal::size:
      case PickleGlobal::rebuild_parameter:
        if (items.empty()) bad_pickle("a call lacks its arguments");
        return push(items[0]);
      case PickleGlobal::rebuild_tensor:
        return push_new({.kind = PickleKind::tensor, .integer = call[1]});
      case PickleGlobal::rebuild_tensor_v3:
        return push_new({.kind = PickleKind::tensor_v3, .integer = call[1]});
      default:
        refuse_pickle(fmt::format("calls {}.{}", global.module, global.name));
    }
  }
  void push_persistent() {
    const uint32_t id = pop();
    if (pickle_.values[id].kind != PickleKind::tuple)
      bad_pickle("a storage is not described by a tuple");
    push_new({.kind = PickleKind::storage, .integer = id});
  }
  // The attributes of a dictionary; a state dict keeps the versions of its modules there.
  void build() {
    const uint32_t state = pop();
    top(PickleKind::dict, "sets attributes of something that is not a dictionary");
    if (pickle_.values[state].kind != PickleKind::dict)
      refuse_pickle("sets attributes that are not a dictionary");
  }

  void step(unsigned char code) {
    switch (code) {
      case 0x80: {  // PROTO
        const auto protocol = next<unsigned char>();
        if (protocol < 2 || protocol > 5)
          bad_pickle(fmt::format("its protocol {} is unknown", protocol));
        return;
      }
      case 0x95:
        take(8);
        return;  // FRAME
      case '.':
        done_ = true;
        return;
      case '(':
        marks_.push_back(stack_.size());
        return require_few_marks();
      case 'N':
        return push(kNone);
      case 0x88:
        return push(kTrue);
      case 0x89:
        return push(kFalse);
      case 'J':
        return push_integer(next<int32_t>());
      case 'K':
        return push_integer(next<uint8_t>());
      case 'M':
        return push_integer(next<uint16_t>());
      case 0x8a:
        return push_long(next<uint8_t>());
      case 'G':
        take(8);
        return push_new({.kind = PickleKind::real});
      case 'X':
        return push_text(take(next<uint32_t>()));
      case 0x8c:
        return push_text(take(next<uint8_t>()));
      case 0x8d:
        return push_text(take(next<uint64_t>()));
      case ')':
        return push(kEmptyTuple);
      case 't':
        return push_tuple(pop_to_mark());
      case 0x85:
        return push_tuple(pop_many(1));
      case 0x86:
        return push_tuple(pop_many(2));
      case 0x87:
        return push_tuple(pop_many(3));
      case ']':
        return push_new({.kind = PickleKind::list});
      case '}':
        return push_new({.kind = PickleKind::dict});
      case 'a':
        return extend(PickleKind::list, pop_many(1), "appends to something else than a list");
      case 'e':
        return extend(PickleKind::list, pop_to_mark(), "appends to something else than a list");
      case 's':
        return extend(PickleKind::dict, pop_many(2),
                      "sets items of something else than a dictionary");
      case 'u':
        return extend(PickleKind::dict, pop_to_mark(),
                      "sets items of something else than a dictionary");
      case 'q':
        return memoize(next<uint8_t>());
      case 'r':
        return memoize(next<uint32_t>());
      case 0x94:
        return memoize(memo_.size());
      case 'h':
        return recall(next<uint8_t>());
      case 'j':
        return recall(next<uint32_t>());
      case 'c': {
        const std::string_view module = line();
        return push_global(module, line());
      }
      case 0x93:
        return push_stack_global();
      case 'R':
        return reduce();
      case 'b':
        return build();
      case 'Q':
        return push_persistent();
      default:
        refuse_pickle(fmt::format("has the instruction 0x{:02x} at byte {}", code, at_ - 1));
    }
  }
  void require_few_marks() const {
    if (marks_.size() > kMaxPickleValues) bad_pickle("it has too many marks");
  }

  Pickle& pickle_;
  uint64_t at_ = 0;
  bool done_ = false;
  std::vector<uint32_t> stack_, memo_;
  std::vector<size_t> marks_;
};

}  // namespace

Pickle read_pickle(std::vector<char> bytes) {
  Pickle pickle{std::move(bytes), {}, 0};
  Unpickler(pickle).run();
  return pickle;
}

std::string describe(const Pickle& pickle, uint32_t position) {
  const PickleValue& value = pickle.values[position];
  switch (value.kind) {
    case PickleKind::none:
      return "None";
    case PickleKind::boolean:
      return value.integer ? "True" : "False";
    case PickleKind::integer:
      return fmt::format("the number {}", value.integer);
    case PickleKind::big_integer:
    case PickleKind::real:
      return "a number";
    case PickleKind::text:
      return "a text";
    case PickleKind::tuple:
      return fmt::format("a tuple of {}", value.items.size());
    case PickleKind::list:
      return fmt::format("a list of {}", value.items.size());
    case PickleKind::dict: {
      size_t tensors = 0;
      for (size_t i = 1; i < value.items.size(); i += 2) {
        const PickleKind kind = pickle.values[value.items[i]].kind;
        tensors += kind == PickleKind::tensor || kind == PickleKind::tensor_v3;
      }
      const size_t entries = value.items.size() / 2;
      if (entries > 0 && tensors == entries)
        return fmt::format("a state dict of {} tensor{}", tensors, tensors == 1 ? "" : "s");
      return fmt::format("a dictionary of {} entr{}", entries, entries == 1 ? "y" : "ies");
    }
    case PickleKind::global:
      return fmt::format("{}.{}", value.global->module, value.global->name);
    case PickleKind::storage:
      return "a storage";
    case PickleKind::tensor:
    case PickleKind::tensor_v3:
      return "a tensor";
  }
  return "something";
}

}  // namespace tenon
