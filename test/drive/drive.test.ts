import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { drive } from "#drive/drive.ts";
import { DRIVE_DEFAULTS, type DriveOptions } from "#drive/options.ts";
import { reportTable } from "#drive/report-table.ts";
import { golden } from "../trace/import/read-all.ts";
import { temporaryFolder } from "../trace/import/temporary-folder.ts";
import { promptOf, startStubEngine, type StubEngine, type StubOptions } from "./stub-engine.ts";

interface Setting {
  readonly stub?: StubOptions;
  readonly engines?: number;
  readonly options?: Partial<DriveOptions>;
}

async function driven(workload: string, { stub = {}, engines = 1, options = {} }: Setting) {
  const stubs = await Promise.all(Array.from({ length: engines }, () => startStubEngine(stub)));
  try {
    const urls = stubs.map(({ url }) => url);
    const report = await drive({ ...DRIVE_DEFAULTS, urls, workload, timeScale: 0.001, ...options });
    return { report, stubs, requests: stubs.flatMap((engine: StubEngine) => engine.requests) };
  } finally {
    await Promise.all(stubs.map((engine) => engine.close()));
  }
}

async function specFile(folder: string, spec: object): Promise<string> {
  const file = join(folder, "spec.yaml");
  await writeFile(file, JSON.stringify(spec));
  return file;
}

const GROUP = { name: "g", userTokens: 24, outputTokens: 4, prefixTokens: 64 };

