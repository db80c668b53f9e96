#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include <fmt/core.h>
#include <hdf5.h>

#include <tenon/conformance/case.h>
#include <tenon/conformance/case_files.h>
#include <tenon/core/error.h>

namespace tenon::conformance {

namespace {

// More than any case has, and little enough to fit into memory many times.
constexpr int64_t kMaxElements = int64_t{1} << 24;
constexpr size_t kLongestText = size_t{1} << 20;

// HDF5 has a newer version than this library reads.
struct TooNew : DataError {
  using DataError::DataError;
};

// The innermost reason why HDF5 failed last.
std::string reason_of_hdf5() {
  std::string reason;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned n, const H5E_error2_t* error, void* text) -> herr_t {
        if (n == 0 && error->desc) *static_cast<std::string*>(text) = error->desc;
        return 0;
      },
      &reason);
  return reason;
}

[[noreturn]] void refuse_handle(const std::string& what) {
  const std::string reason = reason_of_hdf5();  // before the next call, which clears it
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  const std::string text = fmt::format("HDF5 {}.{}.{} cannot open {}{}{}", major, minor, release,
                                       what, reason.empty() ? "" : ": ", reason);
  if (reason.find("bad version number") != reason.npos) throw TooNew(text);
  throw DataError(text);
}

// Closes an HDF5 handle; refuses a negative one.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t), const std::string& what) : id_(id), close_(close) {
    if (id < 0) refuse_handle(what);
  }
  ~Handle() { close_(id_); }
  Handle(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void require(bool ok, const std::string& wrong) {
  if (!ok) throw DataError(wrong);
}

bool exists(hid_t parent, const std::string& name) {
  return H5Lexists(parent, name.c_str(), H5P_DEFAULT) > 0;
}

Handle group_of(hid_t parent, const std::string& name) {
  return {H5Gopen2(parent, name.c_str(), H5P_DEFAULT), H5Gclose, "the group " + name};
}

// Names of a group's members, sorted.
std::vector<std::string> members(hid_t group) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* list) noexcept {
    try {
      static_cast<std::vector<std::string>*>(list)->emplace_back(name);
      return 0;
    } catch (const std::exception&) {
      return -1;  // nothing may be thrown through HDF5
    }
  };
  require(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names) >= 0,
          "HDF5 cannot list a group");
  return names;
}

std::string text_attribute(hid_t object, const std::string& name) {
  const std::string what = "attribute " + name;
  Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, what);
  Handle type(H5Aget_type(attribute), H5Tclose, what);
  Handle space(H5Aget_space(attribute), H5Sclose, what);
  require(H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1,
          what + " is no text");
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    require(H5Aread(attribute, type, &text) >= 0 && text, "HDF5 cannot read " + what);
    std::string result = text;
    H5free_memory(text);
    return result;
  }
  const size_t size = H5Tget_size(type);
  require(size <= kLongestText, what + " is too long");
  std::string result(size, '\0');
  require(H5Aread(attribute, type, result.data()) >= 0, "HDF5 cannot read " + what);
  return result.c_str();
}

double number_attribute(hid_t object, const std::string& name) {
  const std::string what = "attribute " + name;
  Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, what);
  Handle space(H5Aget_space(attribute), H5Sclose, what);
  require(H5Sget_simple_extent_npoints(space) == 1, what + " is no single number");
  double value = 0;
  require(H5Aread(attribute, H5T_NATIVE_DOUBLE, &value) >= 0, "HDF5 cannot read " + what);
  require(value >= 0 && std::isfinite(value), what + " is no tolerance");
  return value;
}

