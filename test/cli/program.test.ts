import assert from "node:assert/strict";
import { test } from "node:test";
import { configCommand } from "../../src/cli/config.ts";
import { emulateCommand } from "#cli/serve/emulate.ts";
import { explainCommand } from "#cli/explain/explain.ts";
import { profilesCommand } from "../../src/cli/profiles.ts";
import { createProgram, run } from "../../src/cli/program.ts";
import { serveCommand } from "#cli/serve/serve.ts";
import { takenPort } from "./command-line.ts";
import { rolloutCommand } from "#cli/rollout/rollout.ts";
import { driveCommand } from "#drive/command.ts";

const COMMANDS = [
  serveCommand,
  emulateCommand,
  driveCommand,
  profilesCommand,
  explainCommand,
  configCommand,
  rolloutCommand,
];

/** Exit code and complaints of a command line that does not get to start anything. */
async function refused(...argv: string[]): Promise<{ code: number; lines: string[] }> {
  const lines: string[] = [];
  const program = createProgram(
    "1.2.3",
    COMMANDS.map((create) => create()),
  );
  const code = await run(program, argv, (line) => lines.push(line));
  return { code, lines };
}

test("what is given wrongly is reported in one line each and ends with 2", async () => {
  const cases: readonly (readonly [string[], RegExp])[] = [
    [["--nope"], /^unknown option '--nope'$/],
    [["serv"], /expected one of serve, .*, got the unknown command "serv"; did you mean serve\?/],
    [["--port", "abc"], /^listen\.port: expected an integer in \[0, 65535\], got "abc" \(--port\)$/],
    [["--endpoint", "localhost:8000"], /^endpoints\[0\]\.url: expected an origin such as http/],
    [["--set", "limits.attempts=2"], /^--set: expected a key that exists, .* did you mean limits\.attemptsMax\?/],
    [["--config", "/nowhere.yaml"], /expected a readable file, got \/nowhere\.yaml: no such file/],
    [["--profile", "nobody"], /expected one of .*gnomon.*, got the unknown profile "nobody"/],
    [["--profile", "gnomon", "--routing-policy", "weighted"], /^--profile: expected to be alone/],
    [["--routing-cache-weight", "1"], /^--routing-cache-weight was removed; use --routing-scorers "prefix-affinity:3,/],
    [["--routing-load-weight", "1"], /^--routing-load-weight was removed; use --routing-scorers/],
    [
      ["--routing-scorers", "queue-depth:0"],
      /^routing-scorers\[0\]\.weight: expected a number above 0, got 0 \(--routing-scorers\)$/,
    ],
    [["--routing-scorers", "queue-depth:1,queue-depth:1"], /^routing-scorers\[1\]\.name: "queue-depth" is there twice/],
    [["--routing-policy", "wieghted"], /did you mean weighted\? \(--routing-policy\)$/],
    [["emulate", "--count", "0"], /^emulate\.count: expected an integer in \[1, 64\], got 0 \(--count\)$/],
    [["emulate", "--time-scale", "fast"], /^emulate\.timeScale: expected a number in \(0, 1000\], got "fast"/],
    [["rollout", "show"], /^expected one of plan, judge, .*status, .*, got the unknown command "show"/],
    [["explain"], /expected one of --state, --decision and --trace/],
    [["explain", "--state", "/nowhere.json"], /\/nowhere\.json: it cannot be read/],
    [["drive"], /./],
  ];
  for (const [argv, pattern] of cases) {
    const { code, lines } = await refused(...argv);
    assert.deepEqual([code, lines.length], [2, 1], `${argv.join(" ")}: ${lines.join("\n")}`);
    assert.match(lines[0]!, pattern);
    assert.equal(lines[0]!.includes("\n"), false);
  }
});

test("engines that cannot start say why: a bad file ends with 2, a port in use with 1", async (t) => {
  const { server, port } = await takenPort();
  t.after(() => server.close());
  const unknown = await refused("emulate", "--engine", "h100");
  assert.deepEqual([unknown.code, unknown.lines.length], [2, 1]);
  assert.match(unknown.lines[0]!, /^engine: expected one of .*; did you mean h100-llama-3\.1-8b\?$/);
  const busy = await refused("emulate", "--count", "1", "--port-base", String(port));
  assert.equal(busy.code, 1);
  assert.match(
    busy.lines[0]!,
    /^emulated engine at 127\.0\.0\.1:\d+: the address is in use; choose other ports with --port-base$/,
  );
});

test("several wrong things are all reported", async () => {
  const { code, lines } = await refused("--port", "-1", "--tokenizer", "magic", "--profile", "nobody", "--set", "x=1");
  assert.equal(code, 2);
  assert.equal(lines.length, 4, lines.join("\n"));
});

test("a file that cannot be opened is named with the reason, and ends with 1", async () => {
  const { code, lines } = await refused("rollout", "start", "/nowhere/rollout.yaml");
  assert.deepEqual({ code, lines }, { code: 1, lines: ["/nowhere/rollout.yaml: no such file or directory"] });
});
