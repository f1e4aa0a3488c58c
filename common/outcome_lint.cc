#include "common/outcome_lint.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/folded_text.h"
#include "common/outcome_lint_rules.h"
#include "common/status.h"
#include "common/text.h"

namespace solward {
namespace {

using internal::kDataFile;
using internal::kPath;
using internal::kProgramFile;
using internal::kWorkload;
using internal::LintRule;
using internal::Rules;

struct Span {
  size_t begin = 0, end = 0;
};

struct Found {
  OffenceKind kind;
  Span span;
};

re2::StringPiece Re(absl::string_view text) { return {text.data(), text.size()}; }

bool IsSpace(char c) { return c == ' ' || c == '\n'; }

bool IsQuoteOrBracket(char c) {
  return c == '"' || c == '\'' || c == '`' || c == '(' || c == ')' || c == '[' || c == ']' ||
         c == '{' || c == '}' || c == '<' || c == '>' || c == ',' || c == ';';
}

// --- tokens ------------------------------------------------------------------

// Words between blanks, quotes and brackets, without closing punctuation.
std::vector<Span> Tokens(absl::string_view text) {
  std::vector<Span> tokens;
  for (size_t at = 0; at < text.size();) {
    if (IsSpace(text[at]) || (IsQuoteOrBracket(text[at]) && text[at] != '{')) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && !IsSpace(text[end]) &&
           (!IsQuoteOrBracket(text[end]) || text[end] == '{' || text[end] == '}')) {
      ++end;
    }
    size_t last = end;
    while (last > at && absl::string_view(".:!?").find(text[last - 1]) != absl::string_view::npos) {
      --last;
    }
    if (last > at) tokens.push_back({at, last});
    at = end;
  }
  return tokens;
}

absl::string_view Piece(absl::string_view text, Span span) {
  return text.substr(span.begin, span.end - span.begin);
}

// What a token stands for, or 0.
char ClassOf(absl::string_view token) {
  static const RE2 program(
      R"((?:[\w./~-]*\w\.(?:py|sh|cu|cuh|cpp|cc|c|h|ipynb|slurm|sbatch|exe|jl|rs|js)|\./[\w./-]+))");
  static const RE2 data(
      R"([^\s=]*[\w*}]\.(?:ncu-rep|nsys-rep|qdrep|qdstrm|sqlite3?|db|csv|tsv|json|jsonl|xml|txt|log|html?|pdf|md|parquet|out|gz|zst|zip|tar|tgz|pb|npz?|rep|nvvp|prof|bin|pt|pth|onnx|safetensors|ya?ml))");
  static const RE2 path(
      R"((?:[a-z][a-z0-9+]*://\S+|~?/\w\S*|~/?|\.{1,2}/\S*|\$\{?\w+\}?(?:[/\\]\S*)?|%\w+%\S*|[a-z]:[\\/]\S*|\\\\\S+|/\S*\.\.\.\S*))");
  static const RE2 rate(R"(/(?:s|sec|second|step|call|token|sample|iter\w*|pas|appel|stop)(?:s)?)");
  if (RE2::FullMatch(Re(token), program)) return kProgramFile;
  if (absl::StartsWith(token, "-") || absl::StartsWith(token, "chrome://")) return 0;
  if (RE2::FullMatch(Re(token), rate)) return 0;
  if (RE2::FullMatch(Re(token), data)) return kDataFile;
  if (RE2::FullMatch(Re(token), path)) return kPath;
  return 0;
}

void Fill(std::string& text, Span span, char with) {
  std::fill(text.begin() + static_cast<std::ptrdiff_t>(span.begin),
            text.begin() + static_cast<std::ptrdiff_t>(span.end), with);
}

// --- the workload's own command lines ----------------------------------------

bool IsFlag(absl::string_view token) {
  return token.size() >= 2 && token[0] == '-' &&
         (absl::ascii_isalpha(token[1]) || (token[1] == '-' && token.size() > 2));
}

bool IsStopWord(absl::string_view token) {
  static const std::set<absl::string_view, std::less<>> words = {
      "and",   "with", "for",   "to",     "on",      "in",      "of",       "under",
      "using", "when", "while", "at",     "by",      "is",      "are",      "the",
      "a",     "or",   "from",  "then",   "report",  "et",      "avec",     "pour",
      "sur",   "dans", "de",    "en",     "est",     "puis",    "sous",     "ou",
      "le",    "la",   "les",   "que",    "qui",     "that",    "which",    "has",
      "takes", "runs", "as",    "donner", "mesurer", "profile", "profiler", "measure"};
  return words.count(token) > 0;
}

bool IsLauncher(absl::string_view token) {
  static const std::set<absl::string_view, std::less<>> words = {
      "python", "python3", "torchrun", "srun", "mpirun", "mpiexec",   "accelerate", "deepspeed",
      "bash",   "sh",      "node",     "java", "julia",  "sbatch",    "docker",     "uv",
      "poetry", "env",     "nvcc",     "ray",  "conda",  "horovodrun"};
  return words.count(token) > 0;
}

bool IsArgument(absl::string_view token) {
  if (IsFlag(token)) return true;
  const char c = token[0];
  if (c == kProgramFile || c == kDataFile || c == kPath) return true;
  return token.find('=') != absl::string_view::npos ||
         (std::isdigit(static_cast<unsigned char>(c)) != 0);
}

// Only blanks lie between two tokens of one command.
bool Adjacent(absl::string_view text, Span a, Span b) {
  for (size_t i = a.end; i < b.begin; ++i) {
    if (!IsSpace(text[i]) && text[i] != '\'' && text[i] != ',' && text[i] != '{') return false;
    if (text[i] == ',' && i + 1 < b.begin) return false;
    if (text[i] == '\n' && i > a.end && text[i - 1] == '\n') return false;
  }
  return true;
}

// Index after the last token of the command whose arguments begin at `next`.
size_t EndOfArguments(absl::string_view text, const std::vector<Span>& tokens, size_t next) {
  bool takes_value = false;
  while (next < tokens.size() && Adjacent(text, tokens[next - 1], tokens[next])) {
    const absl::string_view token = Piece(text, tokens[next]);
    const bool argument = IsArgument(token);
    if (!argument && (!takes_value || IsStopWord(token))) break;
    takes_value = IsFlag(token) && token.find('=') == absl::string_view::npos;
    ++next;
  }
  return next;
}

// Command lines without a profiling tool in them: "python train.py --batch 32",
// "train.py --fp16", "the workload is bench --iters 5".
std::vector<Span> WorkloadCommands(absl::string_view text, const std::vector<Span>& tokens) {
  std::vector<Span> commands;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const absl::string_view token = Piece(text, tokens[i]);
    if (RE2::FullMatch(Re(token), Rules().tool) || IsFlag(token)) continue;
    const bool program = token[0] == kProgramFile;
    const bool launcher = IsLauncher(token);
    size_t first_argument = i + 1;
    if (launcher) {
      // "accelerate launch", "docker run", "uv run".
      while (first_argument < tokens.size() && first_argument <= i + 2 &&
             (Piece(text, tokens[first_argument]) == "launch" ||
              Piece(text, tokens[first_argument]) == "run" ||
              IsLauncher(Piece(text, tokens[first_argument])))) {
        ++first_argument;
      }
    } else if (!program) {
      const size_t from = tokens[i].begin > 40 ? tokens[i].begin - 40 : 0;
      static const RE2 announced(
          R"((?:\b(?:workload|command(?: line)?|charge de travail|commande)\b\s*(?:is|est|:|=)?|\b(?:runs?|tourne|lance[er]?|execute[er]?)\s*:)\s*["'`]?\s*$)");
      if (!RE2::PartialMatch(Re(text.substr(from, tokens[i].begin - from)), announced)) continue;
    }
    const size_t end = EndOfArguments(text, tokens, first_argument);
    if (end == first_argument && (first_argument == i + 1)) continue;
    commands.push_back({tokens[i].begin, tokens[end - 1].end});
    i = end - 1;
  }
  return commands;
}

std::set<std::string> FlagNames(absl::string_view text, const std::vector<Span>& commands) {
  static const RE2 name(R"((?:^|\s)--?([a-z][\w-]*))");
  std::set<std::string> names;
  for (const Span& command : commands) {
    re2::StringPiece rest(text.data() + command.begin, command.end - command.begin);
    std::string flag;
    while (RE2::FindAndConsume(&rest, name, &flag)) names.insert(flag);
  }
  return names;
}

// --- segments ----------------------------------------------------------------

bool StartsListItem(absl::string_view rest) {
  static const RE2 item(R"(\s*(?:[-*]\s|\d{1,2}[.)]\s))");
  re2::StringPiece piece(rest.data(), rest.size());
  return RE2::Consume(&piece, item);
}

// The dot at `at` ends a sentence: not "e.g.", "p. ex.", "1.", "file.py".
bool EndsSentence(absl::string_view text, size_t begin, size_t at) {
  if (at + 1 < text.size() && !IsSpace(text[at + 1])) return false;
  if (text[at] != '.') return true;
  size_t word = at;
  while (word > begin && !IsSpace(text[word - 1]) && text[word - 1] != '(') --word;
  const absl::string_view before = text.substr(word, at - word);
  if (before == "e.g" || before == "i.e" || before == "p" || before == "ex" || before == "cf") {
    return false;
  }
  const bool number = !before.empty() && std::all_of(before.begin(), before.end(),
                                                     [](char c) { return absl::ascii_isdigit(c); });
  const bool at_start = absl::StripAsciiWhitespace(text.substr(begin, word - begin)).empty();
  return !(number && at_start);
}

// Sentences, parts between semicolons, and items of lists.
std::vector<Span> Segments(absl::string_view text) {
  std::vector<Span> segments;
  size_t begin = 0;
  const auto cut = [&](size_t end) {
    if (end > begin) segments.push_back({begin, end});
    begin = end;
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == ';' || ((c == '.' || c == '!' || c == '?') && EndsSentence(text, begin, at))) {
      cut(at + 1);
    } else if (c == '\n' && (StartsListItem(text.substr(at + 1, 8)) ||
                             (at + 1 < text.size() && text[at + 1] == '\n') ||
                             text.substr(at + 1, 3) == "```")) {
      cut(at + 1);
    }
  }
  cut(text.size());
  return segments;
}

