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

Handle stored_type(DType dtype) {
  if (dtype == DType::f16) return hdf5::short_float<CheckpointError>(5);
  if (dtype == DType::boolean) return hdf5::bool_type<CheckpointError>();
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
