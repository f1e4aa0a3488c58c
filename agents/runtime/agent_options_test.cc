#include "agents/runtime/agent_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "common/status_matchers.h"

namespace solward::runtime {
namespace {

using solward::testing::IsOk;
using solward::testing::StatusIs;
using ::testing::HasSubstr;

absl::StatusOr<AgentOptions> Apply(const std::string& yaml) {
  AgentOptions options = DefaultAgentOptions("profiling");
  RETURN_IF_ERROR(ApplyAgentYaml(yaml, "agent.yaml", options));
  return options;
}

TEST(AgentOptionsTest, ReadsEveryKey) {
  ASSERT_OK_AND_ASSIGN(AgentOptions options, Apply(R"(
listen: ["unix:/a.sock", "10.0.0.1:7444"]
unix_socket_mode: "0666"
tls:
  certificate: c.pem
  private_key: k.pem
  client_ca: ca.pem
workspace: /w
coordinator: "head:7443"
coordinator_ca: cca.pem
advertise: "node-7:7444"
labels:
  site: lab
log_level: debug
limits:
  concurrency: 3
  queue: 4
  longest_delegation_seconds: 60
  results_on_disk: 7
  max_uploads: 5
  max_artifact_bytes: 1000
  max_total_bytes: 2000
  max_message_bytes: 8388608
  max_concurrent_streams: 9
  max_unix_connections: 10
  shutdown_grace_seconds: 11
)"));
  EXPECT_THAT(options.server.listen, ::testing::ElementsAre("unix:/a.sock", "10.0.0.1:7444"));
  EXPECT_EQ(options.server.unix_socket_mode, 0666u);
  EXPECT_EQ(options.server.tls.certificate, "c.pem");
  EXPECT_EQ(options.server.tls.private_key, "k.pem");
  EXPECT_EQ(options.server.tls.client_ca, "ca.pem");
  EXPECT_EQ(options.workspace, "/w");
  EXPECT_EQ(options.registration.coordinator, "head:7443");
  EXPECT_EQ(options.registration.ca_file, "cca.pem");
  EXPECT_EQ(options.registration.advertise, "node-7:7444");
  EXPECT_EQ(options.service.labels.at("site"), "lab");
  EXPECT_EQ(options.log_level, "debug");
  EXPECT_EQ(options.service.delegations.concurrency, 3);
  EXPECT_EQ(options.service.delegations.queue, 4);
  EXPECT_EQ(options.service.delegations.longest, absl::Minutes(1));
  EXPECT_EQ(options.service.delegations.ended_on_disk, 7);
  EXPECT_EQ(options.service.max_uploads, 5);
  EXPECT_EQ(options.workspace_limits.max_artifact_bytes, 1000);
  EXPECT_EQ(options.workspace_limits.max_total_bytes, 2000);
  EXPECT_EQ(options.server.max_message_bytes, 8 << 20);
  EXPECT_EQ(options.server.max_concurrent_streams, 9);
  EXPECT_EQ(options.server.max_unix_connections, 10);
  EXPECT_EQ(options.shutdown_grace, absl::Seconds(11));
}

TEST(AgentOptionsTest, AnEmptyFileChangesNothing) {
  for (const char* yaml : {"", "# only a comment\n"}) {
    ASSERT_OK_AND_ASSIGN(AgentOptions options, Apply(yaml));
    EXPECT_THAT(options.server.listen,
                ::testing::ElementsAre(HasSubstr("/solward/profiling.sock")));
    EXPECT_THAT(options.workspace, HasSubstr("/solward/profiling"));
    EXPECT_EQ(options.registration.coordinator, "");
  }
}

TEST(AgentOptionsTest, AnUnknownKeyIsNamedWithItsLine) {
  EXPECT_THAT(Apply("log_level: info\nlisten_to: x\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::AllOf(HasSubstr("agent.yaml:2"), HasSubstr("listen_to"))));
  EXPECT_THAT(Apply("limits:\n  queue: 1\n  queues: 2\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::AllOf(HasSubstr("agent.yaml:3"), HasSubstr("queues"))));
  EXPECT_THAT(Apply("tls:\n  cert: x\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("agent.yaml:2")));
}

TEST(AgentOptionsTest, AValueOutOfRangeOrOfAnotherKindIsRefused) {
  for (const char* yaml :
       {"limits: {concurrency: 0}", "limits: {concurrency: many}", "limits: {queue: 1.5}",
        "limits: 3", "tls: x", "labels: [a]", "listen: {a: b}", "unix_socket_mode: \"rw\"",
        "limits: {shutdown_grace_seconds: 0}", "- a list", "a: b: c", "workspace: [x]"}) {
    EXPECT_THAT(Apply(yaml), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("agent.yaml")))
        << yaml;
  }
}

TEST(AgentOptionsTest, TheShippedFilesAreTheDefaultsOfRoot) {
  const char* root = std::getenv("SOLWARD_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  for (const auto& [file, name] : {std::pair("agent_profiling.yaml", "profiling"),
                                   std::pair("agent_cuda_graph.yaml", "cuda-graph")}) {
    std::ifstream in(std::string(root) + "/config/" + file);
    const std::string yaml{std::istreambuf_iterator<char>(in), {}};
    ASSERT_FALSE(yaml.empty());
    AgentOptions shipped = DefaultAgentOptions(name);
    ASSERT_THAT(ApplyAgentYaml(yaml, file, shipped), IsOk());
    const AgentOptions defaults = DefaultAgentOptions(name);
    EXPECT_EQ(shipped.server.listen[0], std::string("unix:/run/solward/") + name + ".sock");
    EXPECT_EQ(shipped.workspace, std::string("/var/lib/solward/") + name);
    EXPECT_EQ(shipped.server.unix_socket_mode, defaults.server.unix_socket_mode);
    EXPECT_EQ(shipped.server.max_message_bytes, defaults.server.max_message_bytes);
    EXPECT_EQ(shipped.service.delegations.concurrency, defaults.service.delegations.concurrency);
    EXPECT_EQ(shipped.service.delegations.queue, defaults.service.delegations.queue);
    EXPECT_EQ(shipped.service.delegations.longest, defaults.service.delegations.longest);
    EXPECT_EQ(shipped.workspace_limits.max_total_bytes, defaults.workspace_limits.max_total_bytes);
    EXPECT_EQ(shipped.shutdown_grace, defaults.shutdown_grace);
  }
}

}  // namespace
}  // namespace solward::runtime
