/** What starts by its own name. */
const SOURCE = ["src/**/*.worker.ts!", "src/page/status/main.ts!"];
const REST = [
  "bench/*.ts",
  "bench/*/*-tests.ts",
  "bench/conformance/stand-ins.ts",
  "bench/continuation/engine.ts",
  "bench/faults/faulty-engine.ts",
  "bench/fuzz/bare-loop.ts",
  "bench/fuzz/hostile-writer.ts",
  "bench/fuzz/hostile-engine.ts",
  "bench/fuzz/well-client.ts",
  "bench/simulate/report-usage.ts",
  "test/**/*.test.ts",
  "test/run.ts",
  "test/explore.ts",
  "test/mutants/mutants.ts",
  "test/property-seed.ts",
  "test/known-modules.ts",
  "test/file-times.ts",
  "test/stalls.ts",
  "test/deploy/npm-without-registry.ts",
  "test/serve/migrate/record/record-sample.ts",
  "test/deploy/kubelet/port-forward.ts",
];

/** Of the source alone, what only tests use counts as unused unless its own file uses it; else what nobody uses does. */
const ofSource = { ignoreExportsUsedInFile: true, ignoreDependencies: ["own-node"] };
const ofAll = {
  ignoreExportsUsedInFile: { interface: true, type: true },
  ignoreBinaries: ["ip", "redis-server", "openssl", "mount", "umount", "unshare"],
};

export default {
  entry: [...SOURCE, ...REST],
  project: ["src/**/*.ts!", "bench/**/*.ts", "test/**/*.ts"],
  ...(process.argv.includes("--production") ? ofSource : ofAll),
};
