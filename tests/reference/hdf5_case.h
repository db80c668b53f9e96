// Reads the reference cases of tests/reference/cases (FORMAT.md there) through HDF5's C API.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include <tenon/core/tensor.h>

namespace tenon::test {

// Closes an HDF5 handle; refuses a negative one.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t), const std::string& what) : id_(id), close_(close) {
    if (id < 0) throw std::runtime_error("HDF5: cannot open " + what);
  }
  ~Handle() { close_(id_); }
  Handle(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

inline bool exists(hid_t parent, const std::string& name) {
  return H5Lexists(parent, name.c_str(), H5P_DEFAULT) > 0;
}

// Names of a group's members, sorted.
inline std::vector<std::string> members(hid_t group) {
  H5G_info_t info;
  if (H5Gget_info(group, &info) < 0) throw std::runtime_error("HDF5: cannot list a group");
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char name[256];
    H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT);
    names.emplace_back(name);
  }
  return names;
}

inline std::string text_attribute(hid_t object, const char* name) {
  Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose, name);
  Handle type(H5Aget_type(attribute), H5Tclose, name);
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute, type, &text) < 0)
      throw std::runtime_error(std::string("HDF5: cannot read attribute ") + name);
    std::string result = text;
    H5free_memory(text);
    return result;
  }
  std::string result(H5Tget_size(type), '\0');
  if (H5Aread(attribute, type, result.data()) < 0)
    throw std::runtime_error(std::string("HDF5: cannot read attribute ") + name);
  return result.c_str();
}

inline double number_attribute(hid_t object, const char* name) {
  Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose, name);
  double value = 0;
  if (H5Aread(attribute, H5T_NATIVE_DOUBLE, &value) < 0)
    throw std::runtime_error(std::string("HDF5: cannot read attribute ") + name);
  return value;
}

// As f64, i64 or bool, whatever width the file has.
inline Tensor read_tensor(hid_t parent, const std::string& name) {
  Handle dataset(H5Dopen2(parent, name.c_str(), H5P_DEFAULT), H5Dclose, name);
  Handle space(H5Dget_space(dataset), H5Sclose, name);
  Handle type(H5Dget_type(dataset), H5Tclose, name);
  hsize_t dims[H5S_MAX_RANK];
  int rank = H5Sget_simple_extent_dims(space, dims, nullptr);
  Shape shape;
  for (int d = 0; d < rank; ++d) shape.push_back(static_cast<int64_t>(dims[d]));
  auto read = [&](auto value, hid_t memory_type) {
    std::vector<decltype(value)> values(static_cast<size_t>(shape.numel()));
    if (H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
      throw std::runtime_error("HDF5: cannot read " + name);
    return tensor(values, shape);
  };
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return read(double{}, H5T_NATIVE_DOUBLE);
    case H5T_INTEGER:
      return read(int64_t{}, H5T_NATIVE_INT64);
    case H5T_ENUM:
      return read(uint8_t{}, type).to(boolean);  // h5py's FALSE, TRUE: one byte
    default:
      throw std::runtime_error("HDF5: " + name + " is of a type that no case has");
  }
}

// The members "0", "1", … of a group; undefined where one is missing.
inline std::vector<Tensor> read_list(hid_t parent, const std::string& name, size_t count) {
  std::vector<Tensor> result(count);
  if (!exists(parent, name)) return result;
  Handle group(H5Gopen2(parent, name.c_str(), H5P_DEFAULT), H5Gclose, name);
  for (size_t i = 0; i < count; ++i)
    if (exists(group, std::to_string(i))) result[i] = read_tensor(group, std::to_string(i));
  return result;
}

inline size_t count_members(hid_t parent, const std::string& name) {
  Handle group(H5Gopen2(parent, name.c_str(), H5P_DEFAULT), H5Gclose, name);
  return members(group).size();
}

struct Case {
  std::string name;  // "binary.h5/0000_add"
  std::string op;
  nlohmann::json args;
  double rtol = 0, atol = 0;
  std::vector<Tensor> in, out, gout, gin;  // optim.h5: in = {param, grads}, out = {steps}
};

inline std::vector<Case> read_cases(const std::string& folder, const std::string& file) {
  Handle h5(H5Fopen((folder + "/" + file).c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose,
            folder + "/" + file);
  std::vector<Case> cases;
  for (auto& name : members(h5)) {
    Handle group(H5Gopen2(h5, name.c_str(), H5P_DEFAULT), H5Gclose, name);
    Case c;
    c.name = file + "/" + name;
    c.op = text_attribute(group, "op");
    c.args = nlohmann::json::parse(text_attribute(group, "args"));
    c.rtol = number_attribute(group, "rtol");
    c.atol = number_attribute(group, "atol");
    if (exists(group, "param")) {
      c.in = {read_tensor(group, "param"), read_tensor(group, "grads")};
      c.out = {read_tensor(group, "steps")};
    } else {
      c.in = read_list(group, "in", count_members(group, "in"));
      c.out = read_list(group, "out", count_members(group, "out"));
      c.gout = read_list(group, "gout", c.out.size());
      c.gin = read_list(group, "gin", c.in.size());
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace tenon::test
