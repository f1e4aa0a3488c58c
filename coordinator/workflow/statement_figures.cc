// Numbers of a statement: FLOPs, times, named figures, and the rest.
#include <cmath>
#include <map>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/problem_context.h"
#include "coordinator/workflow/statement_reader.h"

namespace solward::workflow::internal {
namespace {

double PrefixScale(absl::string_view prefix) {
  if (prefix.empty()) return 1;
  switch (prefix[0]) {
    case 'k':
      return 1e3;
    case 'm':
      return 1e6;
    case 'g':
      return 1e9;
    case 't':
      return 1e12;
    case 'p':
      return 1e15;
    case 'e':
      return 1e18;
    default:
      return 1;
  }
}

// "billion", "milliards de", "B", "k" after a number.
double WordScale(absl::string_view word) {
  if (absl::StartsWith(word, "trillion")) return 1e12;
  if (absl::StartsWith(word, "billion") || absl::StartsWith(word, "milliard")) return 1e9;
  if (absl::StartsWith(word, "million")) return 1e6;
  if (absl::StartsWith(word, "thousand") || absl::StartsWith(word, "millier")) return 1e3;
  if (word == "b") return 1e9;
  return PrefixScale(word);
}

double SecondsOf(absl::string_view unit) {
  if (unit == "ns" || absl::StartsWith(unit, "nano")) return 1e-9;
  if (unit == "us" || absl::StartsWith(unit, "micro")) return 1e-6;
  if (unit == "ms" || absl::StartsWith(unit, "milli")) return 1e-3;
  if (absl::StartsWith(unit, "min")) return 60;
  return 1;
}

// "step" words of both languages, as against one call.
bool IsStepWord(absl::string_view word) {
  return absl::StartsWith(word, "step") || absl::StartsWith(word, "iter") || word == "pas" ||
         absl::StartsWith(word, "etape") || word == "batch" || word == "lot";
}

bool IsCallWord(absl::string_view word) {
  return absl::StartsWith(word, "call") || absl::StartsWith(word, "launch") ||
         absl::StartsWith(word, "invocation") || absl::StartsWith(word, "appel") ||
         absl::StartsWith(word, "lancement") || absl::StartsWith(word, "kernel") ||
         absl::StartsWith(word, "noyau") || absl::StartsWith(word, "gemm") ||
         absl::StartsWith(word, "exec");
}

std::string FlopMeaning(double flops, bool per_step) {
  return absl::StrCat(flops, per_step ? " FLOP per step" : " FLOP per call");
}

// How far the nearest match of a pattern is from a place; beyond a "but", an
// "and" or a comma it is farther than anything before it.
size_t NearestDistance(const std::string& clause, const RE2& pattern, size_t at) {
  size_t nearest = std::string::npos;
  re2::StringPiece match;
  for (size_t from = 0; from < clause.size() &&
                        pattern.Match(clause, from, clause.size(), RE2::UNANCHORED, &match, 1);) {
    const size_t begin = static_cast<size_t>(match.data() - clause.data());
    const size_t end = begin + match.size();
    static const RE2 border(R"(,|\b(?:but|and|while|whereas|versus|vs|mais|et|contre)\b)");
    const std::string between = begin > at
                                    ? clause.substr(at, begin - at)
                                    : clause.substr(std::min(end, at), at - std::min(end, at));
    const size_t distance = between.size() + (RE2::PartialMatch(between, border) ? 10000 : 0);
    nearest = std::min(nearest, distance);
    from = std::max(begin + match.size(), from + 1);
  }
  return nearest;
}

}  // namespace

// --- FLOPs -------------------------------------------------------------------

void StatementReader::SetFlops(Extent words, bool per_step, double value) {
  std::optional<StatedFigure>& figure =
      per_step ? content_.flops_per_step : content_.flops_per_call;
  const char* name = per_step ? "flops_per_step" : "flops_per_call";
  AddReading(name, words, FlopMeaning(value, per_step));
  const std::string text = text_.Original(words);
  text_.Take(words);
  if (!std::isfinite(value) || value <= 0) {
    content_.not_understood.push_back(
        {name, text, "a positive FLOP count", "un nombre de FLOP positif"});
  } else if (!figure) {
    figure = StatedFigure{value, text};
  } else if (figure->value != value) {
    content_.twice.push_back(
        {name, absl::StrCat(figure->value * 1e-9, " GFLOP"), absl::StrCat(value * 1e-9, " GFLOP")});
  }
}

// "flops_per_call = 6.9e10", "FLOPs par pas : 2,5 TFLOP".
void StatementReader::ReadLabelledFlops() {
  static const RE2 label(
      R"(\b(?:[kmgtpe]?flops?)[_ ](?:per|par)[_ ](\w+)\s*(?:=|:|is|are|est|de|of)\s*(#+)\s?(?:([kmgtpe]?)flops?\b)?)");
  ForEach(label, [&](const Groups& g) {
    const bool step = IsStepWord(Words(g[1]));
    const Number* number = text_.NumberAt(g[2].begin);
    if (number == nullptr || (!step && !IsCallWord(Words(g[1])))) return;
    SetFlops(g[0], step, number->value * PrefixScale(Words(g[3])));
  });
}

void StatementReader::ReadFlops() {
  static const RE2 flops(
      R"((#+)\s?(?:(billions?|millions?|trillions?|milliards?)\s(?:(?:de|of|d)\s?'?\s?)?)?([kmgtpe]?)(?:flops?|floating[- ]point operations?|operations? (?:a virgule )?flottantes?)\b(\s?/\s?s(?:ec\w*)?\b|\s?(?:per|par|a la) second\w*|\s?\*?\s?s\^?#+)?(?:\s?/\s?(?:the )?(\w+)|\s(?:per|par|for each|for one|for every|for a|each|every|a chaque|pour chaque|pour un|in each|in one|a|dans chaque)\s(?:single |forward |optimizer |training )?(\w+))?)");
  static const RE2 scope_before(
      R"(\b(?:each|every|one|per|a|the|chaque|un|une|par|le|this|ce)\s(?:training |optimizer |single |forward )?(calls?|launch\w*|kernels?|steps?|iterations?|appels?|pas|lancements?|noyaux?|etapes?)\b[^,;:]{0,40}$)");
  ForEach(flops, [&](const Groups& g) {
    const Number* number = text_.NumberAt(g[1].begin);
    if (number == nullptr) return;
    const std::string plain = text_.Plain({g[0].begin, g[0].end});
    const bool scoped = g[5].end > 0 || g[6].end > 0;
    const std::string scope(Words(g[5].end > 0 ? g[5] : g[6]));
    // "TFLOPS" alone is how a rate is written.
    if (g[4].end > 0 || (!scoped && absl::StrContains(plain, "FLOPS"))) {
      const Extent words{g[0].begin, g[4].end > 0 ? g[4].end : g[0].end};
      AddReading("rate", words, "a rate, no FLOP count");
      text_.Take(words);
      return;
    }
    const double value =
        number->value * (g[2].end > 0 ? WordScale(Words(g[2])) : 1) * PrefixScale(Words(g[3]));
    if (scoped && (IsStepWord(scope) || IsCallWord(scope))) {
      SetFlops(g[0], IsStepWord(scope), value);
      return;
    }
    Extent words{g[0].begin, g[0].end};
    if (scoped) {
      static const RE2 another(
          R"((?:tokens?|jetons?|samples?|images?|echantillons?|layers?|couches?|heads?|tetes?|gpus?|ranks?|rangs?|params?\w*))");
      if (RE2::FullMatch(scope, another)) {
        AddReading("number", words,
                   absl::StrCat("FLOP per ", scope, ", neither per call nor per step"));
        text_.Take(words);
        return;
      }
      words.end = (g[5].end > 0 ? g[5] : g[6]).begin;
      while (words.end > words.begin &&
             Words({words.begin, words.end}).find("flop") != absl::string_view::npos &&
             !absl::EndsWith(Words(words), "flop") && !absl::EndsWith(Words(words), "flops")) {
        --words.end;
      }
    }
    static const RE2 each(R"(^\s(?:each\b|chacune?\b|apiece\b))");
    static const RE2 scope_after(
        R"(^[^,;.\x01#]{0,40}?\b(?:in|per|for|par|dans|a|pour|at)\s(?:each |every |a |one |the |chaque |un |une )?(calls?|launch\w*|steps?|iterations?|appels?|pas|lancements?|etapes?)\b)");
    std::string scope_word;
    const std::string rest = text_.work().substr(words.end, 80);
    if (!RE2::PartialMatch(rest, each) && RE2::PartialMatch(rest, scope_after, &scope_word)) {
      SetFlops(words, IsStepWord(scope_word), value);
      return;
    }
    if (RE2::PartialMatch(rest, each)) {
      SetFlops(words, false, value);
      return;
    }
    std::string before_scope;
    if (RE2::PartialMatch(Before(words.begin, 70), scope_before, &before_scope)) {
      SetFlops(words, IsStepWord(before_scope), value);
      return;
    }
    static const RE2 whole(
        R"(\b(?:model|modele|training|entrainement|network|reseau)\b[^,;:]{0,50}$)");
    SetFlops(words, RE2::PartialMatch(Before(words.begin, 70), whole), value);
  });
}

// "peak of 3.35 TB/s", "crête 1979": what the client compares with.
void StatementReader::ReadPeaks() {
  static const RE2 peak(
      R"(\b(?:peak|crete)(?:\s(?:of|is|de|est|a|at|rate|throughput|bandwidth))*\s*[:=]?\s*(#+)(?:\s?[kmgtp]?(?:b|o|ib|flops?|bytes?|octets?)/s)?)");
  ForEach(peak, [&](const Groups& g) {
    AddReading("peak", {g[1].begin, g[0].end},
               "a peak named by the client; the peak table of the device is used");
    text_.Take({g[1].begin, g[0].end});
  });
}

// --- times -------------------------------------------------------------------

void StatementReader::ReadTimes() {
  static const RE2 time(
      R"((#+)\s?(ns|us|ms|s|secs?|seconds?|secondes?|min|minutes?|milliseconds?|millisecondes?|microseconds?|microsecondes?|nanoseconds?|nanosecondes?)\b)");
  static const RE2 of_step_before(R"(\b(?:steps?|iterations?|pas)\b[^;#\x01]{0,60}$)");
  static const RE2 of_step_after(
      R"(^\s?(?:per|a|par|/|each|for (?:a|each|one))\s?(?:training )?(?:steps?|iterations?|pas)\b)");
  static const RE2 label(R"(\bstep[_ ]time\s*(?:=|:)\s*$)"), equals(R"(^\s*=)");
  static const RE2 label_words(
      R"((?:\b(?:unprofiled )?step[_ ]time\s*(?:is|of|=|:)?|\bduree d'un pas\s*(?:est|de|:|=)*|\btemps par pas\s*(?:est|de|:|=)*)\s*$)");
  static const RE2 unprofiled(
      R"(\b(?:without (?:the |a |any )?(?:profil\w+|tool)|unprofiled|no profiler|not profiled|outside (?:of )?(?:the |a )?profil\w+|plain run|without (?:it|one|them)\b|sans (?:le |aucun |un )?(?:profil\w+|outil)|sans lui|hors profil\w+|non profil\w+|without tracing)\b)");
  std::string tools;
  for (const std::string& tool : catalogue_.tool_precedence()) {
    if (!absl::StartsWith(tool, "solward")) absl::StrAppend(&tools, "|", RE2::QuoteMeta(tool));
  }
  const RE2 profiled(absl::StrCat(
      R"(\b(?:(?:under|with|in|by|sous|avec|par|dans) (?:the |a |le |un )?(?:profil\w+)", tools,
      R"()|profiled)\b)"));
  const RE2 without_tool(absl::StrCat(R"(\b(?:without|sans) (?:profil\w+)", tools, R"()\b)"));
  ForEach(time, [&](const Groups& g) {
    const Number* number = text_.NumberAt(g[1].begin);
    if (number == nullptr) return;
    // "R=3 S=3": a letter, not seconds.
    if (text_.Plain(g[2]) == "S" || RE2::PartialMatch(text_.work().substr(g[2].end, 4), equals)) {
      return;
    }
    const double seconds = number->value * SecondsOf(Words(g[2]));
    const Extent clause = text_.ClauseAround(g[1].begin);
    const std::string words = text_.work().substr(clause.begin, clause.end - clause.begin);
    const std::string before = Before(g[0].begin, 80);
    const size_t at = g[1].begin - clause.begin;
    const size_t without =
        std::min(NearestDistance(words, unprofiled, at), NearestDistance(words, without_tool, at));
    const size_t with = NearestDistance(words, profiled, at);
    const bool of_step = RE2::PartialMatch(before, of_step_before) ||
                         RE2::PartialMatch(text_.work().substr(g[0].end, 40), of_step_after);
    const bool labelled = RE2::PartialMatch(before, label);
    re2::StringPiece name;
    Extent taken = g[0];
    if (label_words.Match(before, 0, before.size(), RE2::UNANCHORED, &name, 1)) {
      taken.begin = g[0].begin - name.size();
    }
    if ((of_step || labelled) && with != std::string::npos && with < without) {
      AddReading("profiled_step_time", taken, "a step time under a profiler, no plain step time");
    } else if (labelled || (of_step && without != std::string::npos)) {
      SetFigure("step_time", content_.step_time, taken, seconds, 0);
      return;
    } else {
      AddReading("time", taken,
                 of_step ? "a step time not said to be without profiler" : "a duration");
    }
    text_.Take(taken);
  });
}

// --- named figures -----------------------------------------------------------

void StatementReader::SetFigure(const std::string& name, std::optional<StatedFigure>& figure,
                                Extent words, double value, double smallest) {
  AddReading(name, words, absl::StrCat(value));
  const std::string text = text_.Original(words);
  text_.Take(words);
  const bool whole = name == "step_time" || std::floor(value) == value;
  if (!std::isfinite(value) || value < smallest || value <= 0 || !whole) {
    content_.not_understood.push_back(
        {name, text, name == "step_time" ? "a time above zero" : "a whole number of at least 1",
         name == "step_time" ? "une durée positive" : "un entier d'au moins 1"});
  } else if (!figure) {
    figure = StatedFigure{value, text};
  } else if (figure->value != value) {
    const bool time = name == "step_time";
    content_.twice.push_back({name,
                              absl::StrCat(figure->value * (time ? 1e3 : 1), time ? " ms" : ""),
                              absl::StrCat(value * (time ? 1e3 : 1), time ? " ms" : "")});
  }
}

void StatementReader::ReadNamedFigures() {
  struct Row {
    const char* name;
    const char* pattern;  // group 1 the number, group 2 its multiple
  };
  // Between a name and its number.
#define SOLWARD_IS R"((?:\s+(?:is|of|de|est|a|vaut|equals?|at))*\s*[=:]?\s*)"
  static const Row rows[] = {
      {"batch_size",
       R"(\b(?:mini-?|micro-?|global )?batch(?:[ _-]?sizes?)?)" SOLWARD_IS R"((#+)())"},
      {"batch_size",
       R"(\b(?:tailles? (?:de |du |des )?(?:lots?|batch)|lots?))" SOLWARD_IS R"((#+)())"},
      {"batch_size", R"(\bbs\s*[=:]\s*(#+)())"},
      {"batch_size",
       R"((#+)()\s(?:samples?|images?|sequences?|echantillons?|exemples?)\s(?:per|a|par|in each|each)\s(?:step|batch|iteration|pas|lot)\b)"},
      {"sequence_length",
       R"(\b(?:seq(?:uence)?[ _-]?len(?:gth)?s?|seqlen|context[ _-]?(?:length|len|size|window)|longueurs? (?:de |du |d'une )?(?:la )?(?:sequence|contexte)s?|taille de contexte))" SOLWARD_IS
       R"((#+)\s?(k\b|))"},
      {"sequence_length", R"(\bcontextes? (?:de|of) (#+)\s?(k\b|))"},
      {"sequence_length", R"(\bseq(?:uence)?\s*[=:]\s*(#+)(k\b|))"},
      {"sequence_length", R"(\bsequences? (?:of|de|d'|of length|de longueur)\s?(#+)\s?(k\b|))"},
      {"sequence_length",
       R"((#+)\s?(k?)\s?(?:tokens?|jetons?) (?:per|par|each|a|in each) (?:sample|sequence|echantillon)\b)"},
      {"sequence_length", R"((#+)(k?)[- ](?:tokens? (?:sequences?|contexts?|prompts?)|context)\b)"},
      {"world_size",
       R"(\b(?:world[ _-]?size|(?:number of|nombre de) (?:ranks?|gpus?|rangs?|processus|processes)))" SOLWARD_IS
       R"((#+)())"},
      {"calls_per_step", R"(\bcalls[_ ]per[_ ]step)" SOLWARD_IS R"((#+)())"},
      {"calls_per_step",
       R"((#+)()\s(?:calls?|appels?|invocations?)\s(?:per|par|a|in each|in a)\s(?:step|iteration|pas)\b)"},
      {"calls_per_step",
       R"(\b(?:called|launched|invoked|appelee?s?|lancee?s?)\s(#+)()\s(?:times|fois)\s(?:per|par|a|in each|in a)\s(?:step|iteration|pas)\b)"},
      {"parameters",
       R"((#+)\s?(b|m|k|t|g|billions?|millions?|trillions?|milliards?|)(?:\s(?:de|of|d'))?[- ]?(?:trainable |total |model |entrainables? )?(?:parameters?|params?|parametres?)\b)"},
      {"parameters", R"(\b(?:num[_ ])?param(?:eter|etre|)s?(?: count)?)" SOLWARD_IS
                     R"((#+)\s?((?:b|m|k|t|g|billions?|millions?|milliards?)\b|))"},
      {"parameters",
       R"((#+)(b|m)[- ](?:\w+ )?(?:models?|llms?|transformers?|decoders?|llama|gpt)\b)"},
      {"parameters",
       R"(\b(?:model|modele|llm|llama|gpt|transformer)s?[- ](?:of |de )?(#+)(b|m)\b)"},
      {"tokens",
       R"((#+)\s?(k|m|millions?(?: de)?|)\s?(?:tokens?|jetons?) (?:per|par|a|each|in each|in a) (?:training )?(?:step|iteration|batch|pas|etape|lot)\b)"},
      {"tokens",
       R"(\b(?:tokens?|jetons?)(?: per step| par pas|_per_step)?\s*[=:]\s*(#+)\s?((?:k|m)\b|))"},
      {"H", R"((#+)()\s(?:attention |query )?(?:heads?|tetes?)\b)"},
      {"D",
       R"(\b(?:head[ _-]?(?:dim(?:ension)?s?|size)|(?:dimension|taille) (?:de|des|par|d'une) (?:la )?tetes?))" SOLWARD_IS
       R"((#+)())"},
  };
#undef SOLWARD_IS
  static const std::vector<std::unique_ptr<RE2>> patterns = [] {
    std::vector<std::unique_ptr<RE2>> out;
    for (const Row& row : rows) out.push_back(std::make_unique<RE2>(row.pattern));
    return out;
  }();
  const std::map<std::string, std::optional<StatedFigure>*> figures = {
      {"batch_size", &content_.batch_size},
      {"sequence_length", &content_.sequence_length},
      {"world_size", &content_.world_size},
      {"calls_per_step", &content_.calls_per_step},
      {"parameters", &content_.parameters}};
  for (size_t i = 0; i < patterns.size(); ++i) {
    const std::string name = rows[i].name;
    ForEach(*patterns[i], [&](const Groups& g) {
      const Number* number = text_.NumberAt(g[1].begin);
      if (number == nullptr) return;
      // 4k tokens of context are 4096.
      const double scale =
          name == "sequence_length" && Words(g[2]) == "k" ? 1024 : WordScale(Words(g[2]));
      Number scaled = *number;
      scaled.value *= scale;
      scaled.whole_value *= scale;
      const auto figure = figures.find(name);
      if (figure == figures.end()) {
        SetDimension(name, g[0], scaled);
      } else {
        SetFigure(name, *figure->second, g[0],
                  name == "parameters" ? scaled.value : scaled.whole_value, 1);
      }
    });
  }
  // "on 16 ranks", "8 H200 GPUs"; with nodes the product is not said.
  static const RE2 ranks(
      R"((#+)\s(?:(?:nvidia )?[a-z]+\d+\w*\s)?(?:ranks?|rangs?|gpus?|processus|processes)\b)");
  static const RE2 nodes(R"(\b(?:nodes?|noeuds?|hosts?|machines?)\b)");
  ForEach(ranks, [&](const Groups& g) {
    const Number* number = text_.NumberAt(g[1].begin);
    const Extent clause = text_.ClauseAround(g[0].begin);
    if (number == nullptr || RE2::PartialMatch(std::string(Words(clause)), nodes)) return;
    SetFigure("world_size", content_.world_size, g[0], number->whole_value, 1);
  });
}

// --- the rest ----------------------------------------------------------------

void StatementReader::ReadOtherNumbers() {
  static const RE2 percent(R"(^\s?(?:%|percent\b|pour ?cent\b))");
  for (const auto& [begin, number] : text_.numbers()) {
    if (text_.work()[begin] != '#') continue;  // taken
    Extent words = number.extent;
    re2::StringPiece match;
    const std::string after = text_.work().substr(words.end, 12);
    if (percent.Match(after, 0, after.size(), RE2::UNANCHORED, &match, 1)) {
      words.end += match.size();
      AddReading("percent", words, absl::StrCat(number.value, " %"));
      continue;
    }
    // Already said to be no dimension: the reading is there.
    AddReading("number", words,
               number.is_version ? "a version" : absl::StrCat(number.value, ", used for nothing"));
  }
}

}  // namespace solward::workflow::internal