Shape shape_of(hid_t space, const std::string& name) {
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  require(kind == H5S_SCALAR || kind == H5S_SIMPLE, name + " has no shape");
  hsize_t dims[H5S_MAX_RANK];
  const int rank = H5Sget_simple_extent_dims(space, dims, nullptr);
  require(rank >= 0 && rank <= static_cast<int>(Shape::max_rank),
          name + " has more dimensions than a tensor");
  const hssize_t elements = H5Sget_simple_extent_npoints(space);
  require(elements >= 0 && elements <= kMaxElements,
          fmt::format("{} has more than {} elements", name, kMaxElements));
  Shape shape;
  for (int d = 0; d < rank; ++d) {
    require(dims[d] <= hsize_t{1} << 40, name + " has a dimension that is too long");
    shape.push_back(static_cast<int64_t>(dims[d]));
  }
  return shape;
}

// As f64, i64 or bool, whatever width the file has.
Tensor read_tensor(hid_t parent, const std::string& name) {
  const std::string what = "the tensor " + name;
  Handle dataset(H5Dopen2(parent, name.c_str(), H5P_DEFAULT), H5Dclose, what);
  Handle space(H5Dget_space(dataset), H5Sclose, what);
  Handle type(H5Dget_type(dataset), H5Tclose, what);
  const Shape shape = shape_of(space, what);
  auto read = [&](auto value, hid_t memory_type) {
    std::vector<decltype(value)> values(static_cast<size_t>(shape.numel()));
    require(values.empty() ||
                H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0,
            "HDF5 cannot read " + what);
    return tensor(values, shape);
  };
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return read(double{}, H5T_NATIVE_DOUBLE);
    case H5T_INTEGER:
      return read(int64_t{}, H5T_NATIVE_INT64);
    case H5T_ENUM:  // h5py's FALSE, TRUE: one byte
      require(H5Tget_size(type) == 1, what + " is an enumeration of more than one byte");
      return read(uint8_t{}, type).to(boolean);
    default:
      throw DataError(what + " is of a type that no case has");
  }
}

// The members "0", "1", … of a group; undefined where one is missing.
std::vector<Tensor> read_list(hid_t parent, const std::string& name, size_t count) {
  std::vector<Tensor> result(count);
  if (!exists(parent, name)) return result;
  const Handle group = group_of(parent, name);
  for (size_t i = 0; i < count; ++i)
    if (exists(group, std::to_string(i))) result[i] = read_tensor(group, std::to_string(i));
  return result;
}

std::vector<Tensor> read_all(hid_t parent, const std::string& name) {
  return read_list(parent, name, members(group_of(parent, name)).size());
}

// The attribute "dtype" of each member "0", "1", … of a group.
std::vector<std::string> read_types(hid_t parent, const std::string& name, size_t count) {
  const Handle group = group_of(parent, name);
  std::vector<std::string> types;
  for (size_t i = 0; i < count; ++i) {
    const std::string member = std::to_string(i);
    const Handle dataset(H5Dopen2(group, member.c_str(), H5P_DEFAULT), H5Dclose,
                         "the tensor " + member);
    types.push_back(text_attribute(dataset, "dtype"));
  }
  return types;
}

// The first line of an operator that has cases; null if there is none.
const Line* line_of(const std::string& op) {
  static const auto lines = [] {
    std::map<std::string_view, const Line*> first;
    for (auto& family : table())
      for (auto& line : family.lines)
        if (!line.no_reference) first.emplace(line.name, &line);
    return first;
  }();
  const auto found = lines.find(op);
  return found == lines.end() ? nullptr : found->second;
}

// Puts the inputs, and their gradients, in the order of `names`, undefined where one was not given.
void sort_by_name(ReferenceCase& c, hid_t group, std::string_view names) {
  const Handle inputs = group_of(group, "in");
  std::vector<Tensor> in, gin;
  std::vector<bool> used(c.in.size());
  auto take = [&](auto&& is_meant) {
    for (size_t i = 0; i < c.in.size(); ++i) {
      if (used[i]) continue;
      const Handle dataset(H5Dopen2(inputs, std::to_string(i).c_str(), H5P_DEFAULT), H5Dclose,
                           "an input");
      if (!is_meant(text_attribute(dataset, "name"))) continue;
      used[i] = true;
      in.push_back(c.in[i]);
      gin.push_back(c.gin[i]);
      return true;
    }
    return false;
  };
  std::string last;
  std::istringstream words{std::string(names)};
  for (std::string name; words >> name; last = name)
    if (!take([&](const std::string& n) { return n == name || n == name + ".0"; }))
      in.emplace_back(), gin.emplace_back();
  for (int i = 1; take([&](const std::string& n) { return n == fmt::format("{}.{}", last, i); });)
    ++i;
  for (size_t i = 0; i < used.size(); ++i)
    require(
        used[i],
        fmt::format("input {} has a name that the table of operators does not know (it knows {})",
                    i, names));
  c.in = std::move(in), c.gin = std::move(gin);
}

