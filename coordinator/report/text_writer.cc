#include "coordinator/report/text_writer.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/text.h"
#include "common/units.h"

namespace solward::report {
namespace {

constexpr size_t kLongestName = 160;
constexpr size_t kLongestQuotation = 400;
constexpr size_t kLongestKernelName = 56;
constexpr size_t kLongestFullName = 240;

absl::Status Internal(absl::string_view reason, absl::string_view message) {
  return MakeError(absl::StatusCode::kInternal, reason, message);
}

bool HasDigit(absl::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isdigit(c); });
}

std::string OneLine(absl::string_view text) {
  std::string clean = CleanUtf8(text);
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return std::string(absl::StripAsciiWhitespace(clean));
}

// Length of an unnamed namespace as a compiler or a tool writes it; 0: none.
size_t AnonymousLength(absl::string_view text) {
  for (absl::string_view name : {"(anonymous namespace)", "<unnamed>"}) {
    if (absl::StartsWith(text, name)) return name.size();
  }
  return 0;
}

// What a generic kernel was instantiated for: the last functor or kernel named
// in its template arguments ("MulFunctor", "sqrt_kernel_cuda"); empty: none.
std::string InnerFunction(absl::string_view arguments) {
  std::string last, word;
  for (size_t i = 0; i <= arguments.size(); ++i) {
    const char c = i < arguments.size() ? arguments[i] : ' ';
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    const std::string lower = absl::AsciiStrToLower(word);
    const bool function = absl::StrContains(lower, "functor") || absl::StrContains(lower, "kernel");
    // The wrappers that every elementwise kernel goes through say nothing.
    if (function && !absl::StartsWith(lower, "gpu_kernel")) last = word;
    word.clear();
  }
  return last;
}

// Longest run of backticks in `text`.
size_t LongestFence(absl::string_view text) {
  size_t longest = 0, run = 0;
  for (char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

}  // namespace

std::string CodeSpan(absl::string_view text) {
  const std::string line = OneLine(text);
  if (line.empty()) return "` `";
  const size_t fence = LongestFence(line);
  if (fence == 0) return absl::StrCat("`", line, "`");
  const std::string ticks(fence + 1, '`');
  return absl::StrCat(ticks, " ", line, " ", ticks);
}

std::string ShortKernelName(absl::string_view name) {
  absl::ConsumePrefix(&name, "void ");
  name = absl::StripAsciiWhitespace(name);
  std::string function;
  absl::string_view arguments;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (const size_t anonymous = AnonymousLength(name.substr(i)); anonymous > 0) {
      i += anonymous - 1;
    } else if (c == '(' && depth == 0) {
      break;
    } else if (c == '<') {
      if (depth++ == 0 && arguments.empty()) arguments = name.substr(i + 1);
    } else if (c == '>') {
      depth = std::max(0, depth - 1);
    } else if (depth == 0) {
      function += c;
    }
  }
  // Namespaces are the framework's; the function tells kernels apart.
  if (const size_t colon = function.rfind(':'); colon != std::string::npos) {
    function.erase(0, colon + 1);
  }
  if (function.empty()) return std::string(name);
  if (arguments.empty()) return function;
  const std::string inner = InnerFunction(arguments);
  return absl::StrCat(function, "<", inner.empty() ? "…" : inner, ">");
}

TextWriter::TextWriter(const google::protobuf::RepeatedPtrField<v1::Metric>& metrics,
                       const MetricCatalogue& catalogue, const Messages& messages,
                       Language language)
    : catalogue_(catalogue), messages_(messages), language_(language) {
  for (const v1::Metric& metric : metrics) by_key_.emplace(metric.key(), &metric);
}

absl::StatusOr<const v1::Metric*> TextWriter::Find(absl::string_view key) const {
  auto it = by_key_.find(key);
  if (it == by_key_.end()) {
    return Internal("REPORT_METRIC_MISSING", absl::StrCat("report: a part refers to metric \"", key,
                                                          "\", which all_metrics does not hold"));
  }
  return it->second;
}

absl::StatusOr<std::string> TextWriter::Value(absl::string_view key) {
  ASSIGN_OR_RETURN(const v1::Metric* metric, Find(key));
  return Value(*metric);
}

std::string TextWriter::Value(const v1::Metric& metric) {
  cited_.insert(metric.key());
  const MetricDefinition* definition = catalogue_.Find(metric.id());
  const bool si = definition != nullptr && definition->si;
  const int decimals = definition != nullptr ? definition->decimals : 1;
  return absl::StrCat(FormatQuantity(metric.value(), metric.unit(), si, decimals, language_), " [",
                      metric.key(), "]");
}