// --- matching ----------------------------------------------------------------

bool Matches(const RE2* pattern, absl::string_view text) {
  return pattern != nullptr && RE2::PartialMatch(Re(text), *pattern);
}

bool Excused(const LintRule& rule, absl::string_view segment, size_t begin) {
  const size_t from = begin > 80 ? begin - 80 : 0;
  if (Matches(rule.unless_before.get(), segment.substr(from, begin - from))) return true;
  if (Matches(rule.unless.get(), segment)) return true;
  if (rule.kind != OffenceKind::kOutputPath && rule.kind != OffenceKind::kToolSteps) return false;
  // What the workload itself does is no instruction; a comma may begin one.
  const absl::string_view before = segment.substr(0, std::min<size_t>(begin, 160));
  return begin <= 160 && before.find(',') == absl::string_view::npos &&
         Matches(&Rules().workload_subject, before);
}

void Apply(const LintRule& rule, absl::string_view segment, size_t offset,
           std::vector<Found>& found) {
  const int groups = std::min(rule.pattern->NumberOfCapturingGroups(), 1) + 1;
  size_t at = 0;
  re2::StringPiece match[2];
  while (at < segment.size() &&
         rule.pattern->Match(Re(segment), at, segment.size(), RE2::UNANCHORED, match, groups)) {
    const re2::StringPiece words = groups == 2 && match[1].data() != nullptr ? match[1] : match[0];
    const size_t begin = static_cast<size_t>(words.data() - segment.data());
    if (!words.empty() && !Excused(rule, segment, begin)) {
      found.push_back({rule.kind, {offset + begin, offset + begin + words.size()}});
    }
    const size_t end = static_cast<size_t>(match[0].data() - segment.data()) + match[0].size();
    at = std::max(end, at + 1);
  }
}

