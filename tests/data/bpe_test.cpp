// Byte pair encoding.
#include <map>
#include <random>

#include <boost/test/unit_test.hpp>

#include <tenon/core/tensor.h>
#include <tenon/data/bpe.h>
#include <tenon/data/text_dataset.h>

#include "packed.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(bpe_test)

using namespace tenon;
using namespace tenon::data;
using tenon::test::require_error;

namespace {

std::vector<std::string> pieces(const BpeTokenizer& bpe, const std::string& text) {
  std::vector<std::string> result;
  for (int64_t token : bpe.encode(text)) result.push_back(bpe.decode(token));
  return result;
}
using Pieces = std::vector<std::string>;

// Encodes a word as the paper says it: the first merge of the list that applies, everywhere, until
// none does.
Pieces by_the_book(const std::vector<std::pair<std::string, std::string>>& merges, Pieces word) {
  for (;;) {
    size_t best = merges.size();
    for (size_t i = 0; i + 1 < word.size(); ++i)
      for (size_t m = 0; m < best; ++m)
        if (merges[m] == std::pair(word[i], word[i + 1])) best = m;
    if (best == merges.size()) return word;
    Pieces next;
    for (size_t i = 0; i < word.size(); ++i)
      if (i + 1 < word.size() && merges[best] == std::pair(word[i], word[i + 1]))
        next.push_back(word[i] + word[i + 1]), ++i;
      else
        next.push_back(word[i]);
    word = next;
  }
}

}  // namespace

// "low" and its relatives, of the paper's example.
BOOST_AUTO_TEST_CASE(pairs_that_occur_most_often) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += "low\n";
  for (int i = 0; i < 2; ++i) text += "lower\n";
  for (int i = 0; i < 6; ++i) text += "newest\n";
  for (int i = 0; i < 3; ++i) text += "widest\n";
  const BpeTokenizer bpe = BpeTokenizer::train(text, 256 + 4);
  BOOST_TEST(bpe.size() == 260);
  std::vector<std::string> learned;
  for (int64_t token = 256; token < 260; ++token) learned.push_back(bpe.decode(token));
  // "e"+"s" and "s"+"t" occur nine times each; e has the smaller number.
  BOOST_TEST((learned == Pieces{"es", "est", "lo", "low"}));
  BOOST_TEST((pieces(bpe, "lowest") == Pieces{"low", "est"}));
  // No pair occurs twice any more.
  BOOST_TEST(BpeTokenizer::train("abab cd", 300).size() == 257);
  BOOST_TEST(BpeTokenizer::train("", 300).size() == 256);
}

BOOST_AUTO_TEST_CASE(numbers_of_gpt2) {
  const BpeTokenizer bpe = BpeTokenizer::train("", 257, {"<|endoftext|>"});
  BOOST_TEST((bpe.encode("!~ \n\xff") == std::vector<int64_t>{0, 93, 220, 198, 187}));
  BOOST_TEST(bpe.special_token("<|endoftext|>") == 256);
  BOOST_TEST(bpe.decode(256) == "<|endoftext|>");
  BOOST_TEST(bpe.encode("<|endoftext|>").size() == 13u);
  require_error<ValueError>([&] { bpe.special_token("<pad>"); },
                            "no special token '<pad>'; it has 1");
  const TempFolder folder;
  write_bytes(folder / "vocab.bpe", "#version: 0.2\n\xc4\xa0 t\n\xc4\xa0 a\nh e\n\xc4\xa0t he\n");
  const BpeTokenizer loaded = BpeTokenizer::load(folder / "vocab.bpe");
  BOOST_TEST((pieces(loaded, "the he at the") == Pieces{"t", "he", " ", "he", " a", "t", " the"}));
  BOOST_TEST((loaded.encode(" the") == std::vector<int64_t>{259}));
}

// What Python's regex finds with GPT-2's pattern.
BOOST_AUTO_TEST_CASE(words) {
  // Merges join whatever stands in one word, and nothing else.
  auto words = [](const std::string& text) {
    std::string often;
    for (int i = 0; i < 3; ++i) often += text;
    // Learned until every word is one token; spaces at the end have a letter behind them there.
    return pieces(BpeTokenizer::train(often, 5000), text);
  };
  BOOST_TEST((words("I'll say: it's 42 o'clock!!\n") ==
              Pieces{"I", "'ll", " say", ":", " it", "'s", " 42", " o", "'", "clock", "!!", "\n"}));
  BOOST_TEST((words("a  b\t\tc   ") == Pieces{"a", " ", " b", "\t", "\t", "c", "  ", " "}));
  BOOST_TEST((words("Grüße 北京2008 ½x, naïve") ==
              Pieces{"Grüße", " 北京", "2008", " ½", "x", ",", " naïve"}));
  BOOST_TEST((words("x\xc2\xa0y z") == Pieces{"x", "\xc2\xa0", "y", " z"}));
  BOOST_TEST((words("ab\xff\xfe"
                    "cd") == Pieces{"ab", "\xff\xfe", "cd"}));
}