std::string TextWriter::MetricName(absl::string_view id) const {
  const MetricDefinition* definition = catalogue_.Find(id);
  if (definition == nullptr) return CodeSpan(id);
  const std::string& name =
      language_ == Language::kFrench ? definition->name_fr : definition->name_en;
  return HasDigit(name) ? CodeSpan(name) : name;
}

absl::StatusOr<std::string> TextWriter::Term(absl::string_view id) const {
  absl::string_view metric_id = id;
  if (absl::ConsumePrefix(&metric_id, "metric.") && catalogue_.Find(metric_id) != nullptr) {
    return MetricName(metric_id);
  }
  const Message* message = messages_.Find(id);
  if (message == nullptr) {
    return Internal("REPORT_TERM_UNKNOWN",
                    absl::StrCat("report: term \"", id, "\" is not in the message table"));
  }
  return message->In(language_);
}

std::string TextWriter::Label(absl::string_view id) const {
  const Message* message = messages_.Find(id);
  return message == nullptr ? CodeSpan(id) : message->In(language_);
}

absl::string_view TextWriter::Colon() const {
  return language_ == Language::kFrench ? " : " : ": ";
}

std::string TextWriter::BaseTerm(const v1::Metric& share) const {
  const v1::Metric* metric = &share;
  // A bound is a share of what its own share is a share of.
  for (int depth = 0; depth < 64 && metric->id() == "recoverable_share"; ++depth) {
    const auto& inputs = metric->provenance().derived().inputs();
    const auto input = inputs.empty() ? by_key_.end() : by_key_.find(inputs[0].metric_key());
    if (input == by_key_.end()) break;
    metric = input->second;
  }
  if (metric->id() == "limit_time_share" || metric->id() == "kernel_time_share") {
    return "base.kernels";
  }
  return metric->scope().kind() == v1::SCOPE_KIND_STEP ? "base.step" : "base.window";
}

std::string TextWriter::Quotation(absl::string_view text) const {
  const std::string code = CodeSpan(Truncate(OneLine(text), kLongestQuotation));
  return language_ == Language::kFrench ? absl::StrCat("« ", code, " »")
                                        : absl::StrCat("“", code, "”");
}

absl::StatusOr<std::string> TextWriter::Argument(const v1::StatementArgument& argument) {
  switch (argument.value_case()) {
    case v1::StatementArgument::kMetricKey:
      return Value(argument.metric_key());
    case v1::StatementArgument::kName:
      return CodeSpan(KernelName(argument.name()));
    case v1::StatementArgument::kTerm:
      return Term(argument.term());
    case v1::StatementArgument::kQuotation:
      return Quotation(argument.quotation());
    case v1::StatementArgument::VALUE_NOT_SET:
      break;
  }
  return Internal("REPORT_ARGUMENT_MISSING", "report: a statement has an argument without value");
}

absl::StatusOr<std::string> TextWriter::Sentence(const v1::Statement& statement) {
  const Message* message = messages_.Find(statement.message_id());
  if (message == nullptr) {
    return Internal("REPORT_MESSAGE_UNKNOWN",
                    absl::StrCat("report: message \"", statement.message_id(),
                                 "\" is not in the message table"));
  }
  std::string sentence;
  for (const TextPart& part : SplitText(message->In(language_))) {
    if (!part.is_placeholder) {
      sentence += part.text;
      continue;
    }
    auto it = statement.arguments().find(part.text);
    if (it == statement.arguments().end()) {
      return Internal("REPORT_ARGUMENT_MISSING",
                      absl::StrCat("report: message \"", statement.message_id(),
                                   "\" needs the argument {", part.text, "}"));
    }
    ASSIGN_OR_RETURN(const std::string text, Argument(it->second));
    sentence += text;
  }
  return sentence;
}

std::string TextWriter::KernelName(absl::string_view name) const {
  auto it = short_names_.find(name);
  return it == short_names_.end() ? Truncate(OneLine(name), kLongestName) : it->second;
}

void TextWriter::ShortenKernelNames(const std::set<std::string>& names) {
  for (const std::string& name : names) {
    const std::string line = OneLine(name);
    std::string shorter = line.size() <= kLongestKernelName
                              ? line
                              : Truncate(ShortKernelName(line), kLongestKernelName);
    if (shorter == line) {
      short_names_.emplace(name, line);
      continue;
    }
    const std::string stem = shorter;
    for (int n = 2; full_names_.count(shorter) != 0 || names.count(shorter) != 0; ++n) {
      shorter = absl::StrCat(stem, "~", n);
    }
    short_names_.emplace(name, shorter);
    full_names_.emplace(shorter, Truncate(line, kLongestFullName));
  }
}

}  // namespace solward::report