// Nothing if it is not wanted.
std::shared_ptr<ReferenceCase> read_case(hid_t file, const std::string& name,
                                         const CaseReading& reading) {
  const Handle group = group_of(file, name);
  auto result = std::make_shared<ReferenceCase>();
  ReferenceCase& c = *result;
  c.op = text_attribute(group, "op");
  const Line* line = line_of(c.op);
  if (!line) return result;
  if (!reading.wanted(c.op)) return nullptr;
  c.args = nlohmann::json::parse(text_attribute(group, "args"));
  require(c.args.is_object(), "attribute args is no JSON object");
  c.rtol = number_attribute(group, "rtol");
  c.atol = number_attribute(group, "atol");
  if (exists(group, "lr")) {
    // No value of a scheduler is rounded to f32.
    c.f64_only = true;
    if (exists(group, "metric")) c.in = {read_tensor(group, "metric")};
    c.out = {read_tensor(group, "lr")};
    c.args = {{"op", c.op}, {"args", c.args}, {"steps", c.out[0].numel()}};
  } else if (exists(group, "param")) {
    c.in = {read_tensor(group, "param"), read_tensor(group, "grads")};
    c.out = {read_tensor(group, "steps")};
  } else {
    c.in = read_all(group, "in");
    c.out = read_all(group, "out");
    c.gout = read_list(group, "gout", c.out.size());
    c.gin = read_list(group, "gin", c.in.size());
    if (is_promotion(c)) {
      c.in_types = read_types(group, "in", c.in.size());
      c.out_types = read_types(group, "out", c.out.size());
    } else if (line->inputs) {
      sort_by_name(c, group, line->inputs);
    }
  }
  return result;
}

void read_file(const std::filesystem::path& path, const CaseReading& reading, CaseFolder& folder) {
  const std::string file = path.filename();
  reading.begins(file);
  const Handle h5(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, "the file");
  for (auto& name : members(h5)) {
    reading.begins(file + "/" + name);
    try {
      auto c = read_case(h5, name, reading);
      if (!c) continue;
      c->name = file + "/" + name;
      folder.by_op[c->op].push_back(std::move(c));
      ++folder.count;
    } catch (const TooNew& e) {
      folder.unreadable.push_back({file + "/" + name, e.what(), true});
    } catch (const std::exception& e) {
      folder.unreadable.push_back({file + "/" + name, e.what(), false});
    }
  }
  reading.begins(file);  // to close it
}

}  // namespace

CaseFolder read_case_folder(const std::string& path, Device device, const CaseReading& reading) {
  std::error_code error;
  std::set<std::filesystem::path> files;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error))
    if (it->path().extension() == ".h5") files.insert(it->path());
  if (error) throw DataError(path + ": cannot be read: " + error.message());
  if (files.empty()) throw DataError(path + ": has no file *.h5 with reference cases");
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // what is wrong is reported here
  const DeviceGuard guard(device);
  CaseFolder folder;
  for (auto& file : files) {
    if (reading.without.count(file.filename())) continue;
    try {
      read_file(file, reading, folder);
    } catch (const std::exception& e) {
      folder.unreadable.push_back({file.filename(), e.what(), false});
    }
  }
  reading.begins("");
  return folder;
}

}  // namespace tenon::conformance
