#include "coordinator/workflow/statement.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/gpu_peaks.h"
#include "common/problem_context.h"
#include "coordinator/workflow/statement_metrics.h"
#include "coordinator/workflow/statement_reader.h"

namespace solward::workflow {
namespace internal {

StatementReader::StatementReader(absl::string_view text, const MetricCatalogue& catalogue)
    : catalogue_(catalogue), text_(text) {}

StatementContent StatementReader::Read() {
  ReadFiles();
  ReadRegion();
  ReadSkippedSteps();
  ReadKernels();
  ReadLabelledFlops();
  ReadFlops();
  ReadPeaks();
  ReadTimes();
  ReadDimensionLists();
  ReadShapes();
  ReadNamedFigures();
  ReadDimensions();
  ReadBareDimensions();
  ReadDtypes();
  ReadOperation();
  ReadMode();
  ReadMetrics();
  ReadOtherNumbers();
  content_.kernel_pattern = absl::StrJoin(kernels_, "|");
  std::stable_sort(content_.readings.begin(), content_.readings.end(),
                   [](const auto& a, const auto& b) { return a.offset() < b.offset(); });
  return std::move(content_);
}

void StatementReader::ForEach(const RE2& pattern, const std::function<void(const Groups&)>& use) {
  const int count = std::min(pattern.NumberOfCapturingGroups(), 7) + 1;
  re2::StringPiece match[8];
  const std::string& work = text_.work();
  for (size_t at = 0;
       at <= work.size() && pattern.Match(work, at, work.size(), RE2::UNANCHORED, match, count);) {
    Groups groups;
    for (int i = 0; i < count; ++i) {
      if (match[i].data() == nullptr) {
        groups.push_back({});
      } else {
        const size_t begin = static_cast<size_t>(match[i].data() - work.data());
        size_t end = begin + match[i].size();
        while (end > begin && work[end - 1] == ' ') --end;
        groups.push_back({begin, end});
      }
    }
    // The match itself, not its groups, says where to go on.
    const size_t end = static_cast<size_t>(match[0].data() - work.data()) + match[0].size();
    use(groups);
    at = std::max(end, at + 1);
  }
}

void StatementReader::AddReading(absl::string_view kind, Extent words, const std::string& meaning) {
  v1::StatementReading reading;
  reading.set_kind(std::string(kind));
  reading.set_text(text_.Original(words));
  reading.set_meaning(meaning);
  reading.set_offset(static_cast<uint32_t>(text_.folded().OriginalOffset(words.begin)));
  content_.readings.push_back(std::move(reading));
}

absl::string_view StatementReader::Words(Extent extent) const {
  return absl::string_view(text_.work()).substr(extent.begin, extent.end - extent.begin);
}

std::string StatementReader::Before(size_t at, size_t most) const {
  const size_t begin = std::max(text_.ClauseAround(at).begin, at > most ? at - most : 0);
  return text_.work().substr(begin, at - begin);
}

// --- words -------------------------------------------------------------------

void StatementReader::ReadDtypes() {
  static const RE2 dtype(
      R"(\b((?:fp|float)(?:64|32|16|8|4)|bf16|bfloat16|tf32|int8|nvfp4|mxfp4|mxfp8|fp8[_-]?e\dm\d|e[45]m[23]|(half|demi)[ -]precision|(single|simple)[ -]precision|(double)[ -]precision|(?:in|en) (half))\b)");
  // What another type is said of: accumulators, master weights, outputs.
  static const RE2 aside_after(
      R"(^[ -]?(?:(?:for|in|as|pour|en|dans) (?:the |les |l |l\W)?)?(?:accum|master|output|sorti|optimi[sz]er|poids|weights))");
  static const RE2 aside_before(R"((?:accum\w*|master\w*|outputs?|sorties?)\s+(?:\w+\s+){0,2}$)");
  ForEach(dtype, [&](const Groups& g) {
    const absl::string_view word = Words(g[1]);
    v1::Dtype read = ParseDtype(word);
    if (g[2].end > 0 || g[5].end > 0) read = v1::DTYPE_FP16;
    if (g[3].end > 0) read = v1::DTYPE_FP32;
    if (g[4].end > 0) read = v1::DTYPE_FP64;
    if (absl::StrContains(word, "fp4")) read = v1::DTYPE_FP4;
    if (absl::StartsWith(word, "mxfp8") || absl::StrContains(word, "m2") ||
        absl::StrContains(word, "m3")) {
      read = v1::DTYPE_FP8;
    }
    if (read == v1::DTYPE_UNSPECIFIED) return;
    const std::string name(DtypeName(read));
    const bool aside = read != content_.dtype &&
                       (RE2::PartialMatch(text_.work().substr(g[1].end, 40), aside_after) ||
                        RE2::PartialMatch(Before(g[1].begin, 40), aside_before));
    AddReading(aside ? "other_dtype" : "dtype", g[1], name);
    if (aside) return;
    if (content_.dtype == v1::DTYPE_UNSPECIFIED) {
      content_.dtype = read;
    } else if (content_.dtype != read) {
      content_.twice.push_back({"dtype", std::string(DtypeName(content_.dtype)), name});
    }
  });
}

void StatementReader::ReadOperation() {
  struct Row {
    v1::OperationKind kind;
    const char* pattern;
  };
  // The first that matches; the order is from the most to the least telling.
  static const Row rows[] = {
      {v1::OPERATION_KIND_TRANSFORMER_TRAINING,
       R"(\b(?:(?:transformers?|llms?|gpt\S*|llama\S*|bert\S*|decoders?|language models?|modeles? de langue?(?:s|age)?)\b[^.;?!]{0,80}?\b(?:train(?:s|ed|ing)?|pre-?training|fine-?tun\w+|entrain\w+|apprentissage)|(?:train(?:s|ed|ing)?|pre-?training|fine-?tun\w+|entrain\w+|apprentissage)\b[^.;?!]{0,80}?\b(?:transformers?|llms?|gpt\S*|llama\S*|bert\S*|decoders?|language models?|modeles? de langue?(?:s|age)?))\b)"},
      {v1::OPERATION_KIND_BATCHED_GEMM,
       R"(\b(?:(?:strided[ -])?batch(?:ed)?[ -]?(?:gemms?|mat-?mul(?:s|t)?|matrix[ -]mult\w*)|bmm|(?:gemms?|mat-?muls?|(?:produits?|multiplications?) (?:de matrices|matriciel\w*))(?: de matrices)? (?:en batch|par lots?|batche\w*|en lots?|batched))\b)"},
      {v1::OPERATION_KIND_CONVOLUTION,
       R"(\b(?:conv(?:olution)?s?(?:[123]d)?|convolutionn?el\w*|convolutional)\b)"},
      {v1::OPERATION_KIND_ATTENTION,
       R"(\b(?:(?:flash|self|auto|cross|multi-?head|causal)?[ -]?attention|flashattention|sdpa)\b)"},
      {v1::OPERATION_KIND_GEMM,
       R"(\b(?:gemms?|mat-?muls?|matrix[ -](?:multipl\w+|products?)|(?:produits?|multiplications?) (?:de matrices|matriciel\w*))\b)"},
  };
  static const std::vector<std::unique_ptr<RE2>> patterns = [] {
    std::vector<std::unique_ptr<RE2>> out;
    for (const Row& row : rows) out.push_back(std::make_unique<RE2>(row.pattern));
    return out;
  }();
  v1::Operation stated;
  for (const auto& [name, value] : content_.dimensions) {
    (*stated.mutable_dimensions())[name] = value;
  }
  const v1::OperationKind told_by_dimensions = KindOfDimensions(stated);
  const auto is_gemm = [](v1::OperationKind kind) {
    return kind == v1::OPERATION_KIND_GEMM || kind == v1::OPERATION_KIND_BATCHED_GEMM;
  };
  std::optional<Extent> words;
  for (size_t i = 0; i < patterns.size(); ++i) {
    ForEach(*patterns[i], [&](const Groups& g) {
      // The words decide; between several of them the dimensions do.
      const bool better = words &&
                          (rows[i].kind == told_by_dimensions ||
                           (is_gemm(rows[i].kind) && is_gemm(told_by_dimensions))) &&
                          !is_gemm(content_.operation) && content_.operation != told_by_dimensions;
      if (words && !better) return;
      words = g[0];
      content_.operation = rows[i].kind;
    });
  }
  if (content_.operation == v1::OPERATION_KIND_GEMM && content_.dimensions.count("B") > 0 &&
      is_gemm(told_by_dimensions)) {
    content_.operation = v1::OPERATION_KIND_BATCHED_GEMM;
  }
  if (words) {
    AddReading("operation", *words, std::string(OperationKindName(content_.operation)));
  }
}

void StatementReader::ReadMode() {
  static const RE2 training(
      R"(\b(?:training|train(?:s|ed)|pre-?training|fine-?tun\w+|entrain(?:e|ement|ent|er)|apprentissage)\b)");
  static const RE2 inference(
      R"(\b(?:inference|serving|generation of tokens|decoding|decode step|prefill|inference|decodage)\b)");
  static const RE2 causal(R"(\b(?:causal(?:e|es)?|causaux)\b)");
  static const RE2 backward(
      R"(\b(?:forward (?:and|\+) backward|forward\s?/\s?backward|fwd\s?\+\s?bwd|fwd/bwd|(?:with|including|and) (?:the |its )?backward(?: pass)?|backward (?:pass )?included|avant et arriere|aller et retour|avec (?:la )?(?:retropropagation|passe arriere)|passe arriere (?:comprise|incluse))\b)");
  static const RE2 not_causal(R"((?:non|not|pas)[ -]+$)");
  bool mode_read = false;
  const auto mode = [&](v1::TrainingMode value, const char* meaning) {
    return [this, &mode_read, value, meaning](const Groups& g) {
      if (mode_read) return;
      mode_read = true;
      content_.mode = value;
      AddReading("mode", g[0], meaning);
    };
  };
  ForEach(training, mode(v1::TRAINING_MODE_TRAINING, "training"));
  ForEach(inference, mode(v1::TRAINING_MODE_INFERENCE, "inference"));
  ForEach(causal, [&](const Groups& g) {
    if (content_.causal || RE2::PartialMatch(Before(g[0].begin, 8), not_causal)) return;
    content_.causal = true;
    AddReading("causal", g[0], "causal: half the scores");
  });
  ForEach(backward, [&](const Groups& g) {
    if (content_.backward) return;
    content_.backward = true;
    AddReading("backward", g[0], "backward pass included");
  });
}

void StatementReader::ReadMetrics() {
  for (const MetricMention& mention : FindMetrics(text_.work(), catalogue_)) {
    const Extent words{mention.begin, mention.end};
    AddReading(mention.is_unit ? "unit" : "metric", words, mention.id);
    auto& ids = mention.is_unit ? content_.unit_metrics : content_.metrics;
    if (std::find(ids.begin(), ids.end(), mention.id) == ids.end()) ids.push_back(mention.id);
  }
}

}  // namespace internal

StatementContent ReadStatement(absl::string_view text, const MetricCatalogue& catalogue) {
  return internal::StatementReader(text, catalogue).Read();
}

}  // namespace solward::workflow
