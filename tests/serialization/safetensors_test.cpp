// safetensors files that the reference implementation wrote are loaded, ours are written by its
// rules, and whatever is wrong with one is found before anything in it is believed.
#include "weights.h"

BOOST_AUTO_TEST_SUITE(safetensors_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// A file of this header, and so many bytes of values.
std::string with_header(std::string header, size_t values) {
  const uint64_t length = header.size();
  header.insert(0, std::string(sizeof length, '\0'));
  std::memcpy(header.data(), &length, sizeof length);
  return header + std::string(values, '\1');
}

std::string refusal_of_header(const std::string& header, size_t values) {
  return refusal_of_bytes(with_header(header, values));
}

const std::string kGood = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_the_reference_implementation_are_loaded) {
  require_all_forms_load(".safetensors", FileFormat::safetensors);
  require_each_dtype(load(weights_file("dtypes.safetensors")));
}

BOOST_AUTO_TEST_CASE(the_report_says_that_the_file_has_no_checksums) {
  WeightsNet net;
  const LoadReport report = load(weights_file("net_wrapped.safetensors"), net);
  BOOST_TEST(has(report.str(), "\n  unverified: a safetensors file has no checksums"));
  TempFolder folder;
  save(folder / "net.h5", net);
  const LoadReport verified = load(folder / "net.h5", net);
  BOOST_TEST((verified.format == FileFormat::tenon));
  BOOST_TEST(!verified.unverified);
  BOOST_TEST(!has(verified.str(), "verified"));
}

BOOST_AUTO_TEST_CASE(what_is_saved_is_loaded_again) {
  TempFolder folder;
  const auto path = folder / "made.safetensors";
  const nn::StateDict tensors = load(weights_file("dtypes.safetensors"));
  nn::StateDict more;
  for (const auto& [key, tensor] : tensors) more.set(key, tensor);
  more.set("turned", arange(0, 6).reshape({2, 3}).t());
  more.set("a\"quoted\"\n/näme", ones({1}));
  save_safetensors(path, more);
  nn::StateDict again = load(path);
  BOOST_TEST((again.keys() == more.keys()));
  BOOST_TEST((again.at("turned").to_vector<double>() == std::vector<double>{0, 3, 1, 4, 2, 5}));
  BOOST_TEST(again.erase("turned"));
  BOOST_TEST(again.erase("a\"quoted\"\n/näme"));
  require_each_dtype(again);
  BOOST_TEST(folder.count() == 1u);
  const std::string bytes = read_bytes(path);
  save_safetensors(path, more);
  BOOST_TEST((read_bytes(path) == bytes));

  WeightsNet net;
  load(weights_file("net.safetensors"), net);
  save_safetensors(path, nn::DataParallel<WeightsNet>(net, {"cpu:0", "cpu:1"}));
  require_loads_everywhere(path, FileFormat::safetensors);
  save_safetensors(path, nn::StateDict());
  BOOST_TEST(load(path).size() == 0u);
}

BOOST_AUTO_TEST_CASE(values_are_aligned_in_the_file) {
  TempFolder folder;
  save_safetensors(folder / "odd",
                   nn::StateDict{{"byte", ones({3}, u8)}, {"wide", ones({2}, f64)}});
  const std::string bytes = read_bytes(folder / "odd");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  BOOST_TEST((length + 8) % 64 == 0u);
  BOOST_TEST(bytes.size() == length + 8 + 19);
  const double one = 1;
  BOOST_TEST(std::memcmp(bytes.data() + length + 8, &one, sizeof one) == 0);
}

BOOST_AUTO_TEST_CASE(names_that_the_format_does_not_have_are_refused) {
  TempFolder folder;
  auto refusal = [&](const std::string& key, const Tensor& tensor) {
    return error_of<CheckpointError>([&] { save_safetensors(folder / "f", {{key, tensor}}); });
  };
  BOOST_TEST(has(refusal("__metadata__", ones({1})), "the name of the format's metadata"));
  BOOST_TEST(
      has(refusal("a\xff", ones({1})), "tensor 'a\\xff' has a name that is not valid UTF-8"));
  BOOST_TEST(has(refusal("a", Tensor()), "tensor 'a' is undefined"));
  BOOST_TEST(
      has(error_of<CheckpointError>([&] { save_safetensors(folder / "no/f", nn::StateDict()); }),
          "there is no folder"));
  BOOST_TEST(folder.count() == 0u);
}

