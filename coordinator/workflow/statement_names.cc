// Files, the region and kernel names of a statement.
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/workflow/statement_reader.h"

namespace solward::workflow::internal {
namespace {

// What follows "kernel" or "NVTX range" without being its name.
bool IsCommonWord(absl::string_view word) {
  static const std::set<absl::string_view> words = {
      // English
      "too", "itself", "alone", "now", "here", "last", "most", "all", "a", "about", "after",
      "again", "also", "an", "and", "are", "around", "as", "at", "be", "been", "before", "between",
      "by", "called", "can", "code", "contains", "count", "counts", "covers", "delimits", "do",
      "does", "dominates", "duration", "durations", "during", "each", "efficiency", "every",
      "execution", "for", "from", "function", "functions", "fusion", "had", "has", "have", "how",
      "if", "in", "inside", "into", "is", "isolates", "it", "its", "latency", "launch", "launched",
      "launches", "launching", "level", "limit", "limits", "mark", "marked", "marker", "markers",
      "marks", "metric", "metrics", "must", "name", "named", "names", "near", "needs", "not", "of",
      "on", "only", "or", "over", "per", "performance", "performs", "profile", "range", "ranges",
      "rate", "reaches", "region", "regions", "report", "run", "running", "runs", "set", "sets",
      "share", "should", "side", "so", "spends", "start", "stop", "summary", "takes", "than",
      "that", "the", "their", "then", "there", "this", "throughput", "time", "timeline", "times",
      "to", "under", "use", "used", "uses", "using", "utilization", "was", "were", "what", "when",
      "where", "which", "while", "will", "with", "within", "without", "would", "writes", "you",
      "your", "calls", "compute", "waits", "names", "cost", "costs",
      // French
      "au", "aux", "autour", "avec", "avant", "apres", "atteint", "ce", "celui", "cet", "cette",
      "compte", "comptent", "contient", "dans", "de", "delimite", "demande", "depuis", "des",
      "dont", "du", "dure", "durent", "effectue", "en", "entoure", "entre", "est", "et", "fait",
      "font", "isole", "la", "le", "les", "leur", "long", "longs", "longue", "longues", "marque",
      "met", "moins", "ne", "ou", "par", "pendant", "peut", "plus", "pour", "prend", "prennent",
      "qui", "que", "remet", "reste", "sans", "se", "ses", "sont", "son", "sous", "sur", "un",
      "une", "utilise", "va", "vaut", "calcule", "ecrit", "lit", "lent", "lents", "dominant",
      "dominants", "lance", "lances", "principal", "principaux", "cible", "fusionne", "cuda", "gpu",
      "a", "tourne",
      // operations, which are no names of a function
      "gemm", "gemms", "bmm", "matmul", "attention", "convolution", "conv", "batched", "nvtx"};
  return words.count(word) > 0;
}

// Looks like a name in a program: flash_fwd, sm90_gemm, myKernel, ns::f, foo.*
bool IsIdentifier(absl::string_view plain) {
  bool letter = false, inner_capital = false, mark = false, digit = false;
  for (size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    letter = letter || absl::ascii_isalpha(c);
    digit = digit || absl::ascii_isdigit(c);
    mark = mark || c == '_' || c == ':' || c == '*';
    inner_capital =
        inner_capital || (i > 0 && absl::ascii_isupper(c) && absl::ascii_islower(plain[i - 1]));
  }
  return letter && (mark || inner_capital || (digit && plain.size() > 2));
}

std::string TrimName(std::string name) {
  name = std::string(absl::StripAsciiWhitespace(name));
  while (!name.empty() && (name.back() == '.' || name.back() == ',' || name.back() == ':')) {
    if (absl::EndsWith(name, "*.")) break;
    name.pop_back();
  }
  return name;
}

v1::Region NvtxRegion(const std::string& name) {
  v1::Region region;
  if (absl::StartsWith(absl::AsciiStrToLower(name), "profilerstep")) {
    region.set_profiler_step(true);
  } else {
    region.set_nvtx_range(name);
  }
  return region;
}

// The pattern of one very name; blanks and angle brackets stay readable.
std::string Literally(absl::string_view name) {
  std::string out;
  for (const char c : name) {
    if (absl::string_view(".()[]*+?{}|^$\\").find(c) != absl::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string RegionMeaning(const v1::Region& region) {
  switch (region.marker_case()) {
    case v1::Region::kCudaProfilerApi:
      return "cuda_profiler_api";
    case v1::Region::kNvtxRange:
      return absl::StrCat("nvtx:", region.nvtx_range());
    case v1::Region::kProfilerStep:
      return "profiler_step";
    default:
      return "";
  }
}

}  // namespace

void StatementReader::ReadFiles() {
  for (const Extent& extent : text_.files()) {
    const std::string name = text_.Original(extent);
    AddReading("file", extent, name);
    content_.files.push_back(name);
  }
}

void StatementReader::SetRegion(Extent words, const v1::Region& region) {
  AddReading("region", words, RegionMeaning(region));
  text_.Take(words);
  if (!content_.region) {
    content_.region = region;
  } else if (RegionMeaning(*content_.region) != RegionMeaning(region)) {
    content_.twice.push_back({"region", RegionMeaning(*content_.region), RegionMeaning(region)});
  }
}

void StatementReader::ReadRegion() {
  static const RE2 api(
      R"((?:\btorch\.cuda\.)?\bcu(?:da)?[ _.]?profiler[ _.]?(?:start|api|stop)(?:\(\))?(?:\s*(?:/|,|-|\.\.+|->|and|to|until|et|a|jusqu'a)\s*(?:cu(?:da)?[ _.]?profiler[ _.]?)?stop(?:\(\))?)?)");
  static const RE2 quoted(
      R"((?:\b(?:nvtx|record_function|user annotation)(?:[ -](?:ranges?|regions?|annotations?|markers?|push/pop|plages?))?|\b(?:plages?|regions?|annotations?|marqueurs?|intervalles?) (?:nvtx|utilisateur)|\b(?:range|plage))(?:\s*(?:is|est|:|=|named|called|nommee?|appelee?|of name|de nom|with the name|intitulee?|dite|,|\())*\s*["`]\s*([^"`]{1,200}?)\s*["`])");
  static const RE2 single_quoted(
      R"(\bnvtx(?:[ -](?:range|region|annotation|marker))?\s+(?:named |called )?'([^']{1,80})')");
  static const RE2 before(
      R"(["`]\s*([^"`]{1,80}?)\s*["`]\s+nvtx (?:range|region|annotation|marker)\b)");
  static const RE2 colon(R"(\bnvtx:([\w./#-]+))");
  static const RE2 bare(
      R"((?:\bnvtx[ -](?:range|region|annotation|marker)|\b(?:plage|region|annotation|marqueur|intervalle) nvtx)\s+(?:named |called |nommee? |appelee? |is |est )?([-\w./#:\x01]+))");
  static const RE2 profiler_step(
      R"(\bprofilerstep(?:\s?[#*]+)?s?|\bprofiler steps?\b|\b(?:steps?|pas|etapes?) (?:of|du|de|des) (?:the )?(?:torch[. ])?profil(?:er|eur)\b|\btorch\.profiler(?:'s)? steps?\b)");
  static const RE2 no_region(
      R"((?:\b(?:without|under|sans|sous|avec|with) (?:the |a |any |le |un )?)$)");
  static const RE2 duration(R"(^\s*(?:time|takes|lasts|duration|dure))");
  ForEach(api, [&](const Groups& g) {
    v1::Region region;
    region.set_cuda_profiler_api(true);
    SetRegion(g[0], region);
  });
  for (const RE2* pattern : {&quoted, &single_quoted, &before, &colon}) {
    ForEach(*pattern,
            [&](const Groups& g) { SetRegion(g[0], NvtxRegion(TrimName(text_.Plain(g[1])))); });
  }
  ForEach(bare, [&](const Groups& g) {
    const std::string name = TrimName(text_.Plain(g[1]));
    if (name.empty() || IsCommonWord(absl::AsciiStrToLower(name)) ||
        absl::StrContains(Words(g[1]), '\x01')) {
      return;
    }
    SetRegion({g[0].begin, g[1].begin + name.size()}, NvtxRegion(name));
  });
  ForEach(profiler_step, [&](const Groups& g) {
    if (RE2::PartialMatch(Before(g[0].begin, 24), no_region) ||
        RE2::PartialMatch(text_.work().substr(g[0].end, 16), duration)) {
      return;
    }
    v1::Region region;
    region.set_profiler_step(true);
    SetRegion(g[0], region);
  });
}

void StatementReader::ReadSkippedSteps() {
  static const RE2 skip(
      R"(\b(?:skip|skipping|ignore|ignoring|leave out|leaving out|drop|sauter|ignorer|en ignorant|sans)\s+(?:the |les )?(?:first )?(#+)\s+(?:first |premiere?s? )?(?:warm-?up )?(?:steps|iterations|pas|etapes)\b)");
  ForEach(skip, [&](const Groups& g) {
    const Number* number = text_.NumberAt(g[1].begin);
    if (number == nullptr || number->value < 0 || number->value > 1e9) return;
    if (!content_.region) content_.region.emplace();
    content_.region->set_skip_steps(static_cast<uint32_t>(number->value));
    AddReading("skip_steps", g[0], absl::StrCat("first steps left out: ", number->value));
    text_.Take(g[0]);
  });
}

void StatementReader::AddKernel(Extent words, Extent name, bool pattern, bool prefix) {
  std::string text = TrimName(text_.Plain(name));
  if (text.empty()) return;
  const bool is_pattern =
      pattern || absl::StrContains(text, ".*") || text.find_first_of("^$|[\\") != std::string::npos;
  if (!is_pattern || !RE2(text, RE2::Quiet).ok()) text = Literally(text);
  if (prefix) text = absl::StrCat("^", text);
  AddReading("kernel", words, text);
  text_.Take(words);
  for (const std::string& known : kernels_) {
    if (known == text) return;
  }
  kernels_.push_back(text);
}

// ", name" and "and name" after a kernel's name.
void StatementReader::ReadKernelList(size_t after) {
  static const RE2 next(
      R"(^(?:\s*,\s*(?:and |et )?|\s+(?:and|et|or|ou)\s+)["`]?([\w.:*]*\w\*?)["`]?)");
  while (true) {
    const std::string rest = text_.work().substr(after, 200);
    re2::StringPiece match[2];
    if (!next.Match(rest, 0, rest.size(), RE2::UNANCHORED, match, 2)) return;
    const size_t begin = after + static_cast<size_t>(match[1].data() - rest.data());
    const Extent name{begin, begin + match[1].size()};
    if (!IsIdentifier(TrimName(text_.Plain(name)))) return;
    AddKernel(name, name, false, false);
    after = after + match[0].size();
  }
}

void StatementReader::ReadKernels() {
  static const RE2 by_name(
      R"(\b(?:kernels?|noyaux?)\s+(?:function )?(?:matching|matches|named|called|filter|pattern|regex|nommes?|appeles?|correspondant a|qui correspondent a|dont le nom (?:contient|est|correspond a)|(?:whose|with) (?:the )?names? (?:contains?|is|are|match(?:es|ing)?|containing))\s*(?:the |le )?(?:pattern |regex |motif |name |nom )?[:=]?\s*(?:["`]([^"`]{1,200})["`]|([^\s"`,;?!]+)))");
  static const RE2 by_prefix(
      R"(\b(?:kernels?|noyaux?)\s+(?:(?:whose |with )?(?:the )?names? (?:starts?|begins?|starting|beginning) with|dont le nom commence par)\s*(?:["`]([^"`]{1,200})["`]|([^\s"`,;?!]+)))");
  static const RE2 quoted(R"(\b(?:kernels?|noyaux?)\s*:?\s+["`]\s*([^"`]{1,200}?)\s*["`])");
  static const RE2 quoted_before(R"(["`]\s*([^"`\s]{1,200})\s*["`]\s+kernels?\b)");
  static const RE2 word_after(R"(\b(kernels?|noyaux?)\s*:?\s+([a-z_][\w.:*]*\*?))");
  static const RE2 word_before(R"((?:^|[\s(,])([a-z_][\w:]*)\s+kernels?\b)");
  for (const auto& [pattern, prefix] : {std::pair(&by_name, false), {&by_prefix, true}}) {
    ForEach(*pattern, [&, prefix = prefix](const Groups& g) {
      AddKernel(g[0], g[1].end > 0 ? g[1] : g[2], true, prefix);
    });
  }
  ForEach(quoted, [&](const Groups& g) {
    AddKernel(g[0], g[1], false, false);
    ReadKernelList(g[0].end);
  });
  ForEach(quoted_before, [&](const Groups& g) { AddKernel(g[0], g[1], false, false); });
  // "kernel flash_fwd", "noyau axpy": a plain word is a name where a name can
  // end, not before an object ("le noyau calcule la trace").
  static const RE2 ends(
      R"(^\s*(?:$|[.,;:?!"\)]|(?:in|on|of|from|for|with|at|is|and|or|has|takes|runs|en|de|du|dans|pour|sur|avec|est|et|ou|a|dure|prend)\b|[a-z]+s\s))");
  ForEach(word_after, [&](const Groups& g) {
    const std::string name = TrimName(text_.Plain(g[2]));
    const std::string lower = absl::AsciiStrToLower(name);
    if (name.empty() || IsCommonWord(lower)) return;
    const Extent extent{g[2].begin, g[2].begin + name.size()};
    const bool one = Words(g[1]) == "kernel" || Words(g[1]) == "noyau";
    const bool plain_name = one && RE2::PartialMatch(text_.work().substr(extent.end, 16), ends) &&
                            !absl::EndsWith(lower, "ed") && !absl::EndsWith(lower, "ing");
    if (!IsIdentifier(name) && !plain_name) return;
    AddKernel({g[0].begin, extent.end}, extent, false, false);
    ReadKernelList(extent.end);
  });
  ForEach(word_before, [&](const Groups& g) {
    if (IsIdentifier(text_.Plain(g[1])) &&
        !RE2::FullMatch(std::string(Words(g[1])), R"((?:fp|bf|tf|int|float)\d+|[a-z]\d+)")) {
      AddKernel(g[1], g[1], false, false);
    }
  });
}

}  // namespace solward::workflow::internal
