// Text as tokens, and windows of it.
#include <boost/test/unit_test.hpp>

#include <tenon/core/tensor.h>
#include <tenon/data/loader.h>
#include <tenon/data/text_dataset.h>
#include <tenon/data/tokenizer.h>

#include "packed.h"

BOOST_AUTO_TEST_SUITE(text_test)

using namespace tenon;
using namespace tenon::data;
using tenon::test::require_error;
using Tokens = std::vector<int64_t>;

BOOST_AUTO_TEST_CASE(characters_in_the_order_of_their_code_points) {
  const CharVocabulary vocabulary("héllo wörld ∑\xf0\x9f\x98\x80");
  BOOST_TEST(vocabulary.characters() == " dhlorwéö∑\xf0\x9f\x98\x80");
  BOOST_TEST(vocabulary.size() == 11);
  BOOST_TEST((vocabulary.encode("lö ∑\xf0\x9f\x98\x80") == Tokens{3, 8, 0, 9, 10}));
  BOOST_TEST(vocabulary.decode(vocabulary.encode("hélloö")) == "hélloö");
  BOOST_TEST(vocabulary.decode(7) == "é");
  BOOST_TEST(vocabulary.decode(vocabulary.encode_tensor("world")) == "world");
  BOOST_TEST(CharVocabulary(vocabulary.characters()).characters() == vocabulary.characters());
  BOOST_TEST(CharVocabulary("").size() == 0);
  BOOST_TEST((vocabulary.encode_tensor("").shape() == Shape{0}));
  require_error<ValueError>(
      [&] { vocabulary.encode("lox"); },
      "the character 'x' at byte 2 is not in the vocabulary of 11 characters");
  require_error<ValueError>([&] { vocabulary.encode("oü"); }, "'ü' at byte 1");
  require_error<ValueError>([] { CharVocabulary("ab\xff"); },
                            "byte 2 of the text (0xff) is not UTF-8");
  require_error<ValueError>([] { CharVocabulary("\xed\xa0\x80"); }, "byte 0 of the text (0xed)");
  require_error<IndexError>([&] { vocabulary.decode(11); },
                            "there is no token 11; tokens are 0 to 10");
  require_error<IndexError>([&] { vocabulary.decode(-1); }, "there is no token -1");
  require_error<DTypeError>([&] { vocabulary.decode(zeros({2})); },
                            "tokens are i64, i32 or u8, not f32");
}

BOOST_AUTO_TEST_CASE(bytes) {
  const ByteTokenizer bytes;
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  BOOST_TEST(bytes.decode(bytes.encode(all)) == all);
  BOOST_TEST((bytes.encode("a\xff") == Tokens{97, 255}));
  require_error<IndexError>([&] { bytes.decode(256); }, "ByteTokenizer: there is no token 256");
}

BOOST_AUTO_TEST_CASE(windows_and_what_follows_them) {
  for (DType dtype : {i64, i32, u8}) {
    const TextDataset set(arange(0, 10).to(dtype), 3);
    BOOST_TEST(set.size() == 3);
    const Batch batch = set.get_batch(Tokens{2, 0});
    BOOST_TEST((batch.data.shape() == Shape{2, 3}));
    BOOST_TEST((batch.data.dtype() == i64));
    BOOST_TEST((batch.data.to_vector<int>() == std::vector<int>{6, 7, 8, 0, 1, 2}));
    BOOST_TEST((batch.target.to_vector<int>() == std::vector<int>{7, 8, 9, 1, 2, 3}));
  }
  BOOST_TEST(TextDataset(arange(0, 9).to(i64), 3).size() == 2);
  const TextDataset dense(arange(0, 10).to(i64), 3, 1);
  BOOST_TEST(dense.size() == 7);
  BOOST_TEST((dense.get(6).target.to_vector<int>() == std::vector<int>{7, 8, 9}));
  BOOST_TEST(TextDataset(arange(0, 4).to(i64), 3).size() == 1);
  require_error<ValueError>([] { TextDataset(arange(0, 3).to(i64), 3); },
                            "a window of 3 tokens and the one after it need more than the 3");
  require_error<ValueError>([] { TextDataset(arange(0, 3).to(i64), 0); },
                            "block_size has to be at least 1");
  require_error<ValueError>([] { TextDataset(arange(0, 3).to(i64), 1, -1); }, "stride has to be");
  require_error<DTypeError>([] { TextDataset(arange(0, 9), 3); },
                            "tokens are i64, i32 or u8, found f32");
  require_error<ShapeError>([] { TextDataset(zeros({3, 3}).to(i64), 3); }, "found shape (3, 3)");
  require_error<IndexError>([&] { dense.get(7); }, "there is no window 7; it has 7");
  // Strides that go beyond any text.
  BOOST_TEST(TextDataset(arange(0, 9).to(i64), 3, std::numeric_limits<int64_t>::max()).size() == 1);
}

BOOST_AUTO_TEST_CASE(files_plain_and_packed) {
  const TempFolder folder;
  const std::string text = "Tenon\n" + std::string(3'000'000, 'x');
  write_bytes(folder / "a.txt", text);
  write_bytes(folder / "a.gz", gzip(text));
  BOOST_TEST((read_text(folder / "a.txt") == text));
  BOOST_TEST((read_text(folder / "a.gz") == text));
  require_error<DataError>([&] { read_text(folder / "none"); }, "cannot read '", "none'");
}

BOOST_AUTO_TEST_CASE(shakespeare, *boost::unit_test::precondition(HasData{"tinyshakespeare"})) {
  const std::string text = read_text(real_data("tinyshakespeare") / "input.txt");
  const CharVocabulary vocabulary(text);
  BOOST_TEST(vocabulary.size() == 65);
  BOOST_TEST((vocabulary.decode(vocabulary.encode(text)) == text));
  DataLoader loader(TextDataset(vocabulary.encode_tensor(text), 64), {.batch_size = 12});
  for (auto& [x, y] : loader) {
    BOOST_TEST((x.shape() == Shape{12, 64}));
    BOOST_TEST((x.narrow(1, 1, 63).to_vector<int>() == y.narrow(1, 0, 63).to_vector<int>()));
    break;
  }
}

BOOST_AUTO_TEST_SUITE_END()
