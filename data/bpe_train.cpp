#include <algorithm>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <tenon/data/bpe_model.h>
#include <tenon/data/bpe_words.h>

namespace tenon::data {
namespace {

constexpr size_t kMaxToken =
    256;  // bytes; longer ones would stand for a file's rulers and fillings

// The words of a text, each once, and how often each pair stands in them.
class Trainer {
 public:
  Trainer(std::string_view text, BpeModel& model) : model_(model) {
    std::unordered_map<std::string_view, size_t> numbers;
    while (!text.empty()) {
      const std::string_view word = text.substr(0, word_length(text));
      text.remove_prefix(word.size());
      const auto [at, added] = numbers.emplace(word, words_.size());
      if (added) {
        words_.emplace_back();
        for (char byte : word) words_.back().tokens.push_back(model.token_of(byte));
      }
      ++words_[at->second].count;
    }
    for (size_t i = 0; i < words_.size(); ++i) count_pairs(i, 1);
    for (const auto& [key, pair] : pairs_) queue_.push({pair.count, key});
  }

  void learn(size_t count) {
    while (model_.texts.size() < count && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(best.key);
      if (found == pairs_.end() || found->second.count < 2) continue;
      if (found->second.count != best.count) {  // it has been counted again since
        queue_.push({found->second.count, best.key});
        continue;
      }
      const TokenPair pair(static_cast<int32_t>(best.key >> 32), static_cast<int32_t>(best.key));
      if (length_of(pair.first) + length_of(pair.second) > kMaxToken)
        pairs_.erase(found);
      else
        merge(pair, model_.add_merge(pair));
    }
  }

 private:
  struct Word {
    std::vector<int32_t> tokens;
    int64_t count = 0;
  };
  struct Pair {
    int64_t count = 0;
    std::unordered_set<size_t> words;  // where it is, or was
  };
  struct Candidate {
    int64_t count;
    uint64_t key;
    // Where pairs occur equally often, the one of the smaller tokens comes first.
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  size_t length_of(int32_t token) const { return model_.texts[static_cast<size_t>(token)].size(); }

  void count_pairs(size_t number, int64_t sign) {
    const Word& word = words_[number];
    for (size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      Pair& pair = pairs_[key_of({word.tokens[i], word.tokens[i + 1]})];
      pair.count += sign * word.count;
      if (sign > 0) pair.words.insert(number);
    }
  }

  void merge(TokenPair pair, int32_t token) {
    std::vector<size_t> words(pairs_[key_of(pair)].words.begin(), pairs_[key_of(pair)].words.end());
    std::vector<uint64_t> changed;
    for (size_t number : words) {
      std::vector<int32_t>& tokens = words_[number].tokens;
      count_pairs(number, -1);
      size_t to = 0;
      for (size_t i = 0; i < tokens.size(); ++i) {
        const bool here =
            i + 1 < tokens.size() && tokens[i] == pair.first && tokens[i + 1] == pair.second;
        tokens[to++] = here ? token : tokens[i];
        i += here;
      }
      tokens.resize(to);
      count_pairs(number, 1);
      for (size_t i = 0; i + 1 < to; ++i)
        if (tokens[i] == token || tokens[i + 1] == token)
          changed.push_back(key_of({tokens[i], tokens[i + 1]}));
    }
    pairs_.erase(key_of(pair));
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (uint64_t key : changed)
      if (const auto found = pairs_.find(key); found != pairs_.end())
        queue_.push({found->second.count, key});
  }

  BpeModel& model_;
  std::vector<Word> words_;
  std::unordered_map<uint64_t, Pair> pairs_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

void BpeModel::learn(std::string_view text, size_t count) { Trainer(text, *this).learn(count); }

}  // namespace tenon::data
