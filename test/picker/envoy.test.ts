import { AS_ASKED } from "#live/routing/ask.ts";
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import type { Emulator } from "#emulator/server.ts";
import { ModelRewrites } from "#live/discovery/workload-rules.ts";
import { PICKER_RULES } from "#picker/picker-rules.ts";
import { type PickerServer, startPicker } from "#picker/picker-server.ts";
import { startAs } from "../emulator/captures.ts";
import { until } from "../live/discovery/fleet-under-test.ts";
import { NEVER_OPEN, type Rig, startRig } from "../live/gateway/rig.ts";
import { EXTERNAL_PROCESSOR } from "./protocol.ts";
import { ProxyRig, TLS } from "./proxy.ts";
import { freePort, listening, NO_ENVOY, onPorts, startEnvoy } from "./real-envoy.ts";

const skip = NO_ENVOY;
const CONFIG = join(import.meta.dirname, "../../deploy/envoy.yaml");
const HI = [{ role: "user", content: "hi there" }] as const;

const POOL = { name: "p", group: "inference.networking.k8s.io" };
const RENAMED = new ModelRewrites(
  [
    {
      spec: {
        poolRef: POOL,
        rules: [{ matches: [{ model: { value: "asked-for" } }], targets: [{ modelRewrite: "tiny" }] }],
      },
    },
  ],
  POOL,
);

/** Emulated engines, a picker over a real router, and a real Envoy in front of them. */
class Setting {
  engines: Emulator[] = [];
  rig!: Rig;
  picker!: PickerServer;
  url = "";
  pickerPort = 0;

  static async start(t: TestContext, change: (config: string) => string = (config) => config): Promise<Setting> {
    const setting = new Setting();
    while (setting.engines.length < 3) setting.engines.push(await startAs("18101", { naturalTokensMean: 20 }));
    const urls = setting.engines.map(({ url }) => url);
    setting.rig = await startRig([], {
      urls,
      models: ["tiny"],
      breaker: NEVER_OPEN,
      inForce: { ...AS_ASKED, rewrites: RENAMED },
    });
    setting.pickerPort = await freePort();
    await setting.startPicker();
    const port = await freePort();
    const ports = [
      [8000, port],
      [9002, setting.pickerPort],
      ...urls.map((url, i) => [8101 + i, Number(new URL(url).port)] as const),
    ] as const;
    const envoy = startEnvoy(t, onPorts(change(readFileSync(CONFIG, "utf8")), ports));
    setting.url = `http://127.0.0.1:${port}`;
    t.after(async () => {
      envoy.kill("SIGKILL");
      await once(envoy, "exit");
      await setting.picker.stop(1_000);
      await setting.rig.close();
      for (const engine of setting.engines) await engine.close().catch(() => {});
    });
    await listening(port);
    return setting;
  }

  async startPicker(): Promise<void> {
    this.picker = await startPicker({
      gateway: this.rig.gateway.shared,
      routes: this.rig.gateway.routes,
      host: "127.0.0.1",
      port: this.pickerPort,
      healthPort: undefined,
      tls: undefined,
      fallbacksMax: 2,
      rules: PICKER_RULES,
      ready: () => true,
    });
  }

  get client(): OpenAI {
    return new OpenAI({ baseURL: `${this.url}/v1`, apiKey: "sk-test", maxRetries: 0 });
  }

  ask(): Promise<OpenAI.ChatCompletion> {
    return this.client.chat.completions.create({ model: "tiny", messages: [...HI] });
  }
}

const BUFFERED = (config: string): string =>
  config
    .replace("request_body_mode: FULL_DUPLEX_STREAMED", "request_body_mode: BUFFERED")
    .replace("response_body_mode: FULL_DUPLEX_STREAMED", "response_body_mode: STREAMED")
    .replaceAll("trailer_mode: SEND", "trailer_mode: SKIP")
    .replace("failure_mode_allow: false", "failure_mode_allow: true");

