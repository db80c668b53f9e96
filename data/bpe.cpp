#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <queue>
#include <system_error>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/data/bpe_model.h>
#include <tenon/data/bpe_words.h>

namespace tenon::data {
namespace {

// The bytes in the order of GPT-2's tokens: first the 188 that its files write as they are.
constexpr std::array<unsigned char, 256> kBytes = [] {
  std::array<unsigned char, 256> order{};
  size_t at = 0;
  for (bool first : {true, false})
    for (int byte = 0; byte < 256; ++byte) {
      const bool prints =
          (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      if (prints == first) order[at++] = static_cast<unsigned char>(byte);
    }
  return order;
}();

// The character that its files write for each byte: the other bytes are those from U+0100 on.
constexpr std::array<uint16_t, 256> kSigns = [] {
  std::array<uint16_t, 256> signs{};
  for (size_t i = 0; i < 256; ++i)
    signs[kBytes[i]] = static_cast<uint16_t>(i < 188 ? kBytes[i] : 256 + i - 188);
  return signs;
}();

std::string written(std::string_view token) {
  std::string text;
  for (char byte : token) {
    const unsigned sign = kSigns[static_cast<unsigned char>(byte)];
    if (sign < 0x80) {
      text += static_cast<char>(sign);
    } else {
      text += static_cast<char>(0xC0 | sign >> 6);
      text += static_cast<char>(0x80 | (sign & 0x3F));
    }
  }
  return text;
}

void check_size(const char* who, size_t tokens) {
  if (tokens > size_t{1} << 24)
    throw ValueError(
        fmt::format("BpeTokenizer::{}: there are at most 2^24 tokens, not {}", who, tokens));
}

}  // namespace

BpeModel::BpeModel() {
  for (unsigned char byte : kBytes) {
    bytes[byte] = static_cast<int32_t>(texts.size());
    texts.emplace_back(1, static_cast<char>(byte));
    tokens.emplace(texts.back(), bytes[byte]);
  }
}

int32_t BpeModel::add_merge(TokenPair pair) {
  const std::string text =
      texts[static_cast<size_t>(pair.first)] + texts[static_cast<size_t>(pair.second)];
  const auto [at, added] = tokens.emplace(text, static_cast<int32_t>(texts.size()));
  if (added) texts.push_back(text);
  merged.emplace(key_of(pair), Merge{static_cast<int32_t>(merges.size()), at->second});
  merges.push_back(pair);
  return at->second;
}

void BpeModel::add_special(std::vector<std::string> names) {
  special = names.size();
  for (std::string& name : names) texts.push_back(std::move(name));
}

// The tokens are a list, in which the pair that was learned first is merged first; of equal ones
// the one on the left. A queue finds it, so that a long word takes no longer than several short
// ones.
void BpeModel::encode_word(std::string_view word, std::vector<int64_t>& result) const {
  struct Link {
    int32_t token, next;
    int32_t before;
  };
  using Candidate = std::pair<int32_t, int32_t>;  // the rank of a merge, and where
  const auto count = static_cast<int32_t>(word.size());
  std::vector<Link> list(word.size());
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  auto merge_of = [&](int32_t at) {
    const Link& link = list[static_cast<size_t>(at)];
    if (link.token < 0 || link.next == count) return Merge{-1, -1};
    const auto found =
        merged.find(key_of({link.token, list[static_cast<size_t>(link.next)].token}));
    return found == merged.end() ? Merge{-1, -1} : found->second;
  };
  auto consider = [&](int32_t at) {
    if (const int32_t rank = merge_of(at).rank; rank >= 0) queue.emplace(rank, at);
  };
  for (int32_t i = 0; i < count; ++i)
    list[static_cast<size_t>(i)] = {token_of(word[static_cast<size_t>(i)]), i + 1, i - 1};
  for (int32_t i = 0; i < count; ++i) consider(i);
  while (!queue.empty()) {
    const auto [rank, at] = queue.top();
    queue.pop();
    Link& link = list[static_cast<size_t>(at)];
    // One of the two may have been merged with another one since.
    const Merge merge = merge_of(at);
    if (merge.rank != rank) continue;
    Link& gone = list[static_cast<size_t>(link.next)];
    link = {merge.token, gone.next, link.before};
    gone.token = -1;
    if (link.next != count) list[static_cast<size_t>(link.next)].before = at;
    consider(at);
    if (link.before >= 0) consider(link.before);
  }
  for (int32_t at = 0; at < count; at = list[static_cast<size_t>(at)].next)
    result.push_back(list[static_cast<size_t>(at)].token);
}

BpeTokenizer BpeTokenizer::train(std::string_view text, int64_t vocab_size,
                                 std::vector<std::string> special_tokens) {
  const auto least = static_cast<int64_t>(256 + special_tokens.size());
  if (vocab_size < least)
    throw ValueError(fmt::format(
        "BpeTokenizer::train: vocab_size has to be at least {}, for 256 bytes and {} special "
        "tokens, but is {}",
        least, special_tokens.size(), vocab_size));
  check_size("train", static_cast<size_t>(vocab_size));
  auto model = std::make_shared<BpeModel>();
  model->learn(text, static_cast<size_t>(vocab_size) - special_tokens.size());
  model->add_special(std::move(special_tokens));
  return BpeTokenizer(std::move(model));
}

BpeTokenizer BpeTokenizer::load(const std::filesystem::path& path,
                                std::vector<std::string> special_tokens) {
  const std::string file = read_text(path);
  auto model = std::make_shared<BpeModel>();
  std::unordered_map<std::string, int32_t> numbers;
  for (const std::string& token : model->texts)
    numbers.emplace(written(token), static_cast<int32_t>(numbers.size()));
  int64_t line_number = 0;
  for (size_t at = 0; at < file.size();) {
    const size_t end = std::min(file.find('\n', at), file.size());
    std::string_view line = std::string_view(file).substr(at, end - at);
    at = end + 1, ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
    auto refuse = [&](const std::string& why) {
      throw DataError(
          fmt::format("cannot read '{}': line {}: {}", printable(path.native()), line_number, why));
    };
    const size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos)
      refuse(fmt::format("a merge is two tokens with a space between them, found '{}'",
                         excerpt(line)));
    const std::string left(line.substr(0, space)), right(line.substr(space + 1));
    for (const std::string& token : {left, right})
      if (!numbers.contains(token))
        refuse(fmt::format("no line in front of it makes the token '{}'", excerpt(token)));
    const TokenPair pair(numbers.at(left), numbers.at(right));
    if (model->merged.contains(key_of(pair))) refuse("this merge was there before");
    numbers.emplace(left + right, model->add_merge(pair));
  }
  check_size("load", model->texts.size() + special_tokens.size());
  model->add_special(std::move(special_tokens));
  return BpeTokenizer(std::move(model));
}

void BpeTokenizer::save(const std::filesystem::path& path) const {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << "#version: 0.2\n";
  for (const auto& [left, right] : model_->merges)
    file << written(model_->texts[static_cast<size_t>(left)]) << ' '
         << written(model_->texts[static_cast<size_t>(right)]) << '\n';
  file.flush();
  if (!file)
    throw DataError(fmt::format("cannot write '{}': {}", printable(path.native()),
                                std::system_category().message(errno)));
}

int64_t BpeTokenizer::size() const { return static_cast<int64_t>(model_->texts.size()); }

std::vector<int64_t> BpeTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> tokens;
  std::unordered_map<std::string_view, std::pair<size_t, size_t>> known;  // where its tokens are
  while (!text.empty()) {
    // What does not fit into the numbers of a list is taken apart.
    const std::string_view word = text.substr(0, std::min(word_length(text), size_t{1} << 30));
    text.remove_prefix(word.size());
    const auto [at, added] = known.emplace(word, std::pair(tokens.size(), size_t{0}));
    const auto [begin, count] = at->second;
    if (added) {
      model_->encode_word(word, tokens);
      at->second.second = tokens.size() - begin;
    } else {
      tokens.reserve(tokens.size() + count);  // or what is copied would move
      std::copy_n(tokens.begin() + static_cast<std::ptrdiff_t>(begin), count,
                  std::back_inserter(tokens));
    }
  }
  return tokens;
}

std::string BpeTokenizer::decode(std::span<const int64_t> tokens) const {
  std::string text;
  for (int64_t token : tokens) {
    if (token < 0 || token >= size())
      throw IndexError(
          fmt::format("BpeTokenizer: there is no token {}; tokens are 0 to {}", token, size() - 1));
    text += model_->texts[static_cast<size_t>(token)];
  }
  return text;
}

int64_t BpeTokenizer::special_token(std::string_view name) const {
  for (size_t i = model_->texts.size() - model_->special; i < model_->texts.size(); ++i)
    if (model_->texts[i] == name) return static_cast<int64_t>(i);
  throw ValueError(fmt::format("BpeTokenizer: there is no special token '{}'; it has {}",
                               printable(name), model_->special));
}

}  // namespace tenon::data