bool Overlaps(Span a, Span b) { return a.begin < b.end && b.begin < a.end; }

struct NamedFlag {
  std::string name;
  Span span;
};

// Options of no tool in particular, as they stand in a sentence.
std::vector<NamedFlag> FlagsIn(absl::string_view segment) {
  const RE2& pattern = Rules().flag_name;
  std::vector<NamedFlag> flags;
  re2::StringPiece match[3];
  for (size_t at = 0; at < segment.size() &&
                      pattern.Match(Re(segment), at, segment.size(), RE2::UNANCHORED, match, 3);) {
    const size_t begin = static_cast<size_t>(match[1].data() - segment.data());
    at = begin + match[1].size();
    const std::string name(match[2].data(), match[2].size());
    const bool is_long = segment.substr(begin, 2) == "--";
    // "-fast" may be a word after a dash; one letter or two dashes is an option.
    if (!is_long && name.size() > 1) continue;
    // "x = -y" is arithmetic.
    const absl::string_view before = absl::StripTrailingAsciiWhitespace(segment.substr(0, begin));
    if (!is_long && !before.empty() &&
        absl::string_view("=+*/<>").find(before.back()) != absl::string_view::npos) {
      continue;
    }
    flags.push_back({name, {begin, at}});
  }
  return flags;
}

