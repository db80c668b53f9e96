#include <algorithm>
#include <cstring>
#include <set>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/core/tensor_methods.h>
#include <tenon/data/byte_source.h>
#include <tenon/data/tokenizer.h>

namespace tenon::data {

std::string read_text(const std::filesystem::path& path) {
  return naming_lack_of_memory<DataError>("cannot read", path, [&] {
    ByteSource source(path);
    std::string text;
    for (size_t count = 1; count > 0;) {
      constexpr size_t piece = size_t{1} << 20;
      const size_t before = text.size();
      text.resize(before + piece);
      count = source.read(text.data() + before, piece);
      text.resize(before + count);
    }
    return text;
  });
}

namespace {

[[noreturn]] void refuse_token(const char* tokenizer, int64_t token, int64_t size) {
  throw IndexError(
      fmt::format("{}: there is no token {}; tokens are 0 to {}", tokenizer, token, size - 1));
}

// Calls `with` with each character and its first byte.
template <class With>
void for_each_character(std::string_view text, With&& with) {
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const size_t length = byte < 0x80 ? 1 : utf8_length(text.substr(at));
    if (length == 0)
      throw ValueError(fmt::format(
          "CharVocabulary: byte {} of the text (0x{:02x}) is not UTF-8; ByteTokenizer takes any "
          "bytes",
          at, byte));
    with(text.substr(at, length), at);
    at += length;
  }
}

}  // namespace

Tokenizer::~Tokenizer() = default;

Tensor Tokenizer::encode_tensor(std::string_view text) const {
  const std::vector<int64_t> tokens = encode(text);
  const HostTensor result = make_host_tensor({static_cast<int64_t>(tokens.size())}, DType::i64);
  if (!tokens.empty()) std::memcpy(result.values, tokens.data(), tokens.size() * sizeof(int64_t));
  return result.tensor;
}

std::string Tokenizer::decode(const Tensor& tokens) const {
  if (tokens.dtype() != DType::i64 && tokens.dtype() != DType::i32 && tokens.dtype() != DType::u8)
    throw DTypeError(fmt::format("decode: tokens are i64, i32 or u8, not {}", tokens.dtype()));
  return decode(tokens.to_vector<int64_t>());
}

std::vector<int64_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> tokens(text.size());
  for (size_t i = 0; i < text.size(); ++i) tokens[i] = static_cast<unsigned char>(text[i]);
  return tokens;
}

std::string ByteTokenizer::decode(std::span<const int64_t> tokens) const {
  std::string text(tokens.size(), '\0');
  for (size_t i = 0; i < text.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] > 255) refuse_token("ByteTokenizer", tokens[i], 256);
    text[i] = static_cast<char>(tokens[i]);
  }
  return text;
}

CharVocabulary::CharVocabulary(std::string_view text) : ascii_(128, -1) {
  // UTF-8 sorts as its code points do.
  std::set<std::string_view> others;
  for_each_character(text, [&](std::string_view character, size_t) {
    if (character.size() == 1)
      ascii_[static_cast<unsigned char>(character[0])] = 0;
    else
      others.insert(character);
  });
  int64_t token = 0;
  for (size_t c = 0; c < ascii_.size(); ++c)
    if (ascii_[c] == 0) {
      ascii_[c] = token++;
      starts_.push_back(characters_.size());
      characters_ += static_cast<char>(c);
    }
  for (std::string_view character : others) {
    starts_.push_back(characters_.size());
    characters_ += character;
  }
  starts_.push_back(characters_.size());
}

std::string_view CharVocabulary::character(int64_t token) const {
  const auto i = static_cast<size_t>(token);
  return std::string_view(characters_).substr(starts_[i], starts_[i + 1] - starts_[i]);
}

std::vector<int64_t> CharVocabulary::encode(std::string_view text) const {
  std::vector<int64_t> tokens;
  tokens.reserve(text.size());
  for_each_character(text, [&](std::string_view asked, size_t at) {
    int64_t token = -1;
    if (asked.size() == 1) {
      token = ascii_[static_cast<unsigned char>(asked[0])];
    } else {
      int64_t low = 0, high = size();
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        character(middle) < asked ? void(low = middle + 1) : void(high = middle);
      }
      if (low < size() && character(low) == asked) token = low;
    }
    if (token < 0)
      throw ValueError(
          fmt::format("CharVocabulary: the character '{}' at byte {} is not in the vocabulary of "
                      "{} characters; make it from a text that has them all",
                      printable(asked), at, size()));
    tokens.push_back(token);
  });
  return tokens;
}

std::string CharVocabulary::decode(std::span<const int64_t> tokens) const {
  std::string text;
  for (int64_t token : tokens) {
    if (token < 0 || token >= size()) refuse_token("CharVocabulary", token, size());
    text += character(token);
  }
  return text;
}

}  // namespace tenon::data
