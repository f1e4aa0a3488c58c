// Dimensions of a statement: "B=32", "M=N=K=8192", "(M, N) = (1, 2)", "1x2x3 GEMM".
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/problem_context.h"
#include "coordinator/workflow/statement_reader.h"

namespace solward::workflow::internal {
namespace {

constexpr double kMaxDimension = 9007199254740992.0;  // exact in a double

}  // namespace

void StatementReader::SetDimension(const std::string& name, Extent words, const Number& number) {
  const double value = number.whole_value;
  const double least = name == "padding" ? 0 : 1;
  const std::string text = text_.Original(words);
  if (number.is_version || value < least || value > kMaxDimension || std::floor(value) != value) {
    AddReading("number", words, absl::StrCat(name, ": no dimension"));
    text_.Take(words);
    content_.not_understood.push_back(
        {name, text, "a whole number of at least 1", "un entier d'au moins 1"});
    return;
  }
  AddReading("dimension", words, absl::StrCat(name, "=", static_cast<int64_t>(value)));
  text_.Take(words);
  const auto [known, added] = content_.dimensions.emplace(name, static_cast<int64_t>(value));
  if (added) {
    absl::StrAppend(&content_.dimensions_text, content_.dimensions_text.empty() ? "" : ", ", name,
                    "=", known->second);
  } else if (known->second != static_cast<int64_t>(value)) {
    content_.twice.push_back(
        {name, absl::StrCat(known->second), absl::StrCat(static_cast<int64_t>(value))});
  }
}

// "name=number": a dimension, a figure under its identifier, or only a number.
void StatementReader::SetNamed(const std::string& name, Extent words, const Number& number) {
  static const std::map<absl::string_view, std::string> aliases = {
      {"batch", "batch_size"},    {"bs", "batch_size"},          {"batchsize", "batch_size"},
      {"seq", "sequence_length"}, {"seqlen", "sequence_length"}, {"seq_len", "sequence_length"},
      {"ranks", "world_size"},    {"params", "parameters"}};
  std::string lower = absl::AsciiStrToLower(name);
  if (const auto alias = aliases.find(lower); alias != aliases.end()) lower = alias->second;
  if (lower == "batch_size") {
    SetFigure(lower, content_.batch_size, words, number.whole_value, 1);
  } else if (lower == "sequence_length") {
    SetFigure(lower, content_.sequence_length, words, number.whole_value, 1);
  } else if (lower == "world_size") {
    SetFigure(lower, content_.world_size, words, number.whole_value, 1);
  } else if (lower == "calls_per_step") {
    SetFigure(lower, content_.calls_per_step, words, number.whole_value, 1);
  } else if (lower == "parameters") {
    SetFigure(lower, content_.parameters, words, number.value, 1);
  } else {
    static const RE2 small_letter("[bmnkchwrsdpq]");
    const std::string dimension = DimensionName(name);
    const bool letter =
        name.size() > 1 || absl::ascii_isupper(name[0]) || RE2::FullMatch(name, small_letter);
    if (!dimension.empty() && letter) SetDimension(dimension, words, number);
  }
}

// "(B, M, N, K) = (32, 512, 1024, 2048)", "M, N, K = 4096", "MxNxK = 1x2x3".
void StatementReader::ReadDimensionLists() {
  static const RE2 list(
      R"(\b([a-z](?:_kv)?(?:(?:\s*,\s*|\s*\*\s*|x|\s+x\s+)[a-z](?:_kv)?)+)\s*\)?\s*(?:=|:|of|de)\s*[(\[]?\s*(#+(?:(?:\s*[,x*;]\s*)#+)*))");
  static const RE2 name(R"(([a-z](?:_kv)?)(?:\s*[,x*]\s*|\s*$))"), value(R"((#+))");
  ForEach(list, [&](const Groups& g) {
    std::vector<std::string> names;
    // Letters at even places: "mxnxk" has an x between two.
    std::string letters = text_.Plain(g[1]);
    static const RE2 separators(R"(\s*[,*]\s*|\s+[xX]\s+)");
    RE2::GlobalReplace(&letters, separators, ",");
    static const RE2 times(R"(([A-Za-z](?:_kv)?)[xX])");
    RE2::GlobalReplace(&letters, times, R"(\1,)");
    for (const absl::string_view letter : absl::StrSplit(letters, ',', absl::SkipEmpty())) {
      names.push_back(DimensionName(letter));
      if (names.back().empty()) return;
    }
    std::vector<const Number*> numbers;
    for (size_t at = g[2].begin; at < g[2].end; ++at) {
      if (const Number* number = text_.NumberAt(at)) numbers.push_back(number);
    }
    if (numbers.size() != names.size() && numbers.size() != 1) return;
    // "N, K = 512, 1024, M" would not be a list of as many; one number for all.
    for (size_t i = 0; i < names.size(); ++i) {
      SetDimension(names[i], {g[0].begin, g[2].end}, *numbers[numbers.size() == 1 ? 0 : i]);
    }
  });
}

// "4096x4096x1024 GEMM": M x N x K, with B before them when there are four.
void StatementReader::ReadShapes() {
  static const RE2 before(
      R"((#+(?:\s?x\s?#+){2,3})\s+(?:\w+ ){0,2}?(?:batched |strided )?(?:gemms?|bmm|mat-?muls?|matrix[ -]multipl\w+)\b)");
  static const RE2 after(
      R"(\b(?:gemms?|bmm|mat-?muls?)(?: en batch)?\s*(?:of size |of shape |of |de taille |de |\()?(#+(?:\s?x\s?#+){2,3}))");
  static const RE2 filter(R"((#+\s?x\s?#+)\s(?:conv\w*|filters?|filtres?)\b)");
  static const RE2 image(R"((#+\s?x\s?#+)\s(?:images?|pixels?|feature maps?)\b)");
  struct Row {
    const RE2* pattern;
    std::vector<std::string> names;  // of four numbers the first is B
  };
  for (const Row& row : {Row{&before, {"M", "N", "K"}}, Row{&after, {"M", "N", "K"}},
                         Row{&filter, {"R", "S"}}, Row{&image, {"H", "W"}}}) {
    ForEach(*row.pattern, [&](const Groups& g) {
      std::vector<const Number*> numbers;
      for (size_t at = g[1].begin; at < g[1].end; ++at) {
        if (const Number* number = text_.NumberAt(at)) numbers.push_back(number);
      }
      std::vector<std::string> names = row.names;
      if (numbers.size() == 4) names.insert(names.begin(), "B");
      for (size_t i = 0; i < names.size() && i < numbers.size(); ++i) {
        SetDimension(names[i], g[1], *numbers[i]);
      }
    });
  }
}

void StatementReader::ReadDimensions() {
  static const RE2 chain(R"(\b([a-z]\w*(?:\s*=\s*[a-z]\w*)*)\s*=\s*(#+))");
  static const RE2 colon(R"((?:^|[\s(,;])([a-z](?:_kv)?)\s?:\s?(#+))");
  static const RE2 is(R"(\b([a-z])\s(?:is|equals|vaut|est)\s(#+))");
  ForEach(chain, [&](const Groups& g) {
    const Number* number = text_.NumberAt(g[2].begin);
    if (number == nullptr) return;
    const Number copy = *number;
    for (const absl::string_view name : absl::StrSplit(text_.Plain(g[1]), '=')) {
      SetNamed(std::string(absl::StripAsciiWhitespace(name)), g[0], copy);
    }
  });
  for (const RE2* pattern : {&colon, &is}) {
    ForEach(*pattern, [&](const Groups& g) {
      const Number* number = text_.NumberAt(g[2].begin);
      const std::string letter = text_.Plain(g[1]);
      if (number == nullptr || !absl::ascii_isupper(letter[0])) return;
      SetDimension(DimensionName(letter), {g[1].begin, g[2].end}, *number);
    });
  }
}

// "M 512 N 1024 K 2048": two at least, so that a lone "B 15" is none.
void StatementReader::ReadBareDimensions() {
  static const RE2 bare(R"((?:^|[\s(,;])([bmnkhsdcw])\s(#+))");
  std::vector<Groups> found;
  ForEach(bare, [&](const Groups& g) {
    if (absl::ascii_isupper(text_.Plain(g[1])[0])) found.push_back(g);
  });
  if (found.size() < 2) return;
  for (const Groups& g : found) {
    if (const Number* number = text_.NumberAt(g[2].begin)) {
      SetDimension(DimensionName(text_.Plain(g[1])), {g[1].begin, g[2].end}, *number);
    }
  }
}

}  // namespace solward::workflow::internal
