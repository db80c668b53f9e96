// Files whose checksums are right and whose contents are not what Tenon writes: read where
// docs/checkpoints.md allows it, refused by name otherwise.
#include <boost/test/unit_test.hpp>

#include <tenon/core/tensor.h>
#include <tenon/serialization/checkpoint.h>

#include "sealed.h"

BOOST_AUTO_TEST_SUITE(layout_test)

using namespace tenon;

namespace {

std::string refusal_to_load(const std::filesystem::path& path) {
  return error_of<CheckpointError>([&] { load(path); });
}
// What loading and inspecting say alike.
std::string refusal(const std::filesystem::path& path) {
  const std::string loading = refusal_to_load(path),
                    inspecting = error_of<CheckpointError>([&] { inspect(path); });
  BOOST_TEST(loading == inspecting);
  BOOST_TEST(has(loading, "cannot load checkpoint '" + path.string() + "': "));
  return loading;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_crafted_file_loads) {
  TempFolder folder;
  CraftedCheckpoint file(folder / "x.h5");
  file.add("w", {2, 3}, true);
  file.finish();
  BOOST_TEST((load(folder / "x.h5").at("w").to_vector<int>() == std::vector<int>(6)));
}

// Its address in the file is "nowhere", which wraps to a place in the user block.
BOOST_AUTO_TEST_CASE(values_without_a_place_in_the_file_are_refused) {
  for (hsize_t n : {1, 16, 100'000}) {
    TempFolder folder;
    CraftedCheckpoint file(folder / "x.h5");
    file.add("w", {n}, false);
    file.finish();
    BOOST_TEST(has(refusal(folder / "x.h5"), "tensor 'w': no space is set aside for its values"));
  }
}

BOOST_AUTO_TEST_CASE(addresses_that_wrap_or_lie_outside_are_refused) {
  for (uint64_t address : {uint64_t{0} - 2, uint64_t{0} - 512, uint64_t{0} - 513, uint64_t{1} << 63,
                           uint64_t{1} << 20}) {
    TempFolder folder;
    CraftedCheckpoint file(folder / "x.h5");
    file.add("w", {4}, true);
    const hid_t dataset = H5Dopen2(file.file, "w", H5P_DEFAULT);
    const uint64_t real = H5Dget_offset(dataset) - 512;
    H5Dclose(dataset);
    bool changed = false;
    file.finish("", [&](std::string& bytes) {
      std::string message("\x03\x01", 2);  // the layout: version 3, contiguous, address, size
      message.append(reinterpret_cast<const char*>(&real), 8);
      const size_t at = bytes.find(message, 512);
      if (at == bytes.npos) return;
      std::memcpy(bytes.data() + at + 2, &address, 8);
      reseal_object_header(bytes, at);
      changed = true;
    });
    BOOST_TEST(changed);
    BOOST_TEST(has(refusal(folder / "x.h5"), "tensor 'w': "));
  }
}

BOOST_AUTO_TEST_CASE(shapes_that_no_tensor_may_have_are_refused_even_without_elements) {
  const hsize_t large = hsize_t{1} << 31;
  TempFolder folder;
  CraftedCheckpoint file(folder / "x.h5");
  file.add("w", {large, large, large, 0}, true);
  file.finish();
  BOOST_TEST(
      has(refusal(folder / "x.h5"),
          "tensor 'w': its shape (2147483648, 2147483648, 2147483648, 0) is absurdly large"));
}

BOOST_AUTO_TEST_CASE(a_name_that_leads_elsewhere_is_refused) {
  TempFolder folder;
  CraftedCheckpoint file(folder / "x.h5");
  const hid_t group = H5Gcreate2(file.file, "@grp", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  file.add("w", {1}, true, group);
  H5Gclose(group);
  // HDF5 makes no such link itself: one of the same length is renamed in the file.
  file.add("..@grp.w", {1}, true);
  file.finish("", [&](std::string& bytes) {
    const size_t at = bytes.find("..@grp.w", 512);
    BOOST_REQUIRE(at != bytes.npos);
    bytes.replace(at, 8, "./@grp/w");
    reseal_object_header(bytes, at);
  });
  BOOST_TEST(
      has(refusal(folder / "x.h5"),
          "tensor './@grp/w': its name is not one of a tensor: HDF5 takes '/' for a folder"));
}

BOOST_AUTO_TEST_CASE(a_release_may_change_its_line_of_text) {
  TempFolder folder;
  CraftedCheckpoint file(folder / "x.h5");
  file.add("w", {2}, true);
  file.finish("Another line of text, from another release");
  BOOST_TEST(load(folder / "x.h5").at("w").numel() == 2);
}

BOOST_AUTO_TEST_CASE(text_may_be_ascii_or_utf8_and_padded_in_any_way) {
  for (H5T_cset_t charset : {H5T_CSET_ASCII, H5T_CSET_UTF8})
    for (H5T_str_t padding : {H5T_STR_NULLPAD, H5T_STR_NULLTERM, H5T_STR_SPACEPAD}) {
      TempFolder folder;
      CraftedCheckpoint file(folder / "x.h5");
      CraftedCheckpoint::write_text(file.file, "wrappers", "module", {charset, padding});
      file.add("w", {2}, true, -1, {charset, padding});
      file.finish();
      const CheckpointInfo info = inspect(folder / "x.h5");
      BOOST_TEST((info.tensors.at(0).dtype == f32));
      BOOST_TEST((info.wrappers.value() == std::vector<std::string>{"module"}));
    }
}

BOOST_AUTO_TEST_CASE(keys_with_line_ends_and_escapes_are_kept_and_written_out_in_messages) {
  TempFolder folder;
  const std::string key = "a\nb\x1b[31m";
  save(folder / "x.h5", nn::StateDict{{key, ones({1})}});
  const nn::StateDict loaded = load(folder / "x.h5");
  BOOST_TEST(loaded.contains(key));
  const std::string text = error_of<StateDictError>([&] { loaded.at("a\nc"); });
  BOOST_TEST(has(text, "there is no key \"a\\nc\" among its 1: \"a\\nb\\x1b[31m\""), text);
}

namespace {

// A dataset `w` of four f32, with the creation properties that `set` sets; closed again.
void add_special(hid_t file, const std::function<void(hid_t creation)>& set,
                 hid_t type = H5T_IEEE_F32LE, hid_t space = -1) {
  const hsize_t four = 4;
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), plain = H5Screate_simple(1, &four, nullptr);
  set(creation);
  const hid_t dataset =
      H5Dcreate2(file, "w", type, space < 0 ? plain : space, H5P_DEFAULT, creation, H5P_DEFAULT);
  BOOST_REQUIRE(dataset >= 0);
  CraftedCheckpoint::write_text(dataset, "dtype", "f32", {});
  H5Dclose(dataset);
  H5Sclose(plain);
  H5Pclose(creation);
}

// What is said of a file in which `make` put something under the name `w`. There is a dataset `w`
// in `elsewhere`, too.
std::string refusal_of(const std::function<void(hid_t file, const std::string& elsewhere)>& make) {
  TempFolder folder;
  CraftedCheckpoint other(folder / "elsewhere.h5");
  other.add("w", {4}, true);
  other.finish();
  CraftedCheckpoint file(folder / "x.h5", H5F_LIBVER_LATEST);
  make(file.file, folder / "elsewhere.h5");
  file.finish();
  return refusal(folder / "x.h5");
}

}  // namespace

// No other file is opened, and no filter is run.
BOOST_AUTO_TEST_CASE(what_leads_elsewhere_is_refused) {
  const char *link = "tensor 'w': it is a link to another object",
             *layout = "tensor 'w': it is not stored contiguously in this file",
             *open = "tensor 'w': HDF5 cannot open it";
  BOOST_TEST(has(refusal_of([](hid_t file, const std::string&) {
                   H5Lcreate_soft("w", file, "w", H5P_DEFAULT, H5P_DEFAULT);  // to itself
                 }),
                 link));
  BOOST_TEST(has(refusal_of([](hid_t file, const std::string& elsewhere) {
                   H5Lcreate_external(elsewhere.c_str(), "/w", file, "w", H5P_DEFAULT, H5P_DEFAULT);
                 }),
                 link));
  BOOST_TEST(has(refusal_of([](hid_t file, const std::string& elsewhere) {
                   add_special(file, [&](hid_t creation) {
                     H5Pset_external(creation, elsewhere.c_str(), 0, 16);
                   });
                 }),
                 layout));
  BOOST_TEST(has(refusal_of([](hid_t file, const std::string& elsewhere) {
                   const hsize_t four = 4;
                   const hid_t space = H5Screate_simple(1, &four, nullptr);
                   add_special(file, [&](hid_t creation) {
                     H5Pset_virtual(creation, space, elsewhere.c_str(), "/w", space);
                   });
                   H5Sclose(space);
                 }),
                 layout));
  BOOST_TEST(has(refusal_of([](hid_t file, const std::string&) {
                   add_special(file, [](hid_t creation) {
                     const hsize_t two = 2;
                     H5Pset_chunk(creation, 1, &two);
                     H5Pset_deflate(creation, 9);
                   });
                 }),
                 layout));
  BOOST_TEST(has(refusal_of([](hid_t file, const std::string&) {
                   add_special(file, [](hid_t creation) { H5Pset_layout(creation, H5D_COMPACT); });
                 }),
                 layout));
  BOOST_TEST(has(refusal_of([](hid_t file, const std::string&) {
                   H5Lcreate_hard(file, "/", file, "w", H5P_DEFAULT,
                                  H5P_DEFAULT);  // the root group within itself
                 }),
                 open));
  BOOST_TEST(has(refusal_of([](hid_t file, const std::string&) {
                   const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
                   H5Tcommit2(file, "w", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
                   H5Tclose(type);
                 }),
                 open));
}

BOOST_AUTO_TEST_CASE(types_shapes_and_attributes_that_no_tensor_has_are_refused) {
  auto plain = [](hid_t) {};
  auto of_type = [&](hid_t type) {
    return refusal_of([&](hid_t file, const std::string&) { add_special(file, plain, type); });
  };
  const hid_t text = H5Tcopy(H5T_C_S1), list = H5Tvlen_create(H5T_IEEE_F32LE),
              pair = H5Tcreate(H5T_COMPOUND, 4);
  H5Tset_size(text, H5T_VARIABLE);
  H5Tinsert(pair, "a", 0, H5T_IEEE_F32LE);
  for (hid_t type :
       {hid_t{H5T_IEEE_F32BE}, hid_t{H5T_STD_I32LE}, hid_t{H5T_STD_REF_OBJ}, text, list, pair})
    BOOST_TEST(
        has(of_type(type), "tensor 'w': its HDF5 type is not the one that f32 is stored as"));

  BOOST_TEST(has(refusal_of([&](hid_t file, const std::string&) {
                   const hid_t none = H5Screate(H5S_NULL);
                   add_special(file, plain, H5T_IEEE_F32LE, none);
                   H5Sclose(none);
                 }),
                 "tensor 'w': it has no shape"));
  BOOST_TEST(has(refusal_of([&](hid_t file, const std::string&) {
                   const std::vector<hsize_t> ones(32, 1);
                   const hid_t deep = H5Screate_simple(32, ones.data(), nullptr);
                   add_special(file, plain, H5T_IEEE_F32LE, deep);
                   H5Sclose(deep);
                 }),
                 "tensor 'w': it has 32 dimensions, and a tensor has at most 8"));

  // A second attribute `dtype`, of another kind.
  auto with_dtype = [&](hid_t type, hsize_t count, const void* value) {
    return refusal_of([&](hid_t file, const std::string&) {
      add_special(file, plain);
      const hid_t dataset = H5Dopen2(file, "w", H5P_DEFAULT),
                  space = H5Screate_simple(1, &count, nullptr);
      H5Adelete(dataset, "dtype");
      if (value) {
        const hid_t attribute = H5Acreate2(dataset, "dtype", type, space, H5P_DEFAULT, H5P_DEFAULT);
        BOOST_REQUIRE(attribute >= 0);
        H5Awrite(attribute, type, value);
        H5Aclose(attribute);
      }
      H5Sclose(space);
      H5Dclose(dataset);
    });
  };
  const char* word = "f32";
  const int32_t number = 32;
  const std::string wide(60'000, 'f');
  const hid_t three = H5Tcopy(H5T_C_S1), many = H5Tcopy(H5T_C_S1);
  H5Tset_size(three, 3);
  H5Tset_size(many, wide.size());
  BOOST_TEST(has(with_dtype(text, 1, &word), "its attribute 'dtype' is not fixed-length text"));
  BOOST_TEST(
      has(with_dtype(H5T_STD_I32LE, 1, &number), "its attribute 'dtype' is not fixed-length text"));
  BOOST_TEST(has(with_dtype(three, 2, "f32f32"), "its dtype is not one name"));
  BOOST_TEST(has(with_dtype(three, 1, nullptr), "tensor 'w': HDF5 cannot open an attribute"));
  const std::string unknown = with_dtype(many, 1, wide.data());
  BOOST_TEST(has(unknown, "tensor 'w': "));
  BOOST_TEST(unknown.size() < 1000);
  for (hid_t type : {text, list, pair, three, many}) H5Tclose(type);
}

BOOST_AUTO_TEST_SUITE_END()
