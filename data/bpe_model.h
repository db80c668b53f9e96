// What a BpeTokenizer has learned.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/data/bpe.h>

namespace tenon::data {

using TokenPair = std::pair<int32_t, int32_t>;
inline uint64_t key_of(TokenPair pair) {
  return static_cast<uint64_t>(static_cast<uint32_t>(pair.first)) << 32 |
         static_cast<uint32_t>(pair.second);
}

struct BpeModel {
  struct Merge {
    int32_t rank, token;
  };
  std::vector<TokenPair> merges;                    // in the order of their ranks
  std::vector<std::string> texts;                   // of each token
  std::unordered_map<std::string, int32_t> tokens;  // of each text, without special tokens
  std::unordered_map<uint64_t, Merge> merged;       // what becomes of a pair
  size_t special = 0;                               // how many special tokens there are, at the end

  BpeModel();  // with the bytes
  // Returns the token of a byte.
  int32_t token_of(char byte) const { return bytes[static_cast<unsigned char>(byte)]; }
  // Returns the token that the pair makes: a new one, unless two others make the same text.
  int32_t add_merge(TokenPair pair);
  void add_special(std::vector<std::string> names);
  // Adds the tokens of a word.
  void encode_word(std::string_view word, std::vector<int64_t>& result) const;
  // Merges the pairs that occur most often, until there are so many tokens.
  void learn(std::string_view text, size_t count);

  int32_t bytes[256];
};

}  // namespace tenon::data
