import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { engineDefaults } from "#engine/config.ts";
import type { Emulator } from "#emulator/server.ts";
import { startAs } from "./captures.ts";
import { parseResponse } from "./http-message.ts";
import { isWhole, requestBytes, sendRaw } from "./raw-client.ts";
import { until } from "./until.ts";

const STEADY = { kind: "coefficients", baseMicros: 5_000, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;
const LONG = { prompt: Array.from({ length: 300 }, () => 65), max_tokens: 4_000, ignore_eos: true };

describe("a client that goes away", () => {
  let emulator: Emulator;
  before(async () => {
    const engine = engineDefaults({ blockTokens: 32, kvBlocks: 2_048, stepTime: STEADY });
    emulator = await startAs("18109", { engine, timeScale: 1 });
  });
  after(() => emulator.close());

  for (const [how, leave] of [
    ["by closing", (socket: Socket) => socket.destroy()],
    ["by resetting", (socket: Socket) => socket.resetAndDestroy()],
    ["by half-closing", (socket: Socket) => socket.end()],
  ] as const) {
    for (const stream of [true, false]) {
      test(`${how} aborts a ${stream ? "stream" : "body"}: blocks come free, the prompt stays cached`, async () => {
        const { arrived, aborted } = emulator.stats();
        const socket = connect(emulator.port, "127.0.0.1");
        socket.on("error", () => undefined);
        socket.resume();
        socket.write(requestBytes("POST", "/v1/completions", { ...LONG, stream }));
        await until("it runs", () => emulator.engine.gauges.running === 1);
        leave(socket);
        await until("nothing runs", () => emulator.engine.gauges.running === 0 && emulator.stats().blocksUsed === 0);
        const stats = emulator.stats();
        assert.deepEqual([stats.arrived, stats.aborted], [arrived + 1, aborted + 1]);
        assert.equal(stats.inFlight, 0);
        const again = { ...LONG, max_tokens: 1 };
        const whole = parseResponse(
          await sendRaw(emulator.port, requestBytes("POST", "/v1/completions", again), isWhole),
        );
        assert.match(whole.chunks[0] ?? "", /"cached_tokens":288/);
      });
    }
  }

  test("is not counted as a success", async () => {
    const page = parseResponse(await sendRaw(emulator.port, requestBytes("GET", "/metrics"), isWhole)).chunks[0] ?? "";
    assert.match(page, /request_success_total\{engine="0",finished_reason="abort",model_name="tiny"\} 0\.0/);
  });
});
