/**
 * Whether llm-d-router's endpoint picker takes what gnomon exports: its own policies as gnomon has them, and drawn
 * variants of them, each as an EndpointPickerConfig with nothing but a list of endpoints added.
 *
 *     npx node bench/llm-d-export.ts --binary <endpoint picker> [--drawn 10] [--seed 1]
 *
 * Each file is given to a process of its own, which must answer on its metrics port. Ends with exit code 1 where one
 * does not.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import { spaceFor } from "#cli/tune/tune-space.ts";
import { type EndpointPickerConfig, exportLlmD } from "#config/export-llm-d.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { randomFor } from "#core/random.ts";
import { variantOf } from "#shadow/tune/policy-space.ts";
import { freePort } from "./free-port.ts";

const { values } = parseArgs({
  options: {
    binary: { type: "string" },
    drawn: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
  },
});
if (values.binary === undefined) throw new Error("--binary: expected the path of llm-d-router's endpoint picker");
const { binary } = values;
const folder = mkdtempSync(join(tmpdir(), "gnomon-llm-d-export-"));
const START_MILLIS_MAX = 20_000;
const STEPS_MAX = 6;

const { space, bases } = spaceFor("llm-d", [], false);
const random = randomFor(Number(values.seed), 1);
const drawn = Array.from({ length: Number(values.drawn) }, (_, i) => ({ name: `drawn ${i + 1}`, spec: drawnSpec() }));
const types = new Set<string>();
let failed = 0;
for (const { name, spec } of [...bases, ...drawn]) {
  const exported = exportLlmD(spec);
  if (!exported.ok) throw new Error(`${name}: ${exported.reasons.join("; ")}`);
  for (const { type } of exported.value.plugins) types.add(type);
  const trouble = await refusal(exported.value);
  if (trouble !== "") failed++;
  process.stdout.write(`${name}: ${trouble === "" ? "taken" : `REFUSED: ${trouble}`}\n`);
}
process.stdout.write(
  `${bases.length + drawn.length - failed} of ${bases.length + drawn.length} taken; plugins: ${[...types].sort().join(", ")}\n`,
);
rmSync(folder, { recursive: true });
process.exitCode = failed > 0 ? 1 : 0;

function drawnSpec(): ProfileSpec {
  let { spec } = bases[random.below(bases.length)]!;
  for (let step = random.below(STEPS_MAX); step >= 0; step--) spec = variantOf([spec], space, random)?.spec ?? spec;
  return spec;
}

/** Why the endpoint picker ends with it; "" where it answers. */
async function refusal(exported: EndpointPickerConfig): Promise<string> {
  const [port, health, metrics] = [await freePort(), await freePort(), await freePort()];
  const [endpoints, config] = [join(folder, "endpoints.yaml"), join(folder, "config.yaml")];
  writeFileSync(endpoints, 'endpoints:\n- {name: engine-0, address: 127.0.0.1, port: "9"}\n');
  const discovery = { type: "file-discovery", parameters: { path: endpoints, watchFile: false } };
  const own = { ...exported, plugins: [...exported.plugins, discovery] };
  writeFileSync(config, stringify({ ...own, dataLayer: { discovery: { pluginRef: "file-discovery" } } }));
  const ports = [`--grpc-port=${port}`, `--grpc-health-port=${health}`, `--metrics-port=${metrics}`];
  // Affinity to sessions is Alpha there.
  const flags = [
    "--allow-experimental-plugins",
    "--secure-serving=false",
    "--metrics-endpoint-auth=false",
    "--pool-name=bench",
    "--pool-namespace=bench",
  ];
  const child = spawn(binary, [...ports, ...flags, `--config-file=${config}`], { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => (text += data.toString()));
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  child.on("exit", () => resolve());
  const startedAt = performance.now();
  let answer = "it did not answer";
  while (child.exitCode === null && performance.now() - startedAt < START_MILLIS_MAX) {
    const page = await fetch(`http://127.0.0.1:${metrics}/metrics`).catch(() => undefined);
    if (page !== undefined) answer = "";
    if (page !== undefined) break;
    await sleep(100);
  }
  if (child.exitCode !== null)
    answer = text
      .split("\n")
      .filter((line) => /error|failed/i.test(line))
      .slice(-2)
      .join(" ")
      .slice(-600);
  child.kill("SIGKILL");
  await ended;
  return answer;
}
