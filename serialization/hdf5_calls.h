// What libtenon and the program tenon-hdf5-reader need of the HDF5 C library alike. `E` is the
// exception of the caller, which is made of one text.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <hdf5.h>

namespace tenon::hdf5 {

// Returns what HDF5 says about its latest failure. The walk starts at the cause, so the first entry
// says most.
inline std::string last_error() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned depth, const H5E_error2_t* error, void* to) noexcept -> herr_t {
        try {
          if (depth == 0 && error->desc) *static_cast<std::string*>(to) = error->desc;
        } catch (...) {
        }
        return 0;
      },
      &text);
  return text.empty() ? "no reason given" : text;
}

// Throws the E "HDF5 cannot <what>: <why>" if `status` is negative, otherwise returns it.
template <class E, class T>
T check(T status, const char* what) {
  if (status < 0) throw E(std::string("HDF5 cannot ") + what + ": " + last_error());
  return status;
}

// An identifier and the function that closes it. The constructor throws as check() does if the
// identifier is that of a failed call.
template <class E>
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle(hid_t id, Close close, const char* what) : id_(check<E>(id, what)), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }
  // Closes now, and throws if that fails.
  void close(const char* what) { check<E>(close_(std::exchange(id_, -1)), what); }

 private:
  hid_t id_;
  Close close_;
};

// Returns a floating-point type of 16 bits, little-endian, which HDF5 1.10 has no name for: f16 has
// 5 bits of exponent, and bf16 has 8.
template <class E>
Handle<E> short_float(size_t exponent_bits) {
  const size_t mantissa_bits = 15 - exponent_bits, bias = (size_t{1} << (exponent_bits - 1)) - 1;
  Handle<E> type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose, "copy a type");
  check<E>(H5Tset_fields(type, 15, mantissa_bits, exponent_bits, 0, mantissa_bits), "make a type");
  check<E>(H5Tset_size(type, 2), "make a type");
  check<E>(H5Tset_ebias(type, bias), "make a type");
  return type;
}

// Returns the enumeration as which h5py stores bool.
template <class E>
Handle<E> bool_type() {
  Handle<E> type(H5Tenum_create(H5T_STD_I8LE), H5Tclose, "make the bool type");
  for (int8_t value : {0, 1})
    check<E>(H5Tenum_insert(type, value ? "TRUE" : "FALSE", &value), "make the bool type");
  return type;
}

// Returns where the values of a dataset begin in the file, which is not below `least`.
// H5Dget_offset alone is not enough: it adds the length of the user block to any stored address, so
// the address that means "nowhere" becomes a position in the middle of the user block.
template <class E>
uint64_t offset_of(hid_t dataset, uint64_t least) {
  H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
  check<E>(H5Dget_space_status(dataset, &status), "look for its values");
  if (status != H5D_SPACE_STATUS_ALLOCATED) throw E("no space is set aside for its values");
  const haddr_t offset = H5Dget_offset(dataset);
  if (offset == HADDR_UNDEF || offset < least) throw E("its values are outside the file");
  return offset;
}

}  // namespace tenon::hdf5
