#include "common/outcome_lint.h"

#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status_matchers.h"

namespace solward {
namespace {

using solward::testing::IsOk;
using solward::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Describe(const std::vector<Offence>& offences) {
  std::string out;
  for (const Offence& o : offences) {
    absl::StrAppend(&out, "  ", OffenceKindName(o.kind), ": \"", o.words, "\" at ", o.offset, "\n");
  }
  return out.empty() ? "  nothing\n" : out;
}

bool OverlapsAnOccurrence(const std::string& text, const std::string& words, const Offence& o) {
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    if (o.offset < at + words.size() && at < o.offset + o.words.size()) return true;
  }
  return false;
}

bool Names(const std::vector<Offence>& offences, const std::string& text, const std::string& kind,
           const std::string& words) {
  for (const Offence& o : offences) {
    if (OffenceKindName(o.kind) == kind && OverlapsAnOccurrence(text, words, o)) return true;
  }
  return false;
}

YAML::Node Cases() {
  const char* root = std::getenv("SOLWARD_SOURCE_DIR");
  if (root == nullptr) {
    ADD_FAILURE() << "SOLWARD_SOURCE_DIR is not set";
    return YAML::Node(YAML::NodeType::Map);
  }
  return YAML::LoadFile(absl::StrCat(root, "/tests/data/outcome_lint_cases.yaml"));
}

// Written by someone who saw only the rules' text, not these patterns.
TEST(OutcomeLintCases, EveryCaseOfTheIndependentList) {
  const YAML::Node cases = Cases()["cases"];
  ASSERT_GE(cases.size(), 60u);
  for (const YAML::Node& c : cases) {
    const std::string text = c["text"].as<std::string>();
    const std::vector<Offence> offences = LintOutcomeText(text);
    SCOPED_TRACE(absl::StrCat(c["id"].as<std::string>(), ": ", text));
    if (c["offences"].size() == 0) {
      EXPECT_THAT(offences, IsEmpty()) << Describe(offences);
    }
    for (const YAML::Node& expected : c["offences"]) {
      const std::string kind = expected["kind"].as<std::string>();
      const std::string words = expected["words"].as<std::string>();
      EXPECT_TRUE(Names(offences, text, kind, words))
          << "expected " << kind << ": \"" << words << "\", found\n"
          << Describe(offences);
    }
  }
}

TEST(OutcomeLintCases, WordsAreAsWrittenAtTheirOffset) {
  for (const YAML::Node& c : Cases()["cases"]) {
    const std::string text = c["text"].as<std::string>();
    for (const Offence& o : LintOutcomeText(text)) {
      EXPECT_EQ(text.substr(o.offset, o.words.size()), o.words) << c["id"].as<std::string>();
      EXPECT_FALSE(o.words.empty());
    }
  }
}

std::vector<std::string> Kinds(const std::string& text) {
  std::vector<std::string> kinds;
  for (const Offence& o : LintOutcomeText(text)) kinds.emplace_back(OffenceKindName(o.kind));
  return kinds;
}

TEST(OutcomeLint, ToolsOwnOptionsAreRefusedWhateverTheDash) {
  for (const char* text :
       {"Use --replay-mode application when measuring the GEMM.", "Collect with \u2014set=full.",
        "Use torch.profiler with record_shapes=True and with_stack=True.",
        "Profile using the full set of NCU sections.", "Passer l'option -t cuda,nvtx \u00e0 nsys.",
        "Activer le drapeau --target-processes=all."}) {
    EXPECT_THAT(Kinds(text), ::testing::Contains("tool_flags")) << text;
  }
}

TEST(OutcomeLint, WorkloadsOwnOptionsPass) {
  for (const char* text :
       {"Run python train.py --batch-size 32 --precision bf16 and report MFU.",
        "The workload is started with ./bench --iters 100 -n 4.",
        "The script accepts --compile; compare throughput with and without --compile.",
        "The job is launched as srun -N 2 --gpus-per-node=8 python train.py --config cfg.yaml.",
        "Throughput fell by -3.5 % since -O3 was dropped from the nvcc command."}) {
    EXPECT_THAT(Kinds(text), IsEmpty()) << text;
  }
}

TEST(OutcomeLint, EachOptionIsAnOffenceOfItsOwn) {
  const auto offences = LintOutcomeText("NCU with --set=full and --target-processes all.");
  ASSERT_EQ(offences.size(), 2u);
  EXPECT_EQ(offences[0].words, "--set=full");
  EXPECT_EQ(offences[1].words, "--target-processes all");
}

TEST(OutcomeLint, StepsOfAToolAreRefused) {
  for (const char* text :
       {"Start by running nsys to find the hot kernel, then profile that kernel with ncu.",
        "Load the nsys-rep into Nsight Systems and look at the timeline.",
        "Launch nsys, wait for ten iterations, then stop it.", "Grep the output for Duration.",
        "Lancez nsys puis ncu.", "Lire la sortie CSV et calculer la moyenne.",
        "D'abord, profiler avec nsys ; ensuite, profiler avec ncu les noyaux longs."}) {
    EXPECT_THAT(Kinds(text), ::testing::Contains("tool_steps")) << text;
  }
}

TEST(OutcomeLint, WhatTheWorkloadOrHistoryDidIsNoStep) {
  for (const char* text : {"We ran nsys first and then ncu; both show the kernel is slow.",
                           "The step first loads the batch, then launches the kernel.",
                           "After warm-up, profile the GEMM kernel with NCU.",
                           "Mesurer d'abord le d\u00e9bit, puis la latence.",
                           "The loader parses CSV files from /data/csv; is the GPU starved?"}) {
    EXPECT_THAT(Kinds(text), IsEmpty()) << text;
  }
}

TEST(OutcomeLint, StrategiesForAFailureOfTheToolAreRefused) {
  for (const char* text :
       {"If that does not work, try torch.profiler.", "Use torch.profiler if nsys is unavailable.",
        "Profile with NCU, or nsys if NCU is not installed.",
        "If ncu returns no kernels, drop the filter and try again.",
        "If you get ERR_NVGPUCTRPERM, run as root.", "Utiliser ncu ; \u00e0 d\u00e9faut, nsys.",
        "Si les compteurs ne sont pas accessibles, passer \u00e0 nsys.",
        "En dernier recours, nvidia-smi."}) {
    EXPECT_THAT(Kinds(text), ::testing::Contains("fallback")) << text;
  }
}

TEST(OutcomeLint, FailuresOfTheWorkloadAreContext) {
  for (const char* text :
       {"The trainer falls back to eager mode if torch.compile fails.",
        "If the batch size is above 64 the run fails with out of memory; batch size is 32.",
        "If MFU cannot be computed, say why.",
        "The all-reduce cannot overlap with the backward pass; how much time is exposed?",
        "Si le pas est limit\u00e9 par le lancement, v\u00e9rifier la compatibilit\u00e9 CUDA "
        "Graph."}) {
    EXPECT_THAT(Kinds(text), IsEmpty()) << text;
  }
}

TEST(OutcomeLint, OptionsInsideAnExampleCommandArePartOfIt) {
  EXPECT_THAT(Kinds("For example: ncu --set full python bmm_workload.py"),
              ElementsAre("example_command"));
}

TEST(OutcomeLint, PlacesOfArtifactsAreRefusedPlacesOfInputAreNot) {
  for (const char* text :
       {"Results go to /tmp/results.", "Output file: out.ncu-rep",
        "Keep the raw captures in the results folder.", "Upload everything to gs://bucket.",
        "Les r\u00e9sultats doivent aller dans /data/out.", "Name the report gemm.ncu-rep."}) {
    EXPECT_THAT(Kinds(text), ::testing::Contains("output_path")) << text;
  }
  for (const char* text :
       {"The capture in /data/run1/step.nsys-rep was recorded yesterday.",
        "The model reads weights from /models/llama and writes logs to /var/log/app.log.",
        "Write the report in English.", "Compare the trace of rank 0 with that of rank 1."}) {
    EXPECT_THAT(Kinds(text), IsEmpty()) << text;
  }
}

TEST(OutcomeLint, AnyBytesAreTaken) {
  EXPECT_THAT(LintOutcomeText(""), IsEmpty());
  EXPECT_THAT(LintOutcomeText("\xff\xfe\x00\xc3"), IsEmpty());
  EXPECT_THAT(Kinds("\xff --set=full \xe2\x80"), ElementsAre("tool_flags"));
}

TEST(LintFields, NamesFieldKindWordsAndWhatToSayInstead) {
  const absl::Status status = LintFields({{"request.statement", "Report the MFU."},
                                          {"request.notes", "If ncu fails, use nsys."},
                                          {"workload.description", "Collect --set=full."}});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request.notes")));
  EXPECT_EQ(ErrorReason(status), "DELEGATION_NOT_OUTCOME_ONLY");
  const auto violations = FieldViolations(status);
  ASSERT_EQ(violations.size(), 2u);
  EXPECT_EQ(violations[0].field, "request.notes");
  EXPECT_THAT(violations[0].description,
              HasSubstr("fallback: \"If ncu fails, use nsys\": say only what is wanted instead"));
  EXPECT_EQ(violations[1].field, "workload.description");
  EXPECT_THAT(violations[1].description, HasSubstr("tool_flags: \"--set=full\""));
}

TEST(LintFields, AStatusStaysSmallEnoughToTravel) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "If ncu fails, use nsys. ";
  const absl::Status status = LintFields({{"request.statement", text}});
  size_t bytes = 0;
  for (const auto& violation : FieldViolations(status)) bytes += violation.description.size();
  EXPECT_LT(bytes, 5000u);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("500 places")));
  EXPECT_THAT(FieldViolations(status).back().description, HasSubstr("further offences"));
}

TEST(LintFields, CleanFieldsPass) {
  EXPECT_THAT(LintFields({}), IsOk());
  EXPECT_THAT(LintFields({{"request.statement", "Is the kernel axpy memory-bound?"}}), IsOk());
}

}  // namespace
}  // namespace solward