describe("drive", () => {
  for (const [workload, count] of [
    ["mooncake.jsonl", 8],
    ["azure.csv", 3],
    ["weka", 10],
    ["lmcache", 4],
    ["token-ids.jsonl", 2],
  ] as const)
    it(`sends every request once and accounts for it: ${workload}`, async () => {
      const { report, requests } = await driven(golden(workload), { engines: 2 });
      assert.equal(requests.length, count);
      assert.deepEqual([report.requests.sent, report.requests.ok, report.requests.failed], [count, count, 0]);
      assert.deepEqual(report.outcomes, { ok: count });
      assert.equal(
        report.endpoints.reduce((sum, { requests }) => sum + requests, 0),
        count,
      );
      assert.equal(report.model, "stub-model");
      const wanted = requests.reduce((sum, { body }) => sum + Number(body["max_tokens"]), 0);
      assert.equal(report.tokens.output, wanted);
      for (const { body } of requests)
        assert.deepEqual([body["min_tokens"], body["ignore_eos"]], [body["max_tokens"], true]);
    });

  it("sends the recorded text as a chat message, and the session in its header", async () => {
    const { requests } = await driven(golden("lmcache"), { options: { api: "chat" } });
    const first = requests.find(({ headers }) => headers["x-session-id"] === "s-1");
    assert.equal(first?.path, "/v1/chat/completions");
    assert.deepEqual(first.body["messages"], [{ role: "user", content: "user: list the files of the project\n" }]);
  });

  it("asks for as many answers as there were, and of each prompt of a list", async () => {
    const lengths = { promptTokens: 90, outputTokens: 36, blockTokens: 16, blockIds: [1, 2, 3] };
    const rows = [
      { arrivalMicros: 0, ...lengths, sequences: 4, tokensByPrompt: [60, 30] },
      { arrivalMicros: 1, ...lengths, sequences: 3 },
    ];
    await using folder = await temporaryFolder();
    const workload = join(folder.path, "list.jsonl");
    const lines = [{ format: "gnomon-workload", version: 1 }, ...rows].map((row) => JSON.stringify(row));
    await writeFile(workload, `${lines.join("\n")}\n`);
    const { requests } = await driven(workload, { options: { promptForm: "tokens" } });
    const bodies = requests.map(({ body }) => body).sort((a, b) => Number(a["n"]) - Number(b["n"]));
    const [first, other] = bodies[0]!["prompt"] as number[][];
    assert.deepEqual([bodies[0]!["n"], bodies[0]!["max_tokens"], first!.length, other!.length], [2, 9, 60, 30]);
    assert.deepEqual([bodies[1]!["n"], bodies[1]!["max_tokens"], bodies[1]!["min_tokens"]], [3, 12, 12]);
    assert.deepEqual((bodies[1]!["prompt"] as number[]).slice(0, 48), first!.slice(0, 48));
    const chats = await driven(workload, { options: { api: "chat" } });
    const asked = chats.requests.map(({ body }) => Number(body["n"])).sort((a, b) => a - b);
    assert.deepEqual(asked, [3, 4]);
  });

  it("sends exact token ids when asked", async () => {
    const { requests } = await driven(golden("token-ids.jsonl"), { options: { promptForm: "tokens" } });
    assert.deepEqual(
      requests[0]?.body["prompt"],
      Array.from({ length: 40 }, (_, i) => 1_000 + i),
    );
  });

  it("waits for an answer before the session's next turn", async () => {
    const { requests } = await driven(golden("spec.yaml"), {
      stub: { tokenMillis: 1 },
      options: { fit: { ...DRIVE_DEFAULTS.fit, outputTokensMax: 3 } },
    });
    const prompts = new Map<string, string>();
    for (const { headers, body } of requests) {
      const session = String(headers["x-session-id"] ?? "");
      if (session === "") continue;
      assert.ok(promptOf(body).startsWith(prompts.get(session) ?? ""), "a turn extends the prompt before it");
      prompts.set(session, promptOf(body));
    }
    assert.ok(prompts.size > 5);
  });

  it("holds back at its concurrency and reports it", async () => {
    await using folder = await temporaryFolder();
    const spec = { conversations: 30, arrivals: { process: "together" }, groups: [GROUP] };
    let [inFlight, most] = [0, 0];
    const stub: StubOptions = {
      tokenMillis: 2,
      answer: (_, response) => {
        most = Math.max(most, ++inFlight);
        response.on("close", () => inFlight--);
        return false;
      },
    };
    const { report } = await driven(await specFile(folder.path, spec), { stub, options: { concurrency: 3 } });
    assert.ok(most <= 3, `${most} at once`);
    assert.equal(report.requests.ok, 30);
    assert.equal(report.drift.heldByConcurrency, 27);
  });

  it("runs so many conversations at once as asked", async () => {
    await using folder = await temporaryFolder();
    const spec = { conversations: 12, arrivals: { process: "together" }, groups: [{ ...GROUP, turns: 3 }] };
    const active = new Set<string>();
    const turns = new Map<string, number>();
    let most = 0;
    const stub: StubOptions = {
      answer: ({ headers }, response) => {
        const session = String(headers["x-session-id"]);
        active.add(session);
        most = Math.max(most, active.size);
        const turn = (turns.get(session) ?? 0) + 1;
        turns.set(session, turn);
        if (turn === 3) response.on("finish", () => active.delete(session));
        return false;
      },
    };
    const { report } = await driven(await specFile(folder.path, spec), { stub, options: { activeSessionsMax: 2 } });
    assert.ok(most <= 2, `${most} at once`);
    assert.equal(report.requests.ok, 36);
    assert.equal(report.drift.sessionsHeld, 10);
  });

  it("closes the asked share on purpose, the same ones each time, and calls it no failure", async () => {
    await using folder = await temporaryFolder();
    const spec = {
      conversations: 40,
      arrivals: { process: "constant", ratePerSecond: 1 },
      groups: [{ ...GROUP, outputTokens: 6 }],
    };
    const file = await specFile(folder.path, spec);
    const options = { abortFraction: 0.5, requestsOut: join(folder.path, "out.jsonl") };
    const { report, stubs } = await driven(file, { stub: { tokenMillis: 20 }, options });
    const aborted = await abortedIn(options.requestsOut);
    assert.equal(report.requests.aborted, aborted.length);
    assert.ok(aborted.length > 8 && aborted.length < 32, `${aborted.length} of 40`);
    assert.equal(report.requests.failed, 0);
    assert.equal(report.requests.ok + report.requests.aborted, 40);
    assert.ok((stubs[0]?.closedEarly() ?? 0) > 0, "the engine saw the connections close");
    await driven(file, { stub: { tokenMillis: 20 }, options });
    assert.deepEqual(await abortedIn(options.requestsOut), aborted);
  });

  it("shares requests over the URLs where no gateway names who served, and keeps apart those without a name", async () => {
    const plain = await driven(golden("mooncake.jsonl"), { engines: 2 });
    const urls = plain.stubs.map(({ url }) => url).sort();
    assert.deepEqual(
      plain.report.endpoints.map(({ endpoint, requests }) => [endpoint, requests]),
      urls.map((url) => [url, 4]),
    );
    let n = 0;
    const stub: StubOptions = {
      headers: { "x-gnomon-endpoint": "pod" },
      answer: (_, response) => {
        if (n++ > 0) return false;
        response.destroy();
        return true;
      },
    };
    const told = await driven(golden("mooncake.jsonl"), { stub });
    const rows = told.report.endpoints.map(({ endpoint, requests, failed }) => [endpoint, requests, failed]);
    assert.deepEqual(rows, [
      ["(not reported)", 1, 1],
      ["pod", 7, 0],
    ]);
    assert.deepEqual(told.report.imbalance, { mean: null, max: null });
  });

  it("counts failures by kind, and only the unexpected ones against the run", async () => {
    let n = 0;
    const stub: StubOptions = {
      answer: (_, response) => {
        if (n++ % 2 === 0) return false;
        response
          .writeHead(n % 4 === 0 ? 503 : 429, { "content-type": "application/json" })
          .end(JSON.stringify({ error: { message: `try ${n}` } }));
        return true;
      },
    };
    const { report } = await driven(golden("mooncake.jsonl"), { stub, options: { expected: new Set(["http-429"]) } });
    assert.deepEqual(report.outcomes, { ok: 4, "http-429": 2, "http-503": 2 });
    assert.deepEqual([report.requests.failed, report.requests.expectedFailures], [2, 2]);
    assert.deepEqual(report.failureMessages, { "http-429": "try 2", "http-503": "try 4" });
  });

  it("keeps no message about a recorded text, which it might quote", async () => {
    await using folder = await temporaryFolder();
    const requestsOut = join(folder.path, "out.jsonl");
    const stub: StubOptions = {
      answer: ({ body }, response) => {
        response.writeHead(400, { "content-type": "application/json" });
        response.end(JSON.stringify({ error: { message: promptOf(body) } }));
        return true;
      },
    };
    const { report } = await driven(golden("lmcache"), { stub, options: { requestsOut } });
    assert.deepEqual([report.requests.failed, report.failureMessages], [4, {}]);
    assert.doesNotMatch(await readFile(requestsOut, "utf8"), /list the files/);
  });

  it("reports hit ratios by engine and by gateway over the prompts that were answered", async () => {
    const stub = { cachedTokens: 10, headers: { "x-gnomon-endpoint": "pod", "x-gnomon-hit-tokens": "20" } };
    const { report } = await driven(golden("mooncake.jsonl"), { stub });
    const prompt = 1300 + 600 + 1536 + 1400 + 100 + 512 + 700 + 1025;
    assert.equal(report.tokens.prompt, prompt);
    assert.equal(report.hitRatio.engine, 80 / prompt);
    assert.equal(report.hitRatio.gateway, 160 / prompt);
    assert.deepEqual(report.hitEstimate, {
      requests: 8,
      expectedTokens: 160,
      cachedTokens: 80,
      sumError: 1,
      tokensErrorMean: 10,
      tokensErrorMax: 10,
      exactShare: 0,
    });
    assert.match(
      reportTable(report),
      /hit estimate +the gateway is off by \+100\.0 % in sum, 10\.0 tokens a request; 0\.0 % of 8 exact/,
    );
    assert.deepEqual(
      report.endpoints.map(({ endpoint, share }) => [endpoint, share]),
      [["pod", 1]],
    );
  });

  it("stops when asked, lets what is in flight end or closes it, and reports what it has", async () => {
    const engine = await startStubEngine({ tokenMillis: 10 });
    const options = { ...DRIVE_DEFAULTS, urls: [engine.url], workload: golden("mooncake.jsonl"), timeScale: 0.01 };
    const start = performance.now();
    const report = await drive(options, (control) => {
      const poll = setInterval(() => {
        if (control.progress().inFlight === 0) return;
        clearInterval(poll);
        control.cancel();
      }, 20);
    });
    await engine.close();
    assert.ok(performance.now() - start < 60_000);
    assert.ok(report.interrupted && report.requests.cancelled > 0);
    const { sent, ok, aborted, cancelled, failed } = report.requests;
    assert.equal(sent, ok + aborted + cancelled + failed);
    assert.equal(failed, 0);
  });

  it("sends nothing after the duration", async () => {
    await using folder = await temporaryFolder();
    const spec = { conversations: 10_000, arrivals: { process: "constant", ratePerSecond: 0.2 }, groups: [GROUP] };
    const { report } = await driven(await specFile(folder.path, spec), { options: { durationSeconds: 0.2 } });
    // One every 5 ms of scaled time, the first at once; fewer where a busy machine began late.
    const { sent, ok } = report.requests;
    assert.ok(sent <= 0.2 / 0.005 + 1, `${sent} sent`);
    assert.equal(ok, sent);
  });

  it("writes a line a request, without the prompt", async () => {
    await using folder = await temporaryFolder();
    const requestsOut = join(folder.path, "out.jsonl");
    const { report } = await driven(golden("lmcache"), { options: { requestsOut } });
    const text = await readFile(requestsOut, "utf8");
    const lines = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.equal(lines.length, report.requests.sent);
    assert.ok(
      lines.every((line) => line["outcome"] === "ok" && Number(line["endMicros"]) >= Number(line["sentMicros"])),
    );
    assert.doesNotMatch(text, /list the files/);
  });
});

async function abortedIn(file: string): Promise<number[]> {
  const lines = (await readFile(file, "utf8")).trim().split("\n");
  const records = lines.map((line) => JSON.parse(line) as { index: number; outcome: string });
  return records
    .filter(({ outcome }) => outcome === "aborted")
    .map(({ index }) => index)
    .sort((a, b) => a - b);
}
