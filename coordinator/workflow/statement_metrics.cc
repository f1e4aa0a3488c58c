#include "coordinator/workflow/statement_metrics.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/folded_text.h"

namespace solward::workflow::internal {
namespace {

enum class TokenKind { kWord, kSeparator, kBreak };

struct Token {
  TokenKind kind;
  std::string text;
  size_t begin = 0, end = 0;
};

bool IsWordChar(char c) { return absl::ascii_isalnum(c) || c == '%'; }

// British and American spelling alike.
std::string Spelling(absl::string_view word) {
  return absl::StrReplaceAll(word, {{"ization", "isation"}});
}

std::vector<Token> Tokenize(absl::string_view lower) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < lower.size();) {
    const char c = lower[at];
    if (c == ' ' || c == '-' || c == '_' || c == '\'' || c == '\n' || c == '"' || c == '`' ||
        c == '*') {
      ++at;
      continue;
    }
    size_t end = at + 1;
    if (!IsWordChar(c)) {
      const bool separates = c == ',' || c == '/' || c == '&' || c == '+';
      tokens.push_back(
          {separates ? TokenKind::kSeparator : TokenKind::kBreak, std::string(1, c), at, end});
      at = end;
      continue;
    }
    // "%" is a word of its own but at the end of one ("sol%").
    while (end < lower.size() && absl::ascii_isalnum(lower[end])) ++end;
    const std::string word = Spelling(lower.substr(at, end - at));
    const bool joins = word == "and" || word == "et" || word == "or" || word == "ou";
    tokens.push_back({joins ? TokenKind::kSeparator : TokenKind::kWord, word, at, end});
    at = end;
  }
  return tokens;
}

std::string Key(const std::vector<Token>& tokens, size_t begin, size_t end) {
  std::string key;
  for (size_t i = begin; i < end; ++i) absl::StrAppend(&key, i > begin ? " " : "", tokens[i].text);
  return key;
}

// Words of the catalogue -> id. Ids in words win over synonyms, groups over
// metrics.
class Dictionary {
 public:
  explicit Dictionary(const MetricCatalogue& catalogue) {
    for (const MetricGroup& group : catalogue.groups()) AddId(group.id);
    for (const MetricDefinition& metric : catalogue.metrics()) {
      if (IsMeasured(metric)) AddId(metric.id);
    }
    for (const MetricGroup& group : catalogue.groups()) AddAll(group.synonyms, group.id);
    for (const MetricDefinition& metric : catalogue.metrics()) AddAll(metric.synonyms, metric.id);
  }

  const std::string* Find(const std::string& key) const {
    const auto found = ids_.find(key);
    return found == ids_.end() ? nullptr : &found->second;
  }
  size_t longest() const { return longest_; }

 private:
  // Figures of the client and of tables are no wish.
  static bool IsMeasured(const MetricDefinition& metric) {
    return !absl::StartsWith(metric.source, "client") &&
           !absl::StartsWith(metric.source, "config/");
  }

  // One word of an id ("power") is too common to be a wish; its synonyms say.
  void AddId(const std::string& id) {
    if (absl::StrContains(id, '_')) Add(id, id);
  }

  void AddAll(const std::vector<std::string>& synonyms, const std::string& id) {
    for (const std::string& synonym : synonyms) Add(synonym, id);
  }

  void Add(absl::string_view words, const std::string& id) {
    const std::vector<Token> tokens = Tokenize(FoldWord(words));
    if (tokens.empty()) return;
    longest_ = std::max(longest_, tokens.size());
    ids_.emplace(Key(tokens, 0, tokens.size()), id);
  }

  std::map<std::string, std::string> ids_;
  size_t longest_ = 1;
};

struct Found {
  std::vector<std::string> ids;
  size_t tokens = 0;  // how many it covers
};

class Matcher {
 public:
  Matcher(const std::vector<Token>& tokens, const Dictionary& dictionary)
      : tokens_(tokens), dictionary_(dictionary) {}