// The sentence speaks of the workload and of no tool: its options are the
// workload's.
bool SpeaksOfWorkload(absl::string_view segment) {
  return !Matches(&Rules().tool, segment) && Matches(&Rules().workload_context, segment);
}

// Offences of one kind that overlap become one; flags inside an example
// command are part of it.
std::vector<Found> Merge(std::vector<Found> found) {
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    if (a.kind != b.kind) return a.kind < b.kind;
    return a.span.begin < b.span.begin;
  });
  std::vector<Found> merged;
  for (const Found& f : found) {
    if (!merged.empty() && merged.back().kind == f.kind && f.span.begin < merged.back().span.end) {
      merged.back().span.end = std::max(merged.back().span.end, f.span.end);
    } else {
      merged.push_back(f);
    }
  }
  std::vector<Span> commands;
  for (const Found& f : merged) {
    if (f.kind == OffenceKind::kExampleCommand) commands.push_back(f.span);
  }
  std::vector<Found> kept;
  size_t next = 0;
  for (const Found& f : merged) {
    if (f.kind == OffenceKind::kToolFlags) {
      while (next < commands.size() && commands[next].end <= f.span.begin) ++next;
      if (next < commands.size() && Overlaps(commands[next], f.span)) continue;
    }
    kept.push_back(f);
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const Found& a, const Found& b) { return a.span.begin < b.span.begin; });
  return kept;
}

// "ncu" in "gemm.ncu-rep" is no tool: tokens that are files become fillers.
std::string MarkFiles(const std::string& lower, const std::vector<Span>& tokens) {
  std::string marked = lower;
  for (const Span& token : tokens) {
    if (const char mark = ClassOf(Piece(lower, token)); mark != 0) Fill(marked, token, mark);
  }
  return marked;
}

std::string WithoutLineBreaks(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// An en or em dash before a single letter is punctuation.
void DropTypographicDashes(const FoldedText& folded, std::string& text) {
  for (size_t i = 0; i + 2 < text.size(); ++i) {
    if (text[i] == '-' && !folded.IsAscii(i) && !absl::ascii_isalnum(text[i + 2])) text[i] = ' ';
  }
}

}  // namespace

absl::string_view OffenceKindName(OffenceKind kind) {
  switch (kind) {
    case OffenceKind::kToolFlags:
      return "tool_flags";
    case OffenceKind::kToolSteps:
      return "tool_steps";
    case OffenceKind::kFallback:
      return "fallback";
    case OffenceKind::kExampleCommand:
      return "example_command";
    case OffenceKind::kOutputPath:
      return "output_path";
  }
  return "";
}

