// PyTorch's steps of optimizers, and the optimizers by their names.
#pragma once

#include <memory>
#include <stdexcept>
#include <type_traits>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include <tenon/tenon.h>

#include "ops/check.h"
#include "places.h"

namespace tenon::test {

using nlohmann::json;

struct Case {
  std::string op;
  json args;
  Tensor param, grads, steps;
};

inline Tensor read_tensor(hid_t group, const char* name) {
  hid_t set = H5Dopen2(group, name, H5P_DEFAULT), space = H5Dget_space(set);
  hsize_t dims[Shape::max_rank];
  int rank = H5Sget_simple_extent_dims(space, dims, nullptr);
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(static_cast<int64_t>(dims[i]));
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Sclose(space);
  H5Dclose(set);
  return doubles(values, shape);
}

inline std::string read_text(hid_t group, const char* name) {
  hid_t attribute = H5Aopen(group, name, H5P_DEFAULT), type = H5Aget_type(attribute);
  char* text = nullptr;
  H5Aread(attribute, type, &text);
  std::string result(text);
  H5free_memory(text);
  H5Tclose(type);
  H5Aclose(attribute);
  return result;
}

inline std::vector<Case> reference_cases(const std::string& name) {
  hid_t file = H5Fopen((reference_dir() + "/cases/" + name).c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  BOOST_REQUIRE(file >= 0);
  H5G_info_t info;
  H5Gget_info(file, &info);
  std::vector<Case> cases;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char name[64];
    H5Lget_name_by_idx(file, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT);
    hid_t group = H5Gopen2(file, name, H5P_DEFAULT);
    cases.push_back({read_text(group, "op"), json::parse(read_text(group, "args")),
                     read_tensor(group, "param"), read_tensor(group, "grads"),
                     read_tensor(group, "steps")});
    H5Gclose(group);
  }
  H5Fclose(file);
  return cases;
}

inline std::vector<Case> reference_cases() {
  auto cases = reference_cases("optim.h5");
  for (auto& c : reference_cases("optim_more.h5")) cases.push_back(std::move(c));
  return cases;
}

// Each option that the arguments name.
template <class O>
O read_options(const json& args) {
  O o;
#define TENON_TAKE(field) \
  if constexpr (requires { o.field; }) o.field = args.value(#field, o.field)
  TENON_TAKE(lr);
  TENON_TAKE(momentum);
  TENON_TAKE(dampening);
  TENON_TAKE(weight_decay);
  TENON_TAKE(nesterov);
  TENON_TAKE(maximize);
  TENON_TAKE(betas);
  TENON_TAKE(eps);
  TENON_TAKE(amsgrad);
  TENON_TAKE(alpha);
  TENON_TAKE(centered);
  TENON_TAKE(lr_decay);
  TENON_TAKE(initial_accumulator_value);
  TENON_TAKE(rho);
  TENON_TAKE(momentum_decay);
  TENON_TAKE(decoupled_weight_decay);
  TENON_TAKE(lambd);
  TENON_TAKE(t0);
  TENON_TAKE(etas);
  TENON_TAKE(step_sizes);
#undef TENON_TAKE
  return o;
}

inline const std::vector<std::string>& optimizers() {
  static const std::vector<std::string> names = {"SGD",     "Adam",     "AdamW",  "RMSprop",
                                                 "Adagrad", "Adadelta", "Adamax", "NAdam",
                                                 "RAdam",   "ASGD",     "Rprop",  "Lion"};
  return names;
}

inline std::unique_ptr<optim::Optimizer> make(const std::string& op, const json& args,
                                              std::vector<Tensor> params) {
  using namespace optim;
  auto as = [&]<class T, class O>(std::type_identity<T>, std::type_identity<O>) {
    return std::unique_ptr<Optimizer>(new T(std::move(params), read_options<O>(args)));
  };
#define TENON_OPTIMIZER(name) \
  if (op == #name) return as(std::type_identity<name>(), std::type_identity<name##Options>())
  TENON_OPTIMIZER(SGD);
  TENON_OPTIMIZER(Adam);
  TENON_OPTIMIZER(AdamW);
  TENON_OPTIMIZER(RMSprop);
  TENON_OPTIMIZER(Adagrad);
  TENON_OPTIMIZER(Adadelta);
  TENON_OPTIMIZER(Adamax);
  TENON_OPTIMIZER(NAdam);
  TENON_OPTIMIZER(RAdam);
  TENON_OPTIMIZER(ASGD);
  TENON_OPTIMIZER(Rprop);
  TENON_OPTIMIZER(Lion);
#undef TENON_OPTIMIZER
  throw std::invalid_argument("no optimizer is called " + op);
}

}  // namespace tenon::test