BOOST_AUTO_TEST_CASE(a_failed_save_leaves_the_old_file) {
  TempFolder folder;
  write_bytes(folder / "old", "old");
  BOOST_CHECK_THROW(save_safetensors(folder / "old", {{"a", Tensor()}}), CheckpointError);
  BOOST_TEST(read_bytes(folder / "old") == "old");
  BOOST_TEST(folder.count() == 1u);
}

BOOST_AUTO_TEST_CASE(dtypes_that_tenon_does_not_have_are_refused_when_they_are_needed) {
  const auto path = weights_file("other_dtypes.safetensors");
  BOOST_TEST(has(refusal_of(path), "tensor 'i8': its dtype I8 is none of Tenon's"));
  BOOST_TEST(load(path, {.only = "^good$"}).size() == 1u);
  const CheckpointInfo info = inspect(path);
  BOOST_TEST(info.tensors.size() == 1u);
  BOOST_REQUIRE(info.unreadable.size() == 1u);
  BOOST_TEST(info.unreadable[0].key == "i8");
  BOOST_TEST((info.format == FileFormat::safetensors));
  BOOST_TEST(info.unverified);
}

BOOST_AUTO_TEST_CASE(headers_that_the_specification_forbids_are_refused) {
  auto entry = [](const std::string& name, const std::string& fields) {
    return ",\"" + name + "\":{" + fields + "}";
  };
  const auto with = [&](const std::string& more) { return "{" + kGood + more + "}"; };
  BOOST_TEST(refusal_of_header(with(""), 8) == "");
  BOOST_TEST(refusal_of_header(with("") + "     ", 8) == "");
  BOOST_TEST(refusal_of_header(with(R"(,"__metadata__":{"by":"hand"})"), 8) == "");
  BOOST_TEST(refusal_of_header("{}", 0) == "");

  auto check = [](const std::string& header, size_t values, const char* part) {
    const std::string text = refusal_of_header(header, values);
    BOOST_TEST(has(text, part), header.substr(0, 200) << " gives: " << text);
  };
  check(with(entry("a", R"("dtype":"F32","shape":[1],"data_offsets":[8,12])")), 12, "'a' twice");
  check(with(entry("b", R"("dtype":"F32","shape":[1],"data_offsets":[4,8])")), 8, "overlap");
  check(with(entry("b", R"("dtype":"F32","shape":[1],"data_offsets":[12,16])")), 16,
        "a gap of 4 bytes");
  check(with(entry("b", R"("dtype":"F32","shape":[1],"data_offsets":[8,12])")), 16,
        "4 bytes at its end belong to no tensor");
  check(with(entry("b", R"("dtype":"F32","shape":[1],"data_offsets":[8,12])")), 10,
        "end at byte 12 after the header, and there are 10");
  check(with(entry("b", R"("dtype":"F32","shape":[2],"data_offsets":[8,12])")), 12,
        "do not fit its shape (2,) of F32");
  check(with(entry("b", R"("dtype":"F4","shape":[3],"data_offsets":[8,9])")), 9, "do not fit");
  check(with(entry("b", R"("dtype":"F33","shape":[1],"data_offsets":[8,12])")), 12, "is unknown");
  check(with(entry("b", R"("dtype":"F32","shape":[1],"data_offsets":[12,8])")), 12,
        "not a beginning and an end");
  check(with(entry("b", R"("dtype":"F32","shape":[1],"data_offsets":[8])")), 12,
        "not a beginning and an end");
  check(with(entry("b", R"("dtype":"F32","shape":[1])")), 8, "lacks one of the fields");
  check(with(entry("b", R"("dtype":"F32","shape":[-1],"data_offsets":[8,12])")), 12, "negative");
  check(with(entry("b", R"("dtype":"F32","shape":[1.0],"data_offsets":[8,12])")), 12, "fraction");
  check(with(entry("b", R"("dtype":"F32","shape":[1,[1]],"data_offsets":[8,12])")), 12, "a list");
  check(with(entry("b", R"("dtype":"F32","shape":1,"data_offsets":[8,12])")), 12, "a number");
  check(with(entry("b", R"("dtype":null,"shape":[1],"data_offsets":[8,12])")), 12, "null");
  check(with(entry("b", R"("dtype":"F32","shape":[1],"strides":[1],"data_offsets":[8,12])")), 12,
        "unknown field 'strides'");
  check(with(entry("b", R"("dtype":"F32","shape":[1],"shape":[1],"data_offsets":[8,12])")), 12,
        "two fields 'shape'");
  check(with(entry("b", R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[8,12])")), 12,
        "more than 8 numbers");
  check(with(entry("b", R"("dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[8,8])")),
        8, "absurdly large");
  check(with(entry("b", R"("dtype":"F64","shape":[18446744073709551615],"data_offsets":[8,8])")), 8,
        "absurdly large");
  check(with(entry("b", R"("dtype":"U8","shape":[0,9223372036854775807,9],"data_offsets":[8,8])")),
        8, "absurdly large");
  check(with(R"(,"__metadata__":{"n":1})"), 8, "a number");
  check(with(R"(,"__metadata__":{"n":{}})"), 8, "an object");
  check(with(R"(,"__metadata__":{"n":"1","n":"2"})"), 8, "'n' twice");
  check(with(R"(,"__metadata__":{},"__metadata__":{})"), 8, "two parts '__metadata__'");
  check(with(R"(,"b":[1])"), 8, "a list");
  check(with(R"(,"b":"text")"), 8, "a text");
  check(with("") + "{}", 8, "not valid JSON");
  // What a parser that ends at a zero would not see.
  check(with("") + std::string("\0{}", 3), 8, "a zero byte at byte");
  check("{" + kGood, 8, "not valid JSON");
  check("{" + kGood + ",\"\xff\":1}", 8, "not valid JSON");
}

BOOST_AUTO_TEST_CASE(lengths_that_are_not_there_take_no_memory) {
  TempFolder folder;
  for (uint64_t length : {uint64_t{40}, uint64_t{99'999'999}, uint64_t{0xffff'ffff}}) {
    std::string bytes = with_header("{" + kGood + "}", 8);
    std::memcpy(bytes.data(), &length, sizeof length);
    write_bytes(folder / "forged", bytes);
    const std::string text = refusal_of(folder / "forged");
    BOOST_TEST((has(text, "header alone would have") || has(text, "at most 100000000") ||
                has(text, "not valid JSON")),
               text);
  }
}

BOOST_AUTO_TEST_CASE(deep_nesting_ends_at_the_second_level) {
  std::string deep = R"({"a":)";
  for (int i = 0; i < 1'000'000; ++i) deep += R"({"a":)";
  BOOST_TEST(has(refusal_of_header(deep, 0), "unknown field"));
  BOOST_TEST(has(refusal_of_header("{\"a\":" + std::string(1'000'000, '['), 0), "a list"));
  BOOST_TEST(has(refusal_of_header("{\"__metadata__\":{\"a\":" + std::string(1'000'000, '['), 0),
                 "a list"));
}

BOOST_AUTO_TEST_CASE(bools_are_0_or_1) {
  const std::string header = R"({"a":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})";
  BOOST_TEST(refusal_of_header(header, 4) == "");
  TempFolder folder;
  std::string bytes = with_header(header, 4);
  bytes.back() = 2;
  write_bytes(folder / "bools", bytes);
  BOOST_TEST(has(refusal_of(folder / "bools"), "tensor 'a': it is of type bool and holds bytes"));
}

BOOST_AUTO_TEST_CASE(sections_are_for_other_formats) {
  BOOST_TEST(has(refusal_of(weights_file("net.safetensors"), {.section = "model"}),
                 "section 'model' was asked for, and only PyTorch's files have sections"));
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_refused_or_loaded) {
  BOOST_TEST(attack(read_bytes(weights_file("net.safetensors")), 4000) > (kSanitized ? 400 : 2000));
  attack(read_bytes(weights_file("dtypes.safetensors")), 4000);
}

BOOST_AUTO_TEST_CASE(a_file_that_does_not_fit_leaves_the_model_as_it_was) {
  nn::Linear model(2, 2);
  const std::vector<float> before = model.weight.to_vector<float>();
  BOOST_CHECK_THROW(load(weights_file("net.safetensors"), model), StateDictError);
  BOOST_TEST((model.weight.to_vector<float>() == before));
}

BOOST_AUTO_TEST_SUITE_END()
