#include "coordinator/report/render.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/status_matchers.h"
#include "coordinator/report/markdown_table.h"
#include "coordinator/report/number_check.h"
#include "coordinator/report/provenance_text.h"
#include "coordinator/report/text_writer.h"

namespace solward::report {
namespace {

using ::solward::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string ReadGolden(const std::string& name) {
  const char* source = std::getenv("SOLWARD_SOURCE_DIR");
  EXPECT_NE(source, nullptr) << "SOLWARD_SOURCE_DIR must name the source tree";
  std::ifstream file(std::string(source == nullptr ? "" : source) + "/tests/data/golden/" + name);
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

v1::Report GoldenReport() {
  v1::Report report;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(ReadGolden("report.txtpb"), &report));
  return report;
}

std::string Markdown(const v1::Report& report, Language language) {
  const auto markdown = RenderMarkdown(report, BuiltInCatalogue(), language);
  EXPECT_TRUE(markdown.ok()) << markdown.status();
  return markdown.ok() ? *markdown : "";
}

std::vector<std::string> Sections(const std::string& markdown) {
  std::vector<std::string> sections;
  for (absl::string_view line : absl::StrSplit(markdown, '\n')) {
    if (line.rfind("## ", 0) == 0) sections.emplace_back(line);
  }
  return sections;
}

TEST(RenderMarkdown, SectionsAreExactlyTheFourOfTheSeed) {
  EXPECT_THAT(Sections(Markdown(GoldenReport(), Language::kEnglish)),
              ElementsAre("## Summary", "## Metrics", "## Findings", "## Recommendations"));
  EXPECT_THAT(Sections(Markdown(GoldenReport(), Language::kFrench)),
              ElementsAre("## Résumé", "## Métriques", "## Findings", "## Recommandations"));
}

TEST(RenderMarkdown, AnEmptyReportStillHasFourSections) {
  EXPECT_THAT(Sections(Markdown(v1::Report(), Language::kEnglish)),
              ElementsAre("## Summary", "## Metrics", "## Findings", "## Recommendations"));
}

// The goldens were read line by line. SOLWARD_GOLDEN_OUT=<folder> writes the
// texts of this build there, to be read before they replace the goldens.
void ExpectGolden(const std::string& text, const std::string& name) {
  if (const char* folder = std::getenv("SOLWARD_GOLDEN_OUT"); folder != nullptr) {
    std::ofstream(std::string(folder) + "/" + name) << text;
  }
  EXPECT_EQ(text, ReadGolden(name));
}

TEST(RenderMarkdown, IsTheReviewedTextInBothLanguages) {
  ExpectGolden(Markdown(GoldenReport(), Language::kEnglish), "report.en.md");
  ExpectGolden(Markdown(GoldenReport(), Language::kFrench), "report.fr.md");
}

class EveryNumber : public ::testing::TestWithParam<Language> {};

TEST_P(EveryNumber, IsAMetricFollowedByItsKey) {
  const v1::Report report = GoldenReport();
  EXPECT_THAT(
      NumbersWithoutMetric(Markdown(report, GetParam()), report, BuiltInCatalogue(), GetParam()),
      IsEmpty());
}

TEST_P(EveryNumber, ChangedByOneDigitIsNoticed) {
  v1::Report report = GoldenReport();
  const std::string markdown = Markdown(report, GetParam());
  for (v1::Metric& metric : *report.mutable_all_metrics()) {
    if (metric.key() == "m3") metric.set_value(69.31);
  }
  EXPECT_THAT(NumbersWithoutMetric(markdown, report, BuiltInCatalogue(), GetParam()),
              Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(Languages, EveryNumber,
                         ::testing::Values(Language::kEnglish, Language::kFrench));

TEST(NumberCheck, FindsANumberWithoutAMetric) {
  EXPECT_THAT(NumbersWithoutMetric("about 3 times faster", v1::Report(), BuiltInCatalogue(),
                                   Language::kEnglish),
              ElementsAre("about 3 times faster"));
  EXPECT_THAT(NumbersWithoutMetric("1. in ``a ` 7`` and `v2`", v1::Report(), BuiltInCatalogue(),
                                   Language::kEnglish),
              IsEmpty());
}

TEST(RenderMarkdown, AKeyThatNoMetricHasIsInternal) {
  v1::Report report = GoldenReport();
  report.mutable_metrics()->add_rows()->set_metric_key("m99");
  EXPECT_THAT(RenderMarkdown(report, BuiltInCatalogue(), Language::kEnglish),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("m99")));
}

TEST(RenderMarkdown, AnUnknownMessageIsInternalAndNamed) {
  v1::Report report = GoldenReport();
  report.mutable_summary()->add_statements()->set_message_id("summary.nowhere");
  EXPECT_THAT(RenderMarkdown(report, BuiltInCatalogue(), Language::kEnglish),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("summary.nowhere")));
}

TEST(RenderMarkdown, AMissingArgumentIsInternalAndNamed) {
  v1::Report report = GoldenReport();
  report.mutable_summary()->mutable_statements(0)->mutable_arguments()->erase("share");
  EXPECT_THAT(RenderMarkdown(report, BuiltInCatalogue(), Language::kFrench),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("{share}")));
}

TEST(RenderMarkdown, WordsOfOthersCannotBecomeMarkup) {
  v1::Report report = GoldenReport();
  v1::ReportedFinding* reported = report.mutable_findings()->mutable_findings(2);
  (*reported->mutable_statement()->mutable_arguments())["detail"].set_quotation(
      "## Summary\n\n<script>alert(1)</script> `x` [a](http://b)");
  const std::string markdown = Markdown(report, Language::kEnglish);
  EXPECT_THAT(Sections(markdown),
              ElementsAre("## Summary", "## Metrics", "## Findings", "## Recommendations"));
  EXPECT_THAT(markdown,
              HasSubstr("“`` ## Summary  <script>alert(1)</script> `x` [a](http://b) ``”"));
}

TEST(RenderJson, IsTheProtosJsonFormWithItsFieldNames) {
  const v1::Report report = GoldenReport();
  ASSERT_OK_AND_ASSIGN(const std::string json, RenderJson(report));
  EXPECT_THAT(json, HasSubstr("\"all_metrics\""));
  v1::Report read;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &read).ok());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(read, report));
}