BOOST_AUTO_TEST_CASE(any_bytes_come_back) {
  std::mt19937 random(5);
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += static_cast<char>(random() % 5 ? 'a' + random() % 3 : random());
  const BpeTokenizer bpe = BpeTokenizer::train(text, 600);
  BOOST_TEST(bpe.size() > 300);
  const TempFolder folder;
  bpe.save(folder / "merges.txt");
  const BpeTokenizer loaded = BpeTokenizer::load(folder / "merges.txt");
  BOOST_TEST(loaded.size() == bpe.size());
  for (int length = 0; length < 200; ++length) {
    std::string other;
    for (int i = 0; i < length; ++i)
      other += static_cast<char>(random() % 3 ? 'a' + random() % 3 : random());
    const std::vector<int64_t> tokens = bpe.encode(other);
    BOOST_REQUIRE(bpe.decode(tokens) == other);
    BOOST_REQUIRE(loaded.encode(other) == tokens);
  }
  require_error<IndexError>([&] { bpe.decode(bpe.size()); }, "BpeTokenizer: there is no token");
}

BOOST_AUTO_TEST_CASE(merges_in_the_order_they_were_learned) {
  std::mt19937 random(11);
  std::string text;
  for (int i = 0; i < 4000; ++i) text += random() % 6 ? static_cast<char>('a' + random() % 4) : ' ';
  const BpeTokenizer bpe = BpeTokenizer::train(text, 400);
  const TempFolder folder;
  bpe.save(folder / "merges.txt");
  std::vector<std::pair<std::string, std::string>> merges;
  std::ifstream file(folder / "merges.txt");
  std::string left, right;
  std::getline(file, left);
  auto plain = [](std::string token) {
    if (token.starts_with("\xc4\xa0")) token = " " + token.substr(2);
    return token;
  };
  while (file >> left >> right) merges.emplace_back(plain(left), plain(right));
  BOOST_TEST(merges.size() > 100u);
  for (int i = 0; i < 200; ++i) {
    Pieces letters;
    std::string word;
    for (uint32_t n = 1 + random() % 30; n > 0; --n) {
      letters.emplace_back(1, static_cast<char>('a' + random() % 4));
      word += letters.back();
    }
    BOOST_REQUIRE((pieces(bpe, word) == by_the_book(merges, letters)));
  }
}

BOOST_AUTO_TEST_CASE(long_words_take_no_time_at_all) {
  const std::string same(tenon::test::kSanitized ? 50'000 : 400'000, 'a');
  const BpeTokenizer bpe = BpeTokenizer::train(same, 300);
  BOOST_TEST(bpe.size() > 260);
  BOOST_TEST((bpe.decode(bpe.encode(same)) == same));
  BOOST_TEST(bpe.encode(same).size() <= same.size() / 128);
}

BOOST_AUTO_TEST_CASE(files_that_are_no_merges) {
  const TempFolder folder;
  const auto path = folder / "merges.txt";
  auto refusal = [&](const std::string& text) {
    write_bytes(path, text);
    return error_of<DataError>([&] { BpeTokenizer::load(path); });
  };
  BOOST_TEST(refusal("#version: 0.2\na b\r\n\nab c\n").empty());
  BOOST_TEST(has(refusal("a b\nabc\n"), "merges.txt': line 2: a merge is two tokens"));
  BOOST_TEST(has(refusal("a b c\n"), "line 1: a merge is two tokens"));
  BOOST_TEST(has(refusal("ab c\n"), "line 1: no line in front of it makes the token 'ab'"));
  BOOST_TEST(has(refusal("a b\nb c\na b\n"), "line 3: this merge was there before"));
  BOOST_TEST(has(refusal("a \n"), "line 1: no line in front of it makes the token ''"));
  require_error<DataError>([&] { BpeTokenizer::load(folder / "none"); },
                           "none': there is no such file");
  require_error<ValueError>([] { BpeTokenizer::train("a", 256, {"<s>"}); },
                            "vocab_size has to be at least 257");
  require_error<DataError>([&] { BpeTokenizer::train("a", 256).save(folder / "no/where"); },
                           "cannot write '", "no/where': No such file or directory");
  // Two ways to the same text are one token.
  BOOST_TEST(refusal("a b\nb c\nab c\na bc\n").empty());
  BOOST_TEST(BpeTokenizer::load(path).size() == 256 + 3);
  std::mt19937 random(2);
  for (int i = 0; i < (test::kSanitized ? 60 : 200); ++i)
    refusal(with_faults("#version: 0.2\na b\nab c\nabc d\n\xc4\xa0 a\n", random));
}

BOOST_AUTO_TEST_CASE(shakespeare, *boost::unit_test::precondition(HasData{"tinyshakespeare"})) {
  if (tenon::test::kSanitized) return;
  const std::string text = read_text(real_data("tinyshakespeare") / "input.txt");
  const BpeTokenizer bpe = BpeTokenizer::train(text, 1000);
  BOOST_TEST(bpe.size() == 1000);
  const Tensor tokens = bpe.encode_tensor(text);
  BOOST_TEST((bpe.decode(tokens) == text));
  BOOST_TEST(tokens.size(0) < static_cast<int64_t>(text.size()) / 2);
  BOOST_TEST(TextDataset(tokens, 64).size() > 0);
}

BOOST_AUTO_TEST_SUITE_END()