for (const [mode, change] of [
  ["full duplex", undefined],
  ["buffered", BUFFERED],
] as const) {
  test(`the openai client through a real Envoy, ${mode}`, { skip, timeout: 60_000 }, async (t) => {
    const setting = await Setting.start(t, change);
    const whole = await setting.ask();
    const stream = await setting.client.chat.completions.create({
      model: "tiny",
      messages: [...HI],
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole.choices[0]?.message.content);
    await until("both ended", () => setting.rig.summaries.length === 2);
    const [first, second] = setting.rig.summaries;
    assert.deepEqual([first!.outputTokens, second!.outputTokens], [usage?.completion_tokens, usage?.completion_tokens]);
    assert.ok(second!.ttftMicros !== undefined && second!.promptTokens === usage?.prompt_tokens);
    await assert.rejects(
      setting.client.chat.completions.create({ model: "nope", messages: [...HI] }),
      OpenAI.NotFoundError,
    );
    const renamed = await setting.client.chat.completions.create({ model: "asked-for", messages: [...HI] });
    assert.equal(renamed.model, "asked-for");
    assert.equal(renamed.choices[0]?.message.content, text);
    const chunks = await setting.client.chat.completions.create({
      model: "asked-for",
      messages: [...HI],
      stream: true,
    });
    const names = new Set<string>();
    for await (const { model } of chunks) names.add(model);
    assert.deepEqual([...names], ["asked-for"]);
    const long = [{ role: "user" as const, content: "word ".repeat(60_000) }];
    await setting.client.chat.completions
      .create({ model: "tiny", messages: long, max_completion_tokens: 1 })
      .catch((error) => {
        assert.ok(error instanceof OpenAI.BadRequestError, "only the engine may refuse its length");
      });
  });
}

test(
  "an engine that is killed: Envoy takes the fallback, and the router learns which",
  { skip, timeout: 60_000 },
  async (t) => {
    const setting = await Setting.start(t);
    await setting.engines[0]!.close();
    for (let i = 0; i < 5; i++) await setting.ask();
    await until("ended", () => setting.rig.summaries.length === 5);
    assert.ok(setting.rig.summaries.every(({ outcome, endpoint }) => outcome === "ok" && endpoint !== "a"));
    assert.ok(setting.rig.gateway.counters.pickerMoved > 0);
  },
);

test(
  "a picker that is gone: closed as configured, open as configured, and back when it is",
  { skip, timeout: 60_000 },
  async (t) => {
    for (const [change, status] of [
      [undefined, 500],
      [BUFFERED, 200],
    ] as const) {
      const setting = await Setting.start(t, change);
      await setting.ask();
      await setting.picker.stop(0);
      const body = JSON.stringify({ model: "tiny", messages: HI });
      const init = { method: "POST", headers: { "content-type": "application/json" }, body };
      assert.equal((await fetch(`${setting.url}/v1/chat/completions`, init)).status, status);
      await setting.startPicker();
      const back = async (): Promise<boolean> => {
        const answer = await fetch(`${setting.url}/v1/chat/completions`, init);
        await answer.text();
        return answer.status === 200 && answer.headers.has("x-gnomon-endpoint");
      };
      let isBack = false;
      for (let i = 0; i < 50 && !isBack; i++) {
        isBack = await back();
        if (!isBack) await new Promise((resolve) => setTimeout(resolve, 100));
      }
      assert.ok(isBack);
    }
  },
);

test(
  "Envoy's own health check follows readiness, on the processor's port over TLS and on the probes' port",
  { skip, timeout: 60_000 },
  async (t) => {
    let ready = false;
    const proxy = await ProxyRig.start(t, {}, { ready: () => ready, healthPort: 0, tls: TLS });
    const { picker } = proxy;
    const admin = await freePort();
    const checked = (port: number, tls: boolean) => ({
      name: String(port),
      type: "STATIC",
      connect_timeout: "1s",
      typed_extension_protocol_options: {
        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
          "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
          explicit_http_config: { http2_protocol_options: {} },
        },
      },
      ...(tls && {
        transport_socket: {
          name: "envoy.transport_sockets.tls",
          typed_config: {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
          },
        },
      }),
      load_assignment: {
        cluster_name: String(port),
        endpoints: [
          { lb_endpoints: [{ endpoint: { address: { socket_address: { address: "127.0.0.1", port_value: port } } } }] },
        ],
      },
      health_checks: [
        {
          timeout: "5s",
          interval: "0.1s",
          no_traffic_interval: "0.1s",
          unhealthy_threshold: 1,
          healthy_threshold: 1,
          grpc_health_check: { service_name: EXTERNAL_PROCESSOR },
        },
      ],
    });
    const config = {
      admin: { address: { socket_address: { address: "127.0.0.1", port_value: admin } } },
      static_resources: { clusters: [checked(picker.port, true), checked(picker.healthPort!, false)] },
    };
    const envoy = startEnvoy(t, JSON.stringify(config));
    t.after(async () => {
      envoy.kill("SIGKILL");
      await once(envoy, "exit");
    });
    const healthy = async (): Promise<string> => {
      try {
        const stats = await (await fetch(`http://127.0.0.1:${admin}/stats?filter=membership_(healthy|total)`)).text();
        const counts = [...stats.matchAll(/^cluster\.(\d+)\.membership_(\w+): (\d+)$/gm)];
        return counts.map(([, , what, count]) => `${what} ${count}`).join();
      } catch {
        return "";
      }
    };
    for (const now of [true, false, true]) {
      ready = now;
      const each = `healthy ${Number(now)},total 1`;
      for (let seen = ""; seen !== `${each},${each}`;) {
        seen = await healthy();
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  },
);
