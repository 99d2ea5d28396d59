/** One bench: a program of this folder by the name of its file. */
export interface Bench {
  readonly about: string;
  /** The page in bench/pages that has its figures. */
  readonly page: string;
  /** Arguments that make it short, given when it is one of all. */
  readonly short?: readonly string[];
  /** Left out unless it is named: takes long, or needs data that is not in the repository. */
  readonly onDemand?: true;
  /** Variables that must name folders or programs which are not in the repository. */
  readonly needs?: readonly ("BENCH_TRACES" | "BENCH_SHARED" | "BENCH_TOKENIZER")[];
}

export const BENCHES: Readonly<Record<string, Bench>> = {
  gateway: {
    about: "CPU per request and per streamed event, beside a bare proxy, nginx and other routers",
    page: "gateway-cost",
    short: ["--rounds", "3", "--millis", "700"],
  },
  young: {
    about: "CPU per request and event and p99 of a gateway since its start, beside a bare proxy and other routers",
    page: "young",
    short: ["--rounds", "1", "--seconds", "10", "--only", "2 KB"],
  },
  picker: {
    about: "CPU and p99 of a question to the endpoint picker since its start, beside llm-d's",
    page: "picker",
    short: ["--turns", "1", "--seconds", "2", "--only", "plain"],
  },
  decision: { about: "time of one decision, by endpoints and prompt length", page: "gateway-cost" },
  start: {
    about: "time, CPU and memory of a start, with estimated and with exact tokens",
    page: "gateway-cost",
    short: ["--rounds", "1"],
  },
  memory: {
    about: "memory of a gateway, with and without recorder and shadow, over an hour of mixed load",
    page: "memory",
    onDemand: true,
  },
  readme: {
    about: "README.md's commands in order on Node 20, 22, 24 and 26, with the time to the first answer",
    page: "gateway-cost",
    onDemand: true,
  },
  "perf-gate": {
    about: "CPU time of this commit beside its parent's, paired; ends with 1 above 20 %",
    page: "simulator-cost",
    onDemand: true,
  },
  simulate: {
    about: "the whole simulator: up to a million requests, peak memory",
    page: "simulator-cost",
    onDemand: true,
  },
  profiles: {
    about: "every routing profile on recorded workloads, simulated",
    page: "policies",
    onDemand: true,
    needs: ["BENCH_TRACES"],
  },
  contrasts: {
    about: "B3's policies against one another, the capped one among them",
    page: "lmetric",
    onDemand: true,
    needs: ["BENCH_TRACES"],
  },
  why: {
    about: "causes injected into traces of emulated engines: how often `gnomon why` names them first",
    page: "why",
    short: ["--seeds", "1", "--conversations", "150"],
    onDemand: true,
  },
  tap: {
    about: "how many decisions of other routers a tap in front of them attributes, and how many right",
    page: "tap",
    onDemand: true,
  },
  reproduce: {
    about:
      "sglang-router, vllm-router, smg and llm-d's picker observed by `gnomon tap`: how much of them a policy explains",
    page: "reproduce",
    onDemand: true,
  },
  "why-live": {
    about: "the same over sockets: causes put before a gateway and emulated engines, also under recorded workloads",
    page: "why",
    onDemand: true,
    needs: ["BENCH_TRACES"],
  },
  tenants: {
    about: "VTC and its variants where one tenant asks for most, simulated",
    page: "tenants",
    onDemand: true,
  },
  "default-choice": {
    about: "candidates for the default by a rule, on choosing halves of many cases, then held out",
    page: "default-choice",
    onDemand: true,
    needs: ["BENCH_TRACES"],
  },
  "live-policies": {
    about: "policies over sockets before emulated engines of four kinds, held-out workloads; an hour",
    page: "live-policies",
    onDemand: true,
    needs: ["BENCH_TRACES"],
  },
  joining: {
    about: "who gets what while engines join cold, are slow, die and come back, simulated",
    page: "joining",
    onDemand: true,
    needs: ["BENCH_TRACES"],
  },
  agents: {
    about: "agent sessions in a closed loop: how long until the whole of each is done, by policy",
    page: "agents",
    onDemand: true,
    needs: ["BENCH_TRACES"],
  },
  "closed-loop": {
    about: "live runs and what-if's prediction of them; minutes a profile",
    page: "differences",
    onDemand: true,
    needs: ["BENCH_TRACES"],
  },
  coverage: {
    about: "how often prediction intervals hold what happens, on drawn engines and recorded runs",
    page: "what-if",
    onDemand: true,
    needs: ["BENCH_SHARED"],
  },
  published: {
    about: "predictions from a model's config beside published measurements of vLLM",
    page: "without-a-trace",
    onDemand: true,
  },
  "engine-vs-vllm": {
    about: "the engine model against recorded vLLM runs",
    page: "engine-model",
    onDemand: true,
    needs: ["BENCH_SHARED"],
  },
  calibrate: {
    about: "fitted engines against recorded vLLM runs",
    page: "engine-model",
    onDemand: true,
    needs: ["BENCH_SHARED"],
  },
  queueing: { about: "the simulator's mean wait against theory", page: "engine-model", onDemand: true },
  goldens: { about: "results of another simulator (BLIS), again here, to the digit", page: "blis", onDemand: true },
  forecast: {
    about: "predicted against real TTFT and TPOT per decision, beside a moving average and boosted trees",
    page: "forecast",
    onDemand: true,
    needs: ["BENCH_TRACES", "BENCH_SHARED"],
  },
  rollout: {
    about: "rollouts of one profile against another: false alarms, time to find, bias of each design; minutes",
    page: "rollout",
    onDemand: true,
  },
  "rollout-drive": {
    about: "a rollout driven live: taken back, through killed gateways, by two gateways, adjusted",
    page: "rollout",
    onDemand: true,
  },
  sharing: {
    about: "several routers that learn of each other after a lag, or never, simulated",
    page: "sharing",
    onDemand: true,
    needs: ["BENCH_TRACES"],
  },
  replicas: { about: "several gateways over Redis: hits, balance, faults of Redis", page: "sharing", onDemand: true },
  "kv-hits": {
    about: "hits that were expected beside those of the engines: by KV events and by guessing",
    page: "kv-cache",
    onDemand: true,
    needs: ["BENCH_TOKENIZER"],
  },
  continuation: {
    about: "streams whose engines are killed: whole, with the same text, and how long they pause",
    page: "continuation",
    short: ["--streams", "200", "--engines", "4", "--tokens", "40", "--step-millis", "250"],
  },
  disaggregation: {
    about: "prompts computed elsewhere, live beside colocated and predicted",
    page: "disaggregation",
    onDemand: true,
    needs: ["BENCH_TRACES"],
  },
  faults: {
    about: "engines that fail in every way, overload, restarts, many streams, gateways that are replaced",
    page: "faults",
    onDemand: true,
  },
  parsers: {
    about: "bytes of others that are made to be dear: CPU by size, stretches of the event loop",
    page: "hostile-input",
    onDemand: true,
  },
  fuzz: {
    about: "clients, engines, publishers and other gateways that mean harm, beside well ones",
    page: "hostile-input",
    onDemand: true,
  },
  "fuzz-http": { about: "what clients that mean harm do to others over HTTP", page: "hostile-input", onDemand: true },
  structure: {
    about: "size of the source, names of types, spread of features, folders in cycles (--root CHECKOUT)",
    page: "structure",
    onDemand: true,
  },
};
