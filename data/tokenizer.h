// Text as numbers: whole files, bytes and characters. <tenon/data/bpe.h> has byte pair encoding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon::data {

// Returns the bytes of a file, which is unpacked if it is a gzip file. Throws a DataError that
// names the file if it cannot be read, or if there is no memory for it.
TENON_API std::string read_text(const std::filesystem::path& path);

// Turns text into tokens, numbers from 0 to size() - 1, and back. decode(encode(text)) is the text.
// Several threads may use one at the same time.
class TENON_API Tokenizer {
 public:
  virtual ~Tokenizer();
  // Returns how many different tokens there are.
  virtual int64_t size() const = 0;
  // Returns the tokens of a text. Throws a ValueError for a text that has none.
  virtual std::vector<int64_t> encode(std::string_view text) const = 0;
  // Returns the text of the tokens. Throws an IndexError that names a token outside [0, size()).
  virtual std::string decode(std::span<const int64_t> tokens) const = 0;

  // Returns the tokens as i64 of shape (T) on cpu:0.
  Tensor encode_tensor(std::string_view text) const;
  // Returns the text of one token. Throws an IndexError as above.
  std::string decode(int64_t token) const { return decode(std::span<const int64_t>(&token, 1)); }
  // Returns the text of the tokens in a tensor of i64, i32 or u8, row by row. Throws a DTypeError
  // for another dtype, and an IndexError as above.
  std::string decode(const Tensor& tokens) const;
};

// A tokenizer that takes any text: each byte is the token of its value, from 0 to 255.
class TENON_API ByteTokenizer final : public Tokenizer {
 public:
  using Tokenizer::decode;
  // Returns 256.
  int64_t size() const override { return 256; }
  // Returns the bytes of a text.
  std::vector<int64_t> encode(std::string_view text) const override;
  // Returns the text of these bytes.
  std::string decode(std::span<const int64_t> tokens) const override;
};

// A tokenizer for which each character that occurs in a text is a token, in the order of their code
// points.
class TENON_API CharVocabulary final : public Tokenizer {
 public:
  using Tokenizer::decode;
  // Takes the characters of a UTF-8 text; the order and repetitions do not matter, so that
  // CharVocabulary(other.characters()) equals `other`. Throws a ValueError for bytes that are not
  // UTF-8.
  explicit CharVocabulary(std::string_view text);

  // Returns the number of characters.
  int64_t size() const override { return static_cast<int64_t>(starts_.size()) - 1; }
  // Returns the token of each character. Throws a ValueError that names the first character that is
  // not in the vocabulary, and its byte.
  std::vector<int64_t> encode(std::string_view text) const override;
  // Returns the characters of these tokens.
  std::string decode(std::span<const int64_t> tokens) const override;
  // Returns all characters, from token 0 on. Keep this text to make the vocabulary again.
  const std::string& characters() const { return characters_; }

 private:
  std::string_view character(int64_t token) const;
  std::string characters_;
  std::vector<size_t> starts_;  // where each character begins, and the end
  std::vector<int64_t> ascii_;  // the token of each character below 128, or -1
};

}  // namespace tenon::data