  // The best match that begins at a token.
  Found At(size_t at) const {
    Found best = Longest(at);
    for (const size_t head : {size_t{1}, size_t{2}}) {
      for (const Found& shared : {SharedHeadBehind(at, head), SharedHeadBefore(at, head)}) {
        if (shared.tokens > best.tokens) best = shared;
      }
    }
    return best;
  }

 private:
  bool IsWord(size_t i) const { return i < tokens_.size() && tokens_[i].kind == TokenKind::kWord; }
  bool IsSeparator(size_t i) const {
    return i < tokens_.size() && tokens_[i].kind == TokenKind::kSeparator;
  }

  Found Longest(size_t at) const {
    for (size_t n = std::min(dictionary_.longest(), tokens_.size() - at); n > 0; --n) {
      if (const std::string* id = dictionary_.Find(Key(tokens_, at, at + n))) return {{*id}, n};
    }
    return {};
  }

  const std::string* Pair(size_t word, size_t head, size_t head_size, bool head_first) const {
    const std::string head_words = Key(tokens_, head, head + head_size);
    return dictionary_.Find(head_first ? absl::StrCat(head_words, " ", tokens_[word].text)
                                       : absl::StrCat(tokens_[word].text, " ", head_words));
  }

  // Words of a list "a, b and c" from `at`; at most eight.
  std::vector<size_t> List(size_t at) const {
    std::vector<size_t> words;
    while (IsWord(at) && words.size() < 8) {
      words.push_back(at);
      if (!IsSeparator(at + 1)) break;
      at += IsSeparator(at + 2) ? 3 : 2;  // ", and"
    }
    return words;
  }

  bool AllWords(size_t at, size_t count) const {
    for (size_t i = at; i < at + count; ++i) {
      if (!IsWord(i)) return false;
    }
    return true;
  }

  // "compute/memory throughput"
  Found SharedHeadBehind(size_t at, size_t head_size) const {
    const std::vector<size_t> words = List(at);
    if (words.size() < 2) return {};
    const size_t head = words.back() + 1;
    if (!AllWords(head, head_size)) return {};
    Found found;
    for (const size_t word : words) {
      const std::string* id = Pair(word, head, head_size, false);
      if (id == nullptr) return {};
      found.ids.push_back(*id);
    }
    found.tokens = head + head_size - at;
    return found;
  }

  // "throughput calcul/mémoire"
  Found SharedHeadBefore(size_t at, size_t head_size) const {
    if (!AllWords(at, head_size)) return {};
    Found found;
    for (const size_t word : List(at + head_size)) {
      const std::string* id = Pair(word, at, head_size, true);
      if (id == nullptr) break;
      found.ids.push_back(*id);
      found.tokens = word + 1 - at;
    }
    return found.ids.size() < 2 ? Found{} : found;
  }

  const std::vector<Token>& tokens_;
  const Dictionary& dictionary_;
};

// "throughput in tokens/sec", "débit (échantillons par seconde)".
bool SaysUnitOf(absl::string_view lower, const MetricMention& before, const MetricMention& now) {
  if (before.id != "throughput" || !absl::EndsWith(now.id, "_throughput")) return false;
  if (now.id != "token_throughput" && now.id != "sample_throughput") return false;
  const absl::string_view between =
      absl::StripAsciiWhitespace(lower.substr(before.end, now.begin - before.end));
  return between == "in" || between == "en" || between == "(" || between == "as";
}

}  // namespace

std::vector<MetricMention> FindMetrics(absl::string_view lower, const MetricCatalogue& catalogue) {
  const Dictionary dictionary(catalogue);
  const std::vector<Token> tokens = Tokenize(lower);
  const Matcher matcher(tokens, dictionary);
  std::vector<MetricMention> mentions;
  for (size_t at = 0; at < tokens.size();) {
    const Found found = matcher.At(at);
    if (found.tokens == 0) {
      ++at;
      continue;
    }
    for (const std::string& id : found.ids) {
      MetricMention mention{id, tokens[at].begin, tokens[at + found.tokens - 1].end, false};
      mention.is_unit = !mentions.empty() && SaysUnitOf(lower, mentions.back(), mention);
      mentions.push_back(mention);
    }
    at += found.tokens;
  }
  return mentions;
}

}  // namespace solward::workflow::internal
