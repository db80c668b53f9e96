// Files whose checksums are right and whose contents are not what Tenon writes: read where docs/checkpoints.md allows it, refused
// by name otherwise.
#include <boost/test/unit_test.hpp>

#include <tenon/core/tensor.h>
#include <tenon/serialization/checkpoint.h>

#include "sealed.h"

using namespace tenon;

namespace {

std::string refusal_to_load(const std::filesystem::path& path) {
  return error_of<CheckpointError>([&] { load(path); });
}
// What loading and inspecting say alike.
std::string refusal(const std::filesystem::path& path) {
  const std::string loading = refusal_to_load(path), inspecting = error_of<CheckpointError>([&] { inspect(path); });
  BOOST_TEST(loading == inspecting);
  BOOST_TEST(contains(loading, "cannot load checkpoint '" + path.string() + "': "));
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
    BOOST_TEST(contains(refusal(folder / "x.h5"), "tensor 'w': no space is set aside for its values"));
  }
}

BOOST_AUTO_TEST_CASE(addresses_that_wrap_or_lie_outside_are_refused) {
  for (uint64_t address : {uint64_t{0} - 2, uint64_t{0} - 512, uint64_t{0} - 513, uint64_t{1} << 63, uint64_t{1} << 20}) {
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
    BOOST_TEST(contains(refusal(folder / "x.h5"), "tensor 'w': "));
  }
}

BOOST_AUTO_TEST_CASE(shapes_that_no_tensor_may_have_are_refused_even_without_elements) {
  const hsize_t large = hsize_t{1} << 31;
  TempFolder folder;
  CraftedCheckpoint file(folder / "x.h5");
  file.add("w", {large, large, large, 0}, true);
  file.finish();
  BOOST_TEST(contains(refusal(folder / "x.h5"), "tensor 'w': its shape (2147483648, 2147483648, 2147483648, 0) is absurdly large"));
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
  BOOST_TEST(contains(refusal(folder / "x.h5"), "tensor './@grp/w': its name is not one of a tensor: HDF5 takes '/' for a folder"));
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
  BOOST_TEST(contains(text, "there is no key \"a\\nc\" among its 1: \"a\\nb\\x1b[31m\""), text);
}