absl::string_view OffenceAdvice(OffenceKind kind) {
  switch (kind) {
    case OffenceKind::kToolFlags:
      return "say which metrics are wanted (desired_metrics, or words like SOL%, occupancy, MFU) "
             "instead; the specialist chooses the options that give them";
    case OffenceKind::kToolSteps:
      return "say what should be known at the end instead; the specialist knows the steps of its "
             "tools";
    case OffenceKind::kFallback:
      return "say only what is wanted instead; the specialist decides what to do when a tool "
             "fails, and the report lists what could not be measured";
    case OffenceKind::kExampleCommand:
      return "give the workload's own command (workload.command) and the wanted metrics instead; "
             "a profiler's command line is the specialist's";
    case OffenceKind::kOutputPath:
      return "leave out where files go; artifacts stay in the specialist's workspace and come "
             "back as references that `solward artifact` fetches";
  }
  return "";
}

std::vector<Offence> LintOutcomeText(absl::string_view text) {
  const FoldedText folded(text);
  const std::vector<Span> tokens = Tokens(folded.lower());
  std::string marked = MarkFiles(folded.lower(), tokens);
  DropTypographicDashes(folded, marked);
  const std::vector<Span> segments = Segments(marked);
  std::string line = WithoutLineBreaks(marked);

  std::vector<Found> found;
  for (const Span& segment : segments) {
    for (const LintRule& rule : Rules().commands) {
      Apply(rule, Piece(line, segment), segment.begin, found);
    }
  }
  std::vector<Span> workload;
  for (const Span& command : WorkloadCommands(marked, tokens)) {
    const bool of_tool = std::any_of(found.begin(), found.end(),
                                     [&](const Found& f) { return Overlaps(f.span, command); });
    if (!of_tool) workload.push_back(command);
  }
  std::set<std::string> workload_flags = FlagNames(line, workload);
  for (const Span& command : workload) Fill(line, command, kWorkload);
  for (const Span& segment : segments) {
    if (!SpeaksOfWorkload(Piece(line, segment))) continue;
    for (NamedFlag& flag : FlagsIn(Piece(line, segment))) workload_flags.insert(flag.name);
  }

  for (const Span& segment : segments) {
    const absl::string_view piece = Piece(line, segment);
    for (const LintRule& rule : Rules().others) Apply(rule, piece, segment.begin, found);
    for (const NamedFlag& flag : FlagsIn(piece)) {
      if (workload_flags.count(flag.name) > 0) continue;
      found.push_back({OffenceKind::kToolFlags,
                       {segment.begin + flag.span.begin, segment.begin + flag.span.end}});
    }
  }
  std::vector<Offence> offences;
  for (const Found& f : Merge(std::move(found))) {
    Span span = f.span;
    while (span.begin < span.end && IsSpace(line[span.begin])) ++span.begin;
    while (span.end > span.begin && (IsSpace(line[span.end - 1]) || line[span.end - 1] == '.')) {
      --span.end;
    }
    offences.push_back(
        {f.kind, folded.Original(span.begin, span.end), folded.OriginalOffset(span.begin)});
  }
  return offences;
}

namespace {

// A status travels in gRPC's trailers, which hold about 8 KiB.
constexpr size_t kMaxViolationBytes = 4096;
constexpr size_t kMaxWords = 160;

}  // namespace

absl::Status LintFields(const std::vector<LintedField>& fields) {
  std::vector<FieldViolation> violations;
  size_t total = 0, bytes = 0;
  for (const LintedField& field : fields) {
    for (const Offence& offence : LintOutcomeText(field.text)) {
      ++total;
      if (bytes > kMaxViolationBytes) continue;
      violations.push_back({field.field, absl::StrCat(OffenceKindName(offence.kind), ": \"",
                                                      Truncate(CleanUtf8(offence.words), kMaxWords),
                                                      "\": ", OffenceAdvice(offence.kind))});
      bytes += field.field.size() + violations.back().description.size();
    }
  }
  if (violations.empty()) return absl::OkStatus();
  const std::string first = violations.front().description;
  const std::string field = violations.front().field;
  if (total > violations.size()) {
    violations.push_back({violations.back().field,
                          absl::StrCat("and ", total - violations.size(), " further offences")});
  }
  return MakeBadRequest("DELEGATION_NOT_OUTCOME_ONLY",
                        absl::StrCat(field, ": expected what is wanted, found how to do it (",
                                     total, total == 1 ? " place): " : " places): ", first,
                                     "; see docs/delegation-rules.md"),
                        violations);
}

}  // namespace solward
