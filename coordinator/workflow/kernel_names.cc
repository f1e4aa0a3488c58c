#include "coordinator/workflow/kernel_names.h"

#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace solward::workflow {
namespace {

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "(unsigned long)2" and "2ul" are both "2".
bool IsCastType(absl::string_view text) {
  for (absl::string_view type : {"int", "long", "bool", "char", "short", "long long"}) {
    if (text == type) return true;
  }
  return false;
}

// The length of "(type)" at `at` when a template argument is cast there; else 0.
size_t CastLength(absl::string_view text, size_t at) {
  const size_t close = text.find(')', at);
  if (text[at] != '(' || close == absl::string_view::npos || close + 1 >= text.size()) return 0;
  absl::string_view type = text.substr(at + 1, close - at - 1);
  absl::ConsumePrefix(&type, "unsigned ");
  absl::ConsumePrefix(&type, "signed ");
  const char next = text[close + 1];
  return IsCastType(type) && (IsWord(next) || next == '-') ? close + 1 - at : 0;
}

// The length of the suffix ("ul", "u", "ll") of a literal ending before `at`.
size_t SuffixLength(absl::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() &&
         (text[end] == 'u' || text[end] == 'l' || text[end] == 'U' || text[end] == 'L')) {
    ++end;
  }
  return end < text.size() && IsWord(text[end]) ? 0 : end - at;
}

// "lambda() (instance 2)" is "lambda()#2".
std::string UnifyInstances(absl::string_view text) {
  constexpr absl::string_view kInstance = " (instance ";
  std::string out;
  size_t from = 0;
  for (size_t at = text.find(kInstance); at != absl::string_view::npos;
       at = text.find(kInstance, from)) {
    const size_t close = text.find(')', at);
    if (close == absl::string_view::npos) break;
    absl::StrAppend(&out, text.substr(from, at - from), "#",
                    text.substr(at + kInstance.size(), close - at - kInstance.size()));
    from = close + 1;
  }
  absl::StrAppend(&out, text.substr(from));
  return out;
}

// Casts, literal suffixes, spaces and the brackets of lambdas go.
std::string DropSpelling(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (const size_t cast = text[i] == '(' ? CastLength(text, i) : 0; cast > 0) {
      i += cast;
      continue;
    }
    const char c = text[i];
    if (IsDigit(c) && (i == 0 || !IsWord(text[i - 1]))) {
      while (i < text.size() && IsDigit(text[i])) out += text[i++];
      i += SuffixLength(text, i);
      continue;
    }
    if (c != ' ' && c != '[' && c != ']' && c != '{' && c != '}') out += c;
    ++i;
  }
  return out;
}

// Tools cut different depths of a namespace: all of it goes.
std::string DropQualifiers(absl::string_view text) {
  std::string out;
  size_t word = 0;  // where the current identifier began in `out`
  for (size_t i = 0; i < text.size();) {
    if (absl::StartsWith(text.substr(i), "::")) {
      const bool named = word < out.size() && !IsDigit(out[word]);
      if (named) out.resize(word);
      i += 2;
      word = out.size();
      continue;
    }
    out += text[i];
    if (!IsWord(text[i])) word = out.size();
    ++i;
  }
  return out;
}

// Up to the parameter list: the first parenthesis outside template arguments.
absl::string_view DropParameters(absl::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>' && (i == 0 || text[i - 1] != '-')) --depth;
    if (text[i] == '(' && depth <= 0 && i > 0) return text.substr(0, i);
  }
  return text;
}

}  // namespace

std::string NormalKernelName(absl::string_view name) {
  absl::ConsumePrefix(&name, "void ");
  // A tool that cuts namespaces may leave half of "<unnamed>::".
  const std::string text =
      absl::StrReplaceAll(UnifyInstances(name), {{"(anonymous namespace)::", ""},
                                                 {"<unnamed>::", ""},
                                                 {"unnamed>::", ""},
                                                 {"operator ()", "operator()"}});
  const std::string plain = DropQualifiers(DropSpelling(text));
  return std::string(DropParameters(plain));
}

std::string NormalScopeName(absl::string_view name) {
  const size_t bar = name.rfind('|');
  if (bar == absl::string_view::npos) return NormalKernelName(name);
  return absl::StrCat(NormalKernelName(name.substr(0, bar)), name.substr(bar));
}

bool NamesPart(absl::string_view name) { return name.rfind('|') != absl::string_view::npos; }

std::string BaseKernelName(absl::string_view name) {
  const std::string normal = NormalKernelName(name);
  return normal.substr(0, normal.find('<'));
}

}  // namespace solward::workflow
