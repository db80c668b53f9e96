// Byte pair encoding as in GPT-2.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/data/tokenizer.h>

namespace tenon::data {

struct BpeModel;

// A tokenizer whose tokens are bytes, and pairs of tokens that often stand beside each other
// (Sennrich et al., ACL 2016). A text is split into words, numbers, other signs and spaces first,
// as GPT-2 does (Radford et al. 2019), and pairs are merged inside of them, those that were learned
// first first. It takes any bytes. Tokens have GPT-2's numbers: with its file vocab.bpe, and
// "<|endoftext|>" as the special token, they are its own.
class TENON_API BpeTokenizer final : public Tokenizer {
 public:
  using Tokenizer::decode;
  // Learns the tokens of a text: 256 for the bytes, the pairs that occur most often, and the
  // special tokens. There are fewer than vocab_size where no pair occurs twice any more. The same
  // text gives the same tokens everywhere. Throws a ValueError if vocab_size is below 256 + special
  // tokens or above 2^24.
  static BpeTokenizer train(std::string_view text, int64_t vocab_size,
                            std::vector<std::string> special_tokens = {});
  // Reads a file of save(), or GPT-2's vocab.bpe (merges.txt): a line "#version: …", and a line for
  // each merge. Throws a DataError that names the file and the line.
  static BpeTokenizer load(const std::filesystem::path& path,
                           std::vector<std::string> special_tokens = {});
  // Writes the merges, without the special tokens. Throws a DataError if the file cannot be
  // written.
  void save(const std::filesystem::path& path) const;

  // Returns the number of tokens: the bytes, the merges and the special tokens.
  int64_t size() const override;
  // Returns the tokens of a text. Special tokens in it are text like any other.
  std::vector<int64_t> encode(std::string_view text) const override;
  // Returns the text of the tokens; that of a special token is its name.
  std::string decode(std::span<const int64_t> tokens) const override;
  // Returns the number of a special token. Throws a ValueError if there is none of this name.
  int64_t special_token(std::string_view name) const;

 private:
  explicit BpeTokenizer(std::shared_ptr<const BpeModel> model) : model_(std::move(model)) {}
  std::shared_ptr<const BpeModel> model_;
};

}  // namespace tenon::data
