// Files of torch.save are loaded without executing anything in them.
#include <functional>

#include <zlib.h>

#include "weights.h"

BOOST_AUTO_TEST_SUITE(torch_file_test)

using namespace tenon;
using namespace tenon::test;

namespace {

void put_number(std::string& text, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
}

struct Member {
  std::string name, bytes;
  std::string packed = {};  // deflated, if it is not empty
};

// An archive of these members as zip tools write it.
std::string archive_of(const std::vector<Member>& members) {
  std::string file, directory;
  for (const Member& member : members) {
    const bool deflated = !member.packed.empty();
    const std::string& stored = deflated ? member.packed : member.bytes;
    std::string common;
    put_number(common, 0, 2);
    put_number(common, deflated ? 8 : 0, 2);
    put_number(common, 0, 4);
    put_number(common,
               crc32(0, reinterpret_cast<const Bytef*>(member.bytes.data()),
                     static_cast<uInt>(member.bytes.size())),
               4);
    put_number(common, stored.size(), 4);
    put_number(common, member.bytes.size(), 4);
    put_number(common, member.name.size(), 2);
    put_number(common, 0, 2);
    const size_t at = file.size();
    file += "PK\3\4" + std::string("\x14\0", 2) + common + member.name + stored;
    directory += "PK\1\2" + std::string("\x14\0\x14\0", 4) + common + std::string(10, '\0');
    put_number(directory, at, 4);
    directory += member.name;
  }
  const size_t at = file.size();
  file += directory + "PK\5\6" + std::string(4, '\0');
  put_number(file, members.size(), 2);
  put_number(file, members.size(), 2);
  put_number(file, directory.size(), 4);
  put_number(file, at, 4);
  put_number(file, 0, 2);
  return file;
}

std::string text_of(const std::string& text) {
  std::string code = "X";
  put_number(code, text.size(), 4);
  return code + text;
}
std::string number_of(int64_t value) {
  std::string code = "\x8a\x08";
  put_number(code, static_cast<uint64_t>(value), 8);
  return code;
}
std::string tuple_of(const std::vector<int64_t>& numbers) {
  std::string code = "(";
  for (int64_t number : numbers) code += number_of(number);
  return code + "t";
}

// The pickle of {"w": a tensor of the storage "0"}.
std::string pickle_of(const std::string& shape, const std::string& strides, int64_t offset = 0,
                      int64_t numel = 6, const std::string& type = "FloatStorage") {
  return "\x80\x02}" + text_of("w") + "ctorch._utils\n_rebuild_tensor_v2\n((" + text_of("storage") +
         "ctorch\n" + type + "\n" + text_of("0") + text_of("cpu") + number_of(numel) + "tQ" +
         number_of(offset) + shape + strides + "\x89}tRs.";
}

std::string torch_archive(const std::string& pickle, size_t storage_bytes = 24) {
  return archive_of({{"a/data.pkl", pickle}, {"a/data/0", std::string(storage_bytes, '\0')}});
}

std::string refusal_of_pickle(const std::string& pickle) {
  return refusal_of_bytes(torch_archive(pickle));
}

// The text "…" with "bytes" changed at the place where `what` is found.
std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  BOOST_REQUIRE(at != text.npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_torch_are_loaded) {
  require_all_forms_load(".pt", FileFormat::torch);
  for (const char* name : {"net_protocol_5.pt", "net_without_crc.pt"})
    require_loads_everywhere(weights_file(name), FileFormat::torch);
  require_each_dtype(load(weights_file("dtypes.pt")));
  const nn::StateDict parameters = load(weights_file("parameters.pt"));
  BOOST_TEST(parameters.size() == 6u);
  BOOST_TEST((parameters.at("head.bias").to_vector<float>() == std::vector<float>{900, 901}));
}

BOOST_AUTO_TEST_CASE(sections_are_loaded_when_they_are_asked_for) {
  const auto path = weights_file("nested.pt");
  require_loads_everywhere(path, FileFormat::torch, {.section = "model"});
  require_loads_everywhere(path, FileFormat::torch, {.section = "ema/model"});
  BOOST_TEST(inspect(path, "model").tensors.size() == 9u);
  const std::string text = refusal_of(path);
  for (const char* part : {"inside is \"model\": a state dict of 9 tensors",
                           "\"optimizer\": a dictionary of 2 entries", "\"epoch\": the number 3",
                           "\"loss\": a number", "\"done\": False", "\"note\": None",
                           "\"ema\": a dictionary of 2 entries", "\"shape\": a tuple of 2",
                           "\"seed\": a number", "Load one of its parts with .section = \"model\""})
    BOOST_TEST(has(text, part), part << " in " << text);
  BOOST_TEST(has(refusal_of(path, {.section = "ema"}), ".section = \"ema/model\""));
  BOOST_TEST(has(refusal_of(path, {.section = "epoch"}), "its section 'epoch' is the number 3"));
  const std::string typo = refusal_of(path, {.section = "models"});
  BOOST_TEST(has(typo, "it has no section 'models'; inside is \"model\": a state dict"), typo);
  const std::string inner = refusal_of(path, {.section = "ema/models"});
  BOOST_TEST(has(inner, "its section 'ema' has no section 'models'"), inner);
  BOOST_TEST(has(inner, ".section = \"ema/model\""), inner);
}

// As torch.save stores the imaginary parts of conjugated numbers.
BOOST_AUTO_TEST_CASE(views_with_another_sign_are_refused) {
  auto with = [](const std::string& metadata) {
    return torch_archive(
        replaced(pickle_of(tuple_of({6}), tuple_of({1})), "\x89}tR", "\x89}" + metadata + "tR"));
  };
  for (const std::string name : {"neg", "conj"}) {
    BOOST_TEST(has(refusal_of_bytes(with("}" + text_of(name) + "\x88s")),
                   "store tensor.resolve_" + name + "()"));
    BOOST_TEST(refusal_of_bytes(with("}" + text_of(name) + "\x89s")) == "");
  }
  BOOST_TEST(refusal_of_bytes(with("}")) == "");
}

BOOST_AUTO_TEST_CASE(views_keep_their_order_and_share_memory) {
  nn::StateDict tensors = load(weights_file("views.pt"));
  auto values = [&](const char* name) { return tensors.at(name).to_vector<float>(); };
  using V = std::vector<float>;
  BOOST_TEST((values("whole") == V{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  BOOST_TEST((tensors.at("matrix").shape() == Shape{3, 4}));
  BOOST_TEST((values("transposed") == V{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  BOOST_TEST((values("row") == V{4, 5, 6, 7}));
  BOOST_TEST((values("every_third") == V{1, 4, 7, 10}));
  BOOST_TEST((values("repeated") == V{2, 2, 2, 3, 3, 3}));
  V in_order;
  for (int i = 0; i < 16; ++i) in_order.push_back(static_cast<float>(i));
  BOOST_TEST((values("channels_last") == in_order));
  Tensor(tensors.at("whole")).fill_(-1);
  BOOST_TEST((values("row") == V{-1, -1, -1, -1}));
}

BOOST_AUTO_TEST_CASE(a_view_is_read_without_what_lies_around_it) {
  const nn::StateDict all = load(weights_file("views.pt"));
  const CheckpointReader reader = open(weights_file("views.pt"));
  for (const auto& [key, tensor] : all) {
    const Tensor alone = reader.read(key);
    BOOST_TEST((alone.shape() == tensor.shape()), key);
    BOOST_TEST(alone.to_vector<float>() == tensor.to_vector<float>(), key);
  }
  struct Row : nn::Module<Row> {
    nn::Parameter row{zeros({4})};
  } net;
  for (bool low_memory : {false, true}) {
    load(weights_file("views.pt"), net, {.strict = false, .low_memory = low_memory});
    BOOST_TEST((net.row.to_vector<float>() == std::vector<float>{4, 5, 6, 7}));
  }
}

BOOST_AUTO_TEST_CASE(dtypes_of_torch_alone_are_refused_when_they_are_needed) {
  const auto path = weights_file("other_dtypes.pt");
  BOOST_TEST(has(refusal_of(path), "tensor 'i8': its dtype int8 is none of Tenon's"));
  BOOST_TEST(has(refusal_of(path, {.only = "u16"}), "tensor 'u16': its dtype uint16"));
  BOOST_TEST(has(refusal_of(path, {.only = "c64"}), "tensor 'c64': its dtype complex64"));
  BOOST_TEST(
      (load(path, {.only = "good"}).at("good").to_vector<float>() == std::vector<float>{1, 1}));
  BOOST_TEST(inspect(path).unreadable.size() == 3u);
}

BOOST_AUTO_TEST_CASE(what_is_no_state_dict_is_named) {
  BOOST_TEST(has(refusal_of(weights_file("tensor.pt")), "it is a tensor and not a state dict"));
  const std::string model = refusal_of(weights_file("whole_model.pt"));
  BOOST_TEST(has(model, "its pickle names __main__.Net"), model);
  BOOST_TEST(has(model, "torch.save(model.state_dict(), path)"), model);
  BOOST_TEST(has(refusal_of(weights_file("net_legacy.pt")),
                 "before PyTorch 1.6. Convert it in Python: torch.save(torch.load("));
  BOOST_TEST(has(refusal_of(weights_file("big_endian.pt")), "its byte order is 'big'"));
  BOOST_TEST(has(refusal_of_bytes("\x80\x04\x95"
                                  "abc"),
                 "it is a Python pickle"));
  BOOST_TEST(has(refusal_of_bytes(archive_of({{"a/readme", "hello"}})),
                 "a zip archive of neither PyTorch nor NumPy"));
  BOOST_TEST(has(refusal_of_bytes(archive_of({{"a/data.pkl", "x"}, {"a/constants.pkl", "y"}})),
                 "a TorchScript program"));
}

BOOST_AUTO_TEST_CASE(nothing_in_a_pickle_is_executed) {
  const std::filesystem::path proof = "/tmp/tenon-was-here";
  std::filesystem::remove(proof);
  const std::string text = refusal_of(weights_file("malicious.pt"));
  BOOST_TEST(has(text, "its pickle names posix.system"), text);
  BOOST_TEST(!std::filesystem::exists(proof));
  for (const char* code : {"\x80\x02"
                           "cos\nsystem\n",
                           "\x80\x02"
                           "cbuiltins\neval\n",
                           "\x80\x02"
                           "ctorch\nload\n",
                           "\x80\x02"
                           "ctorch._utils\n_rebuild_qtensor\n"})
    BOOST_TEST(has(refusal_of_pickle(code), "is not executed"));
  // INST, OBJ, NEWOBJ, EXT1, the text instructions of protocol 0, and the end of a stack.
  for (const char* code : {"\x80\x02(ios\nsystem\n", "\x80\x02(o", "\x80\x02)\x81",
                           "\x80\x02\x82\x01", "\x80\x02I1\n", "\x80\x02P1\n", "\x80\x02(0"})
    BOOST_TEST(has(refusal_of_pickle(code), "its pickle has the instruction 0x"));
  BOOST_TEST(has(refusal_of_pickle("\x80\x02"
                                   "ctorch\nFloatStorage\n)R."),
                 "calls torch.FloatStorage"));
  BOOST_TEST(refusal_of_pickle("\x80\x02}}b.") == "");  // attributes of a dictionary are left out
  BOOST_TEST(has(refusal_of_pickle("\x80\x02]}b."), "sets attributes of something"));
}

BOOST_AUTO_TEST_CASE(pickles_that_are_none_are_refused) {
  const std::string good = pickle_of(tuple_of({2, 3}), tuple_of({3, 1}));
  BOOST_TEST(refusal_of_pickle(good) == "");
  for (size_t length = 0; length < good.size(); ++length)
    BOOST_TEST(has(refusal_of_pickle(good.substr(0, length)), "its pickle"));
  BOOST_TEST(has(refusal_of_pickle(good + "."), "does not end with its one value"));
  for (const char* code : {"\x80\x02h\x05.", "\x80\x02t.", "\x80\x02s.", "\x80\x02}Ns.",
                           "\x80\x02(.", "\x80\x02NN.", "\x80\x02.", "\x80\x02}(Nu.", "\x80\x06.",
                           "\x80\x02q\x01.", "\x80\x02NQ.", "\x80\x02(NR.", "\x80\x02NN\x93."})
    BOOST_TEST(has(refusal_of_pickle(code), "its pickle is damaged"), refusal_of_pickle(code));
  // A dictionary that holds itself.
  BOOST_TEST(has(refusal_of_pickle("\x80\x02}q\x01" + text_of("me") + "h\x01s."),
                 "inside is \"me\": a dictionary of 1 entry"));
  BOOST_TEST(has(refusal_of_pickle("\x80\x02}NNs."), "inside is None: None"));
}

BOOST_AUTO_TEST_CASE(tensors_that_are_not_inside_their_storage_are_refused) {
  auto refusal = [&](const std::string& shape, const std::string& strides, int64_t offset = 0,
                     int64_t numel = 6, const std::string& type = "FloatStorage") {
    return refusal_of_pickle(pickle_of(shape, strides, offset, numel, type));
  };
  const int64_t huge = int64_t{1} << 62;
  BOOST_TEST(refusal(tuple_of({2, 2}), tuple_of({1, 2}), 2) == "");
  BOOST_TEST(refusal(tuple_of({0, 9}), tuple_of({9, 1}), 0) == "");
  for (const auto& [shape, strides, offset] :
       std::vector<std::tuple<std::vector<int64_t>, std::vector<int64_t>, int64_t>>{
           {{7}, {1}, 0},
           {{6}, {1}, 1},
           {{2}, {6}, 0},
           {{1}, {1}, 6},
           {{1}, {1}, -1},
           {{2, 2}, {-1, 1}, 3},
           {{3}, {huge}, 0},
           {{2, 2}, {huge, huge}, 0},
           {{2}, {1}, INT64_MAX}})
    BOOST_TEST(
        has(refusal(tuple_of(shape), tuple_of(strides), offset), "are not inside its storage"));
  for (const auto& [shape, strides] :
       std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>{
           {{2}, {}}, {{-1}, {1}}, {{huge, huge}, {0, 0}}, {{0, huge}, {1, 1}}})
    BOOST_TEST(has(refusal(tuple_of(shape), tuple_of(strides)), "do not fit each other"));
  BOOST_TEST(has(refusal(tuple_of(std::vector<int64_t>(9, 1)), tuple_of({1})), "9 dimensions"));
  BOOST_TEST(has(refusal(tuple_of({2}), tuple_of({1}), 0, 5), "do not fit 5 elements of float32"));
  BOOST_TEST(has(refusal(tuple_of({2}), tuple_of({1}), 0, -6), "do not fit -6 elements"));
  BOOST_TEST(
      has(refusal(tuple_of({2}), tuple_of({1}), 0, 6, "LongStorage"), "6 elements of int64"));
  BOOST_TEST(
      has(refusal(tuple_of({2}), tuple_of({1}), 0, 6, "QInt8Storage"), "names torch.QInt8Storage"));
  BOOST_TEST(has(refusal("}", tuple_of({1})), "where it must not"));
  // A shape far larger than its storage takes no memory while nobody reads it, as in PyTorch.
  BOOST_TEST(refusal(tuple_of({int64_t{1} << 50}), tuple_of({0})) == "");
}

BOOST_AUTO_TEST_CASE(bools_of_torch_are_0_or_1) {
  const std::string pickle = pickle_of(tuple_of({2}), tuple_of({1}), 0, 24, "BoolStorage");
  BOOST_TEST(refusal_of_pickle(pickle) == "");
  const std::string bytes =
      archive_of({{"a/data.pkl", pickle}, {"a/data/0", std::string(24, '\2')}});
  BOOST_TEST(has(refusal_of_bytes(bytes), "tensor 'w': it is of type bool"));
}

BOOST_AUTO_TEST_CASE(archives_that_no_program_writes_are_refused) {
  const std::string pickle = pickle_of(tuple_of({2, 3}), tuple_of({3, 1}));
  const std::string good = torch_archive(pickle);
  BOOST_TEST(refusal_of_bytes(good) == "");
  auto check = [](const std::string& bytes, const char* part) {
    const std::string text = refusal_of_bytes(bytes);
    BOOST_TEST(has(text, part), part << " in: " << text);
  };
  std::string changed = good;
  changed[good.find("a/data/0") + 8] = 1;
  check(changed, "the CRC-32 of member 'a/data/0' does not match");
  check(archive_of({{"a/data.pkl", pickle}, {"a/data.pkl", pickle}}), "two members 'a/data.pkl'");
  check(archive_of({{"a/data.pkl", pickle}}), "its storage '0' is not in the archive");
  check(replaced(good, "PK\5\6", "PK\5\7"), "the record of its end is missing");
  check(good + "x", "the record of its end is missing");
  check("PK\3\4", "the record of its end is missing");

  // The second entry of the directory, changed from its beginning on.
  const size_t entry = good.rfind("PK\1\2");
  auto forged = [&](size_t at, std::string by) {
    return std::string(good).replace(entry + at, by.size(), by);
  };
  check(forged(8, "\1"), "encrypted");
  check(forged(10, "\x0c"), "packed by method 12");
  check(forged(10, "\x08"), "differs from its directory");
  check(forged(24, "\x19"), "cannot have 25 bytes");
  check(forged(42, std::string(4, '\0')), "differs from its directory");
  check(forged(42, "\xff\xff\xff\x7f"), "outside the file");
  check(forged(28, "\x09"), "cut off");
  check(forged(34, "\1"), "several disks");
  check(forged(46, "b"), "differs from its directory");

  // Both members share their bytes, as in a zip bomb: the second begins inside of the first.
  const std::string inner = archive_of({{"a/data/0", std::string(24, '\0')}});
  const std::string inner_file = inner.substr(0, inner.find("PK\1\2"));
  std::string bomb =
      archive_of({{"a/data.pkl", pickle + inner_file}, {"a/data/0", std::string(24, '\0')}});
  std::string at;
  put_number(at, bomb.find(inner_file), 4);
  check(bomb.replace(bomb.rfind("PK\1\2") + 42, 4, at), "its members overlap");
}

BOOST_AUTO_TEST_CASE(a_pickle_that_would_unpack_to_too_much_is_refused) {
  std::string zeros(size_t{65} << 20, '\0'), packed(compressBound(zeros.size()), '\0');
  z_stream stream{};
  BOOST_REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(zeros.data());
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  BOOST_REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  BOOST_TEST(has(refusal_of_bytes(archive_of({{"a/data.pkl", zeros, packed}})),
                 "and at most 67108864 are read"));
  // Its sizes say that it is short, and more comes out.
  BOOST_TEST(has(refusal_of_bytes(archive_of({{"a/data.pkl", zeros.substr(0, 100), packed}})),
                 "its zip archive is damaged"));
  BOOST_TEST(has(refusal_of_bytes(archive_of({{"a/data.pkl", zeros, packed.substr(0, 1000)}})),
                 "cannot have 68157440 bytes"));
}

BOOST_AUTO_TEST_CASE(many_values_in_a_pickle_are_refused) {
  BOOST_TEST(has(refusal_of_pickle("\x80\x02" + std::string(5'000'000, ']')),
                 "has more than 4194304 values"));
  BOOST_TEST(has(refusal_of_pickle("\x80\x02" + std::string(5'000'000, 'N')),
                 "has more than 4194304 values"));
  BOOST_TEST(has(refusal_of_pickle("\x80\x02" + std::string(5'000'000, '(')), "too many marks"));
  BOOST_TEST(has(refusal_of_pickle("\x80\x02Nr\xff\xff\xff\xff."), "its memo is too large"));
}

BOOST_AUTO_TEST_CASE(a_damaged_torch_file_is_refused_or_loaded) {
  attack(read_bytes(weights_file("views.pt")), 3000);
  attack(read_bytes(weights_file("nested.pt")), 1000);
  // Without the checks of zip around it, the pickle itself is reached.
  const std::string pickle = pickle_of(tuple_of({2, 3}), tuple_of({3, 1}));
  std::mt19937 random(2);
  for (int i = 0; i < (kSanitized ? 1000 : 5000); ++i) {
    std::string changed = pickle;
    for (uint32_t n = random() % 3 + 1; n-- > 0;)
      changed[random() % changed.size()] = static_cast<char>(random());
    const std::string text = refusal_of_pickle(changed);
    BOOST_REQUIRE((text.empty() || text.starts_with("cannot load checkpoint")));
  }
}

BOOST_AUTO_TEST_SUITE_END()
