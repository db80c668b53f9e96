#include <algorithm>
#include <cstdlib>
#include <new>

#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/hdf5.h>

namespace tenon::h5 {
namespace {

ForkMutex& library_mutex() {
  static constinit NeverDestroyed<ForkMutex, ForkOrder::sessions> mutex;
  return mutex.get();
}

// The walk starts at the cause, so the first entry says most.
herr_t take_first(unsigned depth, const H5E_error2_t* error, void* text) noexcept {
  try {
    if (depth == 0 && error->desc) *static_cast<std::string*>(text) = error->desc;
  } catch (...) {
  }
  return 0;
}

Handle half() {
  Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose, "copy a type");
  check(H5Tset_fields(type, 15, 10, 5, 0, 10), "describe half precision");
  check(H5Tset_size(type, 2), "describe half precision");
  check(H5Tset_ebias(type, 15), "describe half precision");
  return type;
}

Handle boolean_enumeration() {
  Handle type(H5Tenum_create(H5T_STD_I8LE), H5Tclose, "make the bool type");
  for (int8_t value : {0, 1})
    check(H5Tenum_insert(type, value ? "TRUE" : "FALSE", &value), "make the bool type");
  return type;
}

hid_t plain_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return H5T_IEEE_F32LE;
    case DType::f64:
      return H5T_IEEE_F64LE;
    case DType::bf16:
      return H5T_STD_U16LE;
    case DType::i64:
      return H5T_STD_I64LE;
    case DType::i32:
      return H5T_STD_I32LE;
    case DType::u8:
      return H5T_STD_U8LE;
    default:
      return -1;
  }
}

}  // namespace

void require_memory(uint64_t tensors, uint64_t name_bytes) {
  // Measured with 1 to 100 000 tensors and rounded up. The cache of metadata stops growing at 32
  // MiB.
  constexpr uint64_t base = 3 << 20, cached = 8 << 10, cache = 48 << 20, listed = 2 << 10;
  const uint64_t bytes =
      base + std::min(tensors * cached, cache) + tensors * listed + 4 * name_bytes;
  void* volatile memory = std::malloc(bytes);  // volatile: otherwise the pair is optimized away
  if (!memory) throw std::bad_alloc();
  std::free(memory);
}

Session::Session() : lock_(library_mutex()) {
  require_memory(0, 0);
  if (H5open() < 0) throw CheckpointError("the HDF5 library cannot be started");
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}
Session::~Session() {
  H5Eclear2(H5E_DEFAULT);
  H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
}

std::string last_error() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &text);
  return text.empty() ? "no reason given" : text;
}

void fail(const char* what) {
  throw CheckpointError(fmt::format("HDF5 cannot {}: {}", what, last_error()));
}

Handle::Handle(hid_t id, Close close, const char* what) : id_(check(id, what)), close_(close) {}

void Handle::close(const char* what) { check(close_(std::exchange(id_, -1)), what); }

Handle stored_type(DType dtype) {
  if (dtype == DType::f16) return half();
  if (dtype == DType::boolean) return boolean_enumeration();
  return Handle(H5Tcopy(plain_type(dtype)), H5Tclose, "copy a type");
}

Handle text_type(size_t bytes) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "copy a type");
  check(H5Tset_size(type, std::max<size_t>(bytes, 1)), "size a text type");
  check(H5Tset_strpad(type, H5T_STR_NULLPAD), "pad a text type");
  check(H5Tset_cset(type, H5T_CSET_UTF8), "make a text type UTF-8");
  return type;
}

}  // namespace tenon::h5
