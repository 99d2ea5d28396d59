import { receiveMessageOnPort } from "node:worker_threads";
import { pino } from "pino";
import { followClock } from "#live/clock.ts";
import { EndpointDirectory } from "#live/discovery/endpoint-directory.ts";
import { ModelRewrites, type RewriteRules } from "#live/discovery/workload-rules.ts";
import { createGateway, type Gateway } from "#live/gateway.ts";
import { RouterTap } from "#live/router-tap.ts";
import { type PathWarmUpOptions, warmUpPath } from "#live/warm-up/warm-up-path.ts";
import { passOn } from "#live/worker/inner-request.ts";
import { RingHangs } from "#live/worker/ring-hangs.ts";
import { RingSeat } from "#live/worker/ring-seat.ts";
import { liveKeys } from "../live-keys.ts";
import { liveTls } from "../live-tls.ts";
import { openTracing } from "../live-tracing.ts";
import { LiveWorkloads } from "../live-workloads.ts";
import { newRouter } from "../live-router.ts";
import { gatewayLimits } from "../policy/live-policy.ts";
import { profileChooser } from "../profile-chooser.ts";
import { openTokenizers, type Tokenizers } from "../tokenizers.ts";
import { identity, towardsClients } from "../towards-clients.ts";
import { dividedLimits } from "./divided-limits.ts";
import { follow } from "./followed-directory.ts";
import { ringObserver } from "./ring-observer.ts";
import type { FromWorker, ToWorker, WorkerCounts, WorkerPolicy, WorkerWork } from "./worker-message.ts";

/** Ids of requests of one worker are never those of another one. */
const SEQUENCES_PER_WORKER = 2 ** 40;

/** A worker's thread: carries requests between clients and engines, and asks the first thread where they go. */
export async function runWorker(work: WorkerWork): Promise<void> {
  followClock(work.clockOrigin);
  const { config, port, memory, secret } = work;
  const directory = new EndpointDirectory();
  const seat = new RingSeat(memory, (endpoint) => {
    if (directory.get(endpoint) === undefined) receiveAll();
  });
  const hangs = new RingHangs(seat.outbox);
  hangs.judged(work.hung);
  const observe = ringObserver(seat.outbox);
  follow(directory, work.endpoints);
  const log = pino({ level: "silent" });
  // Their files are reported on by the first thread.
  const tls = liveTls(config, () => {});
  const tracing = await openTracing(config, process.env);
  const tokenizers = await openTokenizers({
    config,
    environment: process.env,
    secret,
    directory,
    connections: tls.connections,
    log,
    blockTokens: work.blockTokens,
  });
  const followed = followedPolicy(work, (name, spec) => observe.note({ kind: "profile", name, spec }));
  const keys = liveKeys(config, process.env, () => {});
  const path = { identity: identity(config, secret, followed), tokenizer: tokenizers.of };
  const gateway = createGateway({
    ...path,
    seat,
    hangs,
    directory,
    observe,
    profileOf: (model, asked) => followed.chooser(model, asked),
    rewrites: followed.workloads.rewrites,
    ...towardsClients(config, undefined, { ...tls, ...tracing }),
    limits: dividedLimits(gatewayLimits(work.policy.config), work.among),
    clientAuth: keys.auth,
    others: passOn(work.inner),
    sequenceStart: work.number * SEQUENCES_PER_WORKER,
  });
  const counts = (): WorkerCounts => ({
    counters: gateway.counters,
    tokenizers: tokenizers.counts(),
    inFlight: gateway.inFlight(),
  });
  const changing = { directory, hangs, followed, gateway, tokenizers, work };
  const receive = (message: ToWorker): void => {
    if (message.kind === "count") {
      port.postMessage({ kind: "counted", question: message.question, counts: counts() } satisfies FromWorker);
    } else if (message.kind === "drain") void drain(message);
    else change(changing, message);
  };
  const drain = async (times: Extract<ToWorker, { kind: "drain" }>): Promise<void> => {
    const { requestsCut } = await gateway.close(times.graceMillis, times.noticeMillis);
    await Promise.all([keys.stop(), tls.stop(), tracing.stop()]);
    await tokenizers.close();
    port.postMessage({ kind: "drained", requestsCut, counts: counts() } satisfies FromWorker);
    port.close();
  };
  /** The first thread sends what changed before a decision that rests on it. */
  const receiveAll = (): void => {
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      receive(next.message as ToWorker);
    }
  };
  port.on("message", receive);
  if (config.tokenizer.kind !== "vllm" && config.listen.warmUpMillis > 0) await warm(work, path);
  await listen(gateway, work);
}

async function listen(gateway: Gateway, { address: { host, port: number }, port }: WorkerWork): Promise<void> {
  try {
    await gateway.listen(host, number, { shared: true });
    port.postMessage({ kind: "listening" } satisfies FromWorker);
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    port.postMessage({ kind: "refused", message, code } satisfies FromWorker);
  }
}

interface Followed {
  chooser: ReturnType<typeof profileChooser>;
  readonly profileHeader: () => string | undefined;
  readonly workloads: LiveWorkloads;
  change(policy: WorkerPolicy): void;
  rewrite(rules: RewriteRules): void;
}

function followedPolicy(work: WorkerWork, define: Parameters<typeof profileChooser>[1]): Followed {
  let { policy } = work;
  const workloads = new LiveWorkloads(work.config.discovery.workloads !== undefined);
  const followed: Followed = {
    chooser: profileChooser(policy, define),
    workloads,
    profileHeader: () => {
      const { profilesAllowed, profileHeader } = policy.config.routing;
      return profilesAllowed.length === 0 ? undefined : profileHeader;
    },
    change: (changed) => {
      policy = changed;
      followed.chooser = profileChooser(changed, define);
    },
    // Priorities are the first thread's: it decides.
    rewrite: (rules) => workloads.set({ priorities: {}, rewrites: ModelRewrites.from(rules) }),
  };
  followed.rewrite(work.rewrites);
  return followed;
}

interface Changing {
  readonly directory: EndpointDirectory;
  readonly hangs: RingHangs;
  readonly followed: Followed;
  readonly gateway: Gateway;
  readonly tokenizers: Tokenizers;
  readonly work: WorkerWork;
}

type Change = Exclude<ToWorker, { kind: "count" | "drain" }>;

function change(changing: Changing, message: Change): void {
  const { directory, hangs, followed, gateway, tokenizers, work } = changing;
  switch (message.kind) {
    case "endpoints":
      return follow(directory, message.endpoints);
    case "hung":
      return hangs.judged(message.endpoints);
    case "rewrites":
      return followed.rewrite(message.rewrites);
    case "block-size":
      return tokenizers.resizeBlocks(message.blockTokens);
    case "policy":
      followed.change(message.policy);
      gateway.changeLimits(dividedLimits(gatewayLimits(message.policy.config), work.among));
  }
}

/** The path through sockets, on a router of this thread that is thrown away and lets all in. */
async function warm({ config, settings }: WorkerWork, path: Pick<PathWarmUpOptions, "identity" | "tokenizer">) {
  const { admission: _, ...free } = settings;
  const tap = new RouterTap(newRouter(free));
  const continuesStreams = config.clients.continueStreams;
  await warmUpPath({ ...path, continuesStreams, tap, budgetMillis: config.listen.warmUpMillis });
}
