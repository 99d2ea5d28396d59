import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { ConfigError } from "#config/config-error.ts";
import type { Config } from "#config/schema.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { Intake } from "#live/base/intake.ts";
import type { ShareEvent, ShareStatus } from "#live/share/share-status.ts";
import type { LimitsStore } from "#live/share/kept-limits.ts";
import type { RedisLink } from "#live/share/redis-link.ts";
import type { OfferPolicy } from "../policy/policy-source.ts";
import { policyOver } from "../policy/policy.ts";
import { policyFromText } from "../policy/policy-admin.ts";
import { RedisSource } from "../policy/redis-source.ts";
import { secretOf } from "../process/secrets.ts";
import { LOG_START, type SharedStore } from "../state/shared-store.ts";
import { part } from "../assembly/part.ts";
import type { Environment, GatewayContext } from "../plan/gateway-context.ts";
import type { Breakers } from "../policy/live-router.ts";

/** This gateway's part among several that share what they do. */
export interface LiveShare {
  readonly link: RedisLink;
  /** What all of them keep there. */
  readonly store: SharedStore;
  /** This gateway, unlike any other, also one of its name that ran before. */
  readonly replica: string;
  /**
   * Begins to share; resolves when what others did is known, or after a moment without. A policy that Redis holds is
   * offered.
   */
  start(offer: OfferPolicy): Promise<void>;
  /** A policy that Redis holds and that was refused is offered again. */
  retryPolicy(): void;
  status(): ShareStatus;
  stop(): Promise<void>;
}

/** Signs of life within a lease. */
const ALIVE_PER_LEASE = 6;
/** What limits counted and no gateway wrote down is lost where all are killed at once. */
const LIMITS_WRITE_MILLIS = 1_000;
const REPLICA_BYTES = 3;
const FINGERPRINT_BYTES = 4;

/** The name of this gateway among the others; undefined where nothing is shared. Throws ConfigError. */
function replicaName({ share, prefix }: Config): string | undefined {
  if (share.url === undefined && share.cluster.length === 0 && share.sentinels.length === 0) return undefined;
  if (prefix.secretEnv === undefined) {
    const why = "gateways that share have the same key of block hashes";
    throw new ConfigError([`prefix.secretEnv: expected the name of an environment variable, got nothing: ${why}`]);
  }
  return share.replica ?? `${hostname()}-${process.pid}-${randomBytes(REPLICA_BYTES).toString("hex")}`;
}

/** Shares nothing before it is started. */
async function liveShare(
  config: Config,
  replica: string,
  parts: Pick<Sharing, "intake" | "secret" | "breakers"> & { readonly faults: FaultLog },
  environment: Environment,
): Promise<LiveShare> {
  const [{ FleetShare }, { RedisLink }] = await Promise.all([
    import("#live/share/fleet-share.ts"),
    import("#live/share/redis-link.ts"),
  ]);
  const { share } = config;
  const { leaseMillis, flushMillis, snapshotMillis, entriesMax, warmMillis } = share;
  const place = {
    ...share,
    username: secretOf(share.usernameEnv, environment),
    password: secretOf(share.passwordEnv, environment),
  };
  const link = new RedisLink({ place, stream: `${share.key}:news`, entriesMax, warmMillis, leaseMillis });
  const fingerprint = fingerprintOf(config, parts.secret);
  const limitsKey = `${share.key}:limits:${fingerprint.toString(16)}`;
  const store: LimitsStore = {
    read: () => link.readLimits(limitsKey),
    write: (text, keptMillis) => link.writeLimits(limitsKey, text, keptMillis),
  };
  const { limitsKeptMillis: keptMillis } = share;
  const fleet = new FleetShare({
    intake: parts.intake,
    link,
    replica,
    epoch: Math.round(performance.timeOrigin),
    fingerprint,
    ...(keptMillis > 0 && { limits: { store, keptMillis, writeMillis: LIMITS_WRITE_MILLIS } }),
    flushMillis,
    snapshotMillis,
    leaseMillis,
    aliveMillis: leaseMillis / ALIVE_PER_LEASE,
    report: (event) => parts.faults.report(faultOf(event)),
  });
  parts.breakers.add((endpoint, change) => fleet.breakerChanged(endpoint, change));
  const policy = policySource(config, link, environment);
  return {
    link,
    replica: `${replica}/${Math.round(performance.timeOrigin).toString(36)}`,
    store: {
      read: (name) => link.readShared(`${share.key}:${name}`),
      replace: (name, revision, text) => link.replaceShared(`${share.key}:${name}`, revision, text),
      append: (name, text, textsMax) => link.appendShared(`${share.key}:${name}`, text, textsMax),
      logEnd: async (name) => (await link.lastShared(`${share.key}:${name}`)) ?? LOG_START,
      readLog: (name, after, textsMax) => link.readSharedLog(`${share.key}:${name}`, after, textsMax),
    },
    start: async (offer) => {
      policy?.start(offer);
      await fleet.start();
    },
    retryPolicy: () => policy?.retry(),
    status: () => fleet.status(),
    stop: async () => {
      await policy?.stop();
      await fleet.stop();
    },
  };
}

function policySource(config: Config, link: RedisLink, environment: Environment): RedisSource | undefined {
  const { key, policyMillis } = config.share;
  if (policyMillis === 0) return undefined;
  return new RedisSource({
    key: `${key}:policy`,
    read: (name) => link.read(name),
    policyOf: (text, ground) => policyFromText(text, ground, config, environment),
    over: (...policies) => policyOver(...policies, config),
    bytesMax: config.policy.documentBytesMax,
    watchMillis: policyMillis,
  });
}

/** What makes hashes of prompts, sessions and tenants comparable. */
function fingerprintOf({ prefix, tokenizer }: Config, secret: Uint8Array): number {
  const text = JSON.stringify([prefix.blockHash, prefix.engineSeed, prefix.engineModels, tokenizer]);
  const digest = createHash("sha256").update("share").update(secret).update(text).digest();
  return digest.readUIntBE(0, FINGERPRINT_BYTES);
}

const DONE_ABOUT: Readonly<Record<ShareEvent["kind"], string>> = {
  "sharing-lost": "this gateway routes by its own view, and tries again",
  "sharing-recovered": "what was missed comes with snapshots",
  "sharing-refused": "it is left out",
};

function faultOf({ kind, detail }: ShareEvent) {
  return { kind, detail, done: DONE_ABOUT[kind] };
}

/** Its name among gateways that share; undefined where nothing is shared. */
export const replicaPart = part({
  name: "replica",
  needs: ["plan"],
  start: ({ plan }: Pick<GatewayContext, "plan">) => replicaName(plan.config),
});

interface Sharing extends Pick<GatewayContext, "plan" | "environment"> {
  readonly replica: string | undefined;
  readonly intake: Intake;
  readonly breakers: Breakers;
  readonly logs: { readonly faults: FaultLog };
  readonly secret: Uint8Array;
}

export const sharePart = part({
  name: "share",
  needs: ["plan", "environment", "replica", "intake", "breakers", "logs", "secret"],
  start: ({ plan, environment, replica, logs, ...parts }: Sharing) =>
    replica === undefined ? undefined : liveShare(plan.config, replica, { ...parts, faults: logs.faults }, environment),
  stop: (share) => share?.stop(),
});
