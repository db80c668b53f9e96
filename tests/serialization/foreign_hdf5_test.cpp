// HDF5 files of other programs are loaded through a process without privileges; whatever is in one,
// and whatever that process does, this one gets an error or the values.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <hdf5.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <tenon/core/error.h>
#include <tenon/serialization/hdf5_wire.h>
#include <tenon/serialization/training_checkpoint.h>

#include "weights.h"

BOOST_AUTO_TEST_SUITE(foreign_hdf5_test)

using namespace tenon;
using namespace tenon::test;
namespace wire = hdf5_wire;

namespace {

// A file that another program wrote with HDF5.
class OtherFile {
 public:
  explicit OtherFile(const std::filesystem::path& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {
    BOOST_REQUIRE(file_ >= 0);
  }
  ~OtherFile() { H5Fclose(file_); }
  OtherFile(const OtherFile&) = delete;

  void add(const std::string& path, float value) {
    const hid_t links = H5Pcreate(H5P_LINK_CREATE), space = H5Screate(H5S_SCALAR);
    H5Pset_create_intermediate_group(links, 1);
    const hid_t data =
        H5Dcreate2(file_, path.c_str(), H5T_IEEE_F32LE, space, links, H5P_DEFAULT, H5P_DEFAULT);
    BOOST_TEST(H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0);
    H5Dclose(data), H5Sclose(space), H5Pclose(links);
  }
  operator hid_t() const { return file_; }

 private:
  hid_t file_;
};

bool has_no_child() { return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_h5py_are_loaded) {
  require_all_forms_load(".h5", FileFormat::hdf5);
  require_each_dtype(load(weights_file("dtypes.h5")));
  BOOST_TEST(has_no_child());
}

BOOST_AUTO_TEST_CASE(layouts_and_orders_of_bytes_do_not_matter) {
  const nn::StateDict tensors = load(weights_file("layouts.h5"));
  const std::vector<double> count = arange(0, 60).to_vector<double>();
  BOOST_TEST(tensors.size() == 11u);
  for (const auto& [key, tensor] : tensors) {
    BOOST_TEST((tensor.shape() == Shape{3, 4, 5}), key);
    BOOST_TEST((tensor.to_vector<double>() == count), key);
  }
  BOOST_TEST((tensors.at("big_f2").dtype() == f16));
  BOOST_TEST((tensors.at("big_i8").dtype() == i64));
}

BOOST_AUTO_TEST_CASE(groups_become_names_with_dots) {
  const auto path = weights_file("keras.h5");
  BOOST_TEST((load(path).keys() ==
              std::vector<std::string>{"dense.dense.kernel", "dense.dense.bias",
                                       "dense_1.dense_1.kernel", "dense_1.dense_1.bias"}));
  struct Net : nn::Module<Net> {
    nn::Linear first{2, 3}, second{2, 3};
  } net;
  const LoadReport report =
      load(path, net,
           {.rules = {{.pattern = "^dense\\.dense\\.", .replacement = "first."},
                      {.pattern = "^dense_1\\.dense_1\\.", .replacement = "second."},
                      {.pattern = "kernel$", .replacement = "weight", .permute = {1, 0}}}});
  BOOST_TEST(report.complete());
  BOOST_TEST((net.first.weight.to_vector<double>() == std::vector<double>{0, 3, 1, 4, 2, 5}));
  BOOST_TEST((net.second.bias.to_vector<double>() == std::vector<double>{10, 11, 12}));
}

BOOST_AUTO_TEST_CASE(what_is_no_tensor_is_left_out_and_named) {
  const auto path = weights_file("strange.h5");
  struct Net : nn::Module<Net> {
    nn::Parameter good = nn::Parameter(zeros({2}));
  } net;
  const LoadReport report = load(path, net, {.only = "^good$"});
  BOOST_TEST(report.loaded() == 1u);
  BOOST_TEST((net.good.to_vector<float>() == std::vector<float>{1, 1}));
  BOOST_TEST(report.not_tensors.size() == 12u);
  BOOST_TEST(has(report.str(),
                 "\n  not tensors: @part: names with @ are for parts of a training "
                 "run, complex: it holds records, or complex numbers, "));
  BOOST_TEST(has(report.str(), "\n  unverified: an HDF5 file has no checksums of Tenon's"));
  BOOST_TEST(has(refusal_of(path), "tensor 'half_written': only 1 of its 2 chunks were written"));

  const CheckpointInfo info = inspect(path);
  BOOST_TEST(info.tensors.size() == 1u);
  std::map<std::string, std::string> why;
  for (const auto& other : info.unreadable) why[other.key] = other.why;
  BOOST_TEST(why.size() == 22u);
  const std::pair<const char*, const char*> expected[] = {
      {"group.back", "it is a second link to a group, or one that leads back"},
      {"group.self", "it is a second link to a group, or one that leads back"},
      {"soft", "a soft link"},
      {"dangling", "a soft link"},
      {"other_file", "a link to another file"},
      {"int8", "its type int8 is none of Tenon's"},
      {"uint16", "its type uint16 is none of Tenon's"},
      {"long_double", "none of Tenon's"},
      {"nine", "it has 9 dimensions"},
      {"lzf", "the filter 32000 (lzf); deflate (gzip), shuffle and fletcher32 are read"},
      {"scaled", "the filter 6"},
      {"never_written", "its values were never written"},
      {"outside", "in other files"},
      {"virtual", "a virtual data set"},
      {"text", "it holds text"},
      {"texts", "it holds text"},
      {"empty", "without a shape"},
      {"type", "the name of a type"}};
  for (const auto& [key, part] : expected) BOOST_TEST(has(why[key], part), key << ": " << why[key]);
}

BOOST_AUTO_TEST_CASE(names_of_any_form_are_kept_apart) {
  TempFolder folder;
  {
    OtherFile file(folder / "a.h5");
    file.add("x.y", 1);
    file.add("deep/er/w:0", 2);
    file.add("deep/er/w:1", 3);
    file.add("with space\n\x1b[31m/ü", 4);
    file.add("bad\xff", 5);
  }
  const nn::StateDict tensors = load(folder / "a.h5");
  BOOST_TEST((tensors.keys() == std::vector<std::string>{"deep.er.w", "deep.er.w:1",
                                                         "with space\n\x1b[31m.ü", "x.y"}));
  BOOST_TEST(tensors.at("deep.er.w").item<float>() == 2.0f);
  BOOST_TEST(inspect(folder / "a.h5").unreadable.at(0).why == "its name is not valid UTF-8");
  {
    OtherFile file(folder / "b.h5");
    file.add("x.y", 1);
    file.add("x/y", 2);
  }
  BOOST_TEST(
      has(refusal_of(folder / "b.h5"), "its data sets 'x/y' and 'x.y' both get the name 'x.y'"));
  {
    OtherFile file(folder / "c.h5");
    std::string path = "0";
    for (int i = 1; i < 70; ++i) path += "/" + std::to_string(i);
    file.add(path, 1);
  }
  BOOST_TEST(has(refusal_of(folder / "c.h5"), "its groups are nested more than 64 deep"));
  { OtherFile empty(folder / "d.h5"); }
  BOOST_TEST(load(folder / "d.h5").size() == 0u);
}

// More than the reader sends at once.
BOOST_AUTO_TEST_CASE(large_tensors_come_in_pieces) {
  if (kSanitized) return;
  TempFolder folder;
  constexpr hsize_t kRows = 70, kColumns = 1 << 20;
  for (const bool chunked : {false, true}) {
    {
      OtherFile file(folder / "large.h5");
      const hsize_t dims[] = {kRows, kColumns}, chunk[] = {7, kColumns / 2}, one[] = {1, 1};
      const hid_t space = H5Screate_simple(2, dims, nullptr), memory = H5Screate(H5S_SCALAR);
      const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
      H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
      if (chunked) H5Pset_chunk(properties, 2, chunk);
      const hid_t data =
          H5Dcreate2(file, "w", H5T_STD_U8LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
      for (const hsize_t row : {0, 62, 63, 64, 69}) {
        const hsize_t at[] = {row, row * 1000};
        const auto value = static_cast<uint8_t>(row + 1);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, at, nullptr, one, nullptr);
        BOOST_TEST(H5Dwrite(data, H5T_NATIVE_UINT8, memory, space, H5P_DEFAULT, &value) >= 0);
      }
      H5Dclose(data), H5Pclose(properties), H5Sclose(space), H5Sclose(memory);
    }
    const Tensor w = load(folder / "large.h5").at("w");
    BOOST_TEST((w.shape() == Shape{kRows, kColumns}));
    for (const int64_t row : {0, 62, 63, 64, 69})
      BOOST_TEST(w[row][row * 1000].item<int>() == row + 1);
    BOOST_TEST(w[63][62 * 1000].item<int>() == 0);
  }
}

BOOST_AUTO_TEST_CASE(checkpoints_that_another_program_changed_are_read_when_asked_for) {
  TempFolder folder;
  const auto path = folder / "model.h5";
  save(path, nn::StateDict{{"w", ones({4})}, {"half", full({2}, 1.5, bf16)}});
  const std::string whole = read_bytes(path);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, "w", H5P_DEFAULT);
  const float value[4] = {1, 1, 1, 2};
  BOOST_TEST(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
  H5Dclose(dataset), H5Fclose(file);
  BOOST_TEST(has(refusal_of(path), "changed by another program"));
  const nn::StateDict changed = load(path, LoadOptions{.verify = false});
  BOOST_TEST((changed.at("w").to_vector<float>() == std::vector<float>{1, 1, 1, 2}));
  BOOST_TEST((changed.at("half").dtype() == bf16));
  BOOST_TEST((changed.at("half").to_vector<float>() == std::vector<float>{1.5, 1.5}));

  std::string no_magic = whole, no_block = whole;
  no_magic[3] ^= 1;
  write_bytes(path, no_magic);
  BOOST_TEST(has(refusal_of(path), "its first bytes are damaged"));
  no_block.replace(0, 512, std::string(512, '\0'));
  write_bytes(path, no_block);
  BOOST_TEST(has(refusal_of(path), "whose first bytes are damaged, so that it cannot be verified"));
  BOOST_TEST(load(path, LoadOptions{.verify = false}).size() == 2u);
  write_bytes(path, whole);
  struct Net : nn::Module<Net> {
    nn::Parameter w = nn::Parameter(zeros({4})), half = nn::Parameter(zeros({2}));
  } net;
  BOOST_TEST(!load(path, net, {.verify = false}).unverified);  // it is right
}

BOOST_AUTO_TEST_CASE(a_training_run_is_not_in_such_a_file) {
  WeightsNet net;
  Checkpoint run{.model = net};
  BOOST_TEST(has(error_of<CheckpointError>([&] { load(weights_file("net.h5"), run); }),
                 "another program wrote, which has no training run"));
}

// HDF5 crashes on some of these, and never ends on others; not here.
BOOST_AUTO_TEST_CASE(damaged_files_are_refused_or_read) {
  BytesFile file;
  for (const char* name : {"net.h5", "net_wrapped.h5", "strange.h5"}) {
    const std::string whole = read_bytes(weights_file(name));
    auto is_refused = [&] {
      try {
        load(file.path());
        return false;
      } catch (const CheckpointError& error) {
        BOOST_REQUIRE(has(error.what(), file.path().string()));
        return true;
      }
    };
    for (int i = 0; i < 12; ++i) {
      file.set(std::string_view(whole).substr(0, whole.size() * i / 12));
      BOOST_TEST(is_refused());
    }
    std::mt19937 random(1);
    for (int i = 0; i < (kSanitized ? 10 : 40); ++i) {
      std::string changed = whole;
      for (uint32_t n = random() % 8 + 1; n-- > 0;) {
        const char values[] = {0, 1, '\x7f', '\x80', '\xff', static_cast<char>(random())};
        changed[random() % changed.size()] = values[random() % 6];
      }
      file.set(changed);
      is_refused();
    }
  }
  BOOST_TEST(has_no_child());
}

BOOST_AUTO_TEST_SUITE_END()
