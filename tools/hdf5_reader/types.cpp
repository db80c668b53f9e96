// Which of Tenon's types the elements of a data set have.
#include <array>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "contents.h"

namespace tenon::reader {
namespace {

using hdf5_wire::EntryKind;
using hdf5_wire::Type;

// Whether a type is `wanted`, in either order of bytes.
bool is_type(hid_t type, const Handle& wanted) {
  for (const H5T_order_t order : {H5T_ORDER_LE, H5T_ORDER_BE}) {
    const Handle other(H5Tcopy(wanted), H5Tclose, "copy a type");
    check(H5Tset_order(other, order), "make a type");
    if (check(H5Tequal(type, other), "compare types") > 0) return true;
  }
  return false;
}

std::string whole_number_name(hid_t type) {
  return fmt::format("{}{}", H5Tget_sign(type) == H5T_SGN_NONE ? "uint" : "int",
                     H5Tget_precision(type));
}

// Whether a data set is bfloat16 in Tenon's own files: words of 16 bits with an attribute.
bool is_marked_bf16(hid_t dataset) {
  if (check(H5Aexists(dataset, "dtype"), "look for an attribute") <= 0) return false;
  const Handle attribute(H5Aopen(dataset, "dtype", H5P_DEFAULT), H5Aclose, "open an attribute");
  const Handle type(H5Aget_type(attribute), H5Tclose, "read an attribute's type");
  const Handle space(H5Aget_space(attribute), H5Sclose, "read an attribute's space");
  std::array<char, 17> text{};
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 ||
      H5Tget_size(type) >= text.size() || H5Sget_simple_extent_npoints(space) != 1)
    return false;
  check(H5Aread(attribute, type, text.data()), "read an attribute");
  return std::string_view(text.data()) == "bf16";
}

// Whether an enumeration is h5py's: FALSE and TRUE.
bool is_bool(hid_t type) {
  if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
  int8_t value = -1;
  return H5Tenum_valueof(type, "FALSE", &value) >= 0 && value == 0 &&
         H5Tenum_valueof(type, "TRUE", &value) >= 0 && value == 1;
}

const char* name_of_class(H5T_class_t kind) {
  switch (kind) {
    case H5T_STRING:
      return "text";
    case H5T_COMPOUND:
      return "records, or complex numbers";
    case H5T_REFERENCE:
      return "references";
    case H5T_ENUM:
      return "an enumeration";
    case H5T_VLEN:
      return "lists of varying length";
    case H5T_ARRAY:
      return "arrays inside an array";
    case H5T_BITFIELD:
      return "bit fields";
    case H5T_OPAQUE:
      return "bytes without a meaning";
    default:
      return "no numbers";
  }
}

}  // namespace

void describe_type(hid_t dataset, Item& item) {
  const Handle type(H5Dget_type(dataset), H5Tclose, "read its type");
  const H5T_class_t kind = H5Tget_class(type);
  auto unreadable = [&](const std::string& name) {
    item.kind = EntryKind::unreadable;
    item.why = "its type " + name + " is none of Tenon's; store it as float32 or int32";
  };
  if (kind == H5T_ENUM && is_bool(type)) {
    item.type = Type::boolean;
  } else if (kind == H5T_FLOAT) {
    for (const Type known : {Type::f32, Type::f64, Type::f16, Type::bf16})
      if (is_type(type, memory_type(known))) return void(item.type = known);
    unreadable(fmt::format("of floating point with {} bits", 8 * H5Tget_size(type)));
  } else if (kind == H5T_INTEGER) {
    for (const Type known : {Type::i64, Type::i32, Type::u8})
      if (is_type(type, memory_type(known))) return void(item.type = known);
    if (check(H5Tequal(type, H5T_STD_U16LE), "compare types") > 0 && is_marked_bf16(dataset))
      return void(item.type = Type::bf16);
    unreadable(whole_number_name(type));
  } else {
    item.kind = EntryKind::left_out;
    item.why = std::string("it holds ") + name_of_class(kind);
  }
}

Handle memory_type(Type type) {
  auto copy = [](hid_t known) { return Handle(H5Tcopy(known), H5Tclose, "copy a type"); };
  switch (type) {
    case Type::f32:
      return copy(H5T_IEEE_F32LE);
    case Type::f64:
      return copy(H5T_IEEE_F64LE);
    case Type::f16:
      return hdf5::short_float<Fault>(5);
    case Type::bf16:
      return hdf5::short_float<Fault>(8);
    case Type::i64:
      return copy(H5T_STD_I64LE);
    case Type::i32:
      return copy(H5T_STD_I32LE);
    case Type::u8:
      return copy(H5T_STD_U8LE);
    case Type::boolean:
      break;
  }
  return copy(H5T_STD_I8LE);
}

size_t size_of(Type type) {
  constexpr size_t kSizes[] = {4, 8, 2, 2, 8, 4, 1, 1};
  return kSizes[static_cast<size_t>(type)];
}

}  // namespace tenon::reader