TEST(RenderStatement, IsOneLineWithItsMetric) {
  const v1::Report report = GoldenReport();
  EXPECT_EQ(RenderStatement(report.summary().statements(0), report.all_metrics(),
                            BuiltInCatalogue(), Language::kEnglish),
            "Limited by its kernels, compute-bound: 100.0 % [m1] of the profiled kernels' time; "
            "bringing them to their roof could recover at most 16.2 % [m2] (an upper bound). "
            "Confidence: high.");
}

TEST(RenderStatement, SaysWhatIsMissingInsteadOfFailing) {
  v1::Statement statement;
  statement.set_message_id("summary.nowhere");
  EXPECT_THAT(RenderStatement(statement, {}, BuiltInCatalogue(), Language::kEnglish),
              HasSubstr("summary.nowhere"));
}

TEST(CodeSpan, HoldsWhateverItIsGiven) {
  EXPECT_EQ(CodeSpan("plain"), "`plain`");
  EXPECT_EQ(CodeSpan("a `b` c"), "`` a `b` c ``");
  EXPECT_EQ(CodeSpan("two\nlines"), "`two lines`");
}

TEST(ShortKernelName, KeepsTheFunction) {
  EXPECT_EQ(ShortKernelName("void ns::gemm<4, float>(int, float*)"), "gemm<…>");
  EXPECT_EQ(ShortKernelName("void (anonymous namespace)::softmax<float>(float*)"), "softmax<…>");
  EXPECT_EQ(ShortKernelName("void at::<unnamed>::kernel::lstm_cell_forward<float, 1>(T1)"),
            "lstm_cell_forward<…>");
  EXPECT_EQ(ShortKernelName("nvjet_sm90_hsh_256x128"), "nvjet_sm90_hsh_256x128");
}

TEST(ShortKernelName, NamesWhatAGenericKernelWasMadeFor) {
  EXPECT_EQ(ShortKernelName("void at::native::vectorized_elementwise_kernel<(int)4, "
                            "at::native::AUnaryFunctor<float, float, float, "
                            "at::native::binary_internal::MulFunctor<float>>, "
                            "std::array<char *, (unsigned long)2>>(int, T2, T3)"),
            "vectorized_elementwise_kernel<MulFunctor>");
  EXPECT_EQ(ShortKernelName("void at::native::elementwise_kernel<(int)128, (int)2, void "
                            "at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<float>>"
                            "(at::TensorIteratorBase &)::[lambda(int) (instance 1)]>(int, T3)"),
            "elementwise_kernel<CUDAFunctor_add>");
}

TEST(TextWriter, ShortNamesOfDifferentKernelsStayDifferent) {
  const google::protobuf::RepeatedPtrField<v1::Metric> none;
  TextWriter writer(none, BuiltInCatalogue(), BuiltInMessages(), Language::kEnglish);
  const std::string a = "void a_rather_long_namespace::inner::function<float, 1, 2, 3>(int)";
  const std::string b = "void a_rather_long_namespace::inner::function<double, 4, 5, 6>(int)";
  writer.ShortenKernelNames({a, b});
  EXPECT_NE(writer.KernelName(a), writer.KernelName(b));
  EXPECT_EQ(writer.shortened().at(writer.KernelName(a)), a);
}

TEST(MarkdownTable, AlignsColumnsByCharactersAndLeavesOutEmptyOnes) {
  MarkdownTable table({"Métrique", "Empty", "Value"});
  table.AddRow({"é", "", "`a|b`"});
  table.AddRow({"longer name", "", "x"});
  EXPECT_EQ(table.ToString(),
            "| Métrique    | Value  |\n"
            "|-------------|--------|\n"
            "| é           | `a\\|b` |\n"
            "| longer name | x      |\n");
}

}  // namespace
}  // namespace solward::report
