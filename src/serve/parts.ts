import { LIVE_SETTINGS } from "#config/live-settings.ts";
import { assembly } from "./assembly/assembly.ts";
import { autopilotPart, tuningPart } from "./autopilot/live-autopilot.ts";
import { listeningPart } from "./clients/listening.ts";
import { gatewayPart, identityPart } from "./clients/live-gateway.ts";
import { keysPart } from "./clients/live-keys.ts";
import { observerPart } from "./clients/live-observer.ts";
import { pagesPart, tokensPart } from "./clients/live-pages.ts";
import { pickerPart } from "./clients/live-picker.ts";
import { certificatesPart } from "./clients/certificates.ts";
import { tlsPart } from "./clients/live-tls.ts";
import { endpointsPart, fleetPart, listedPart } from "./endpoints/endpoint-sources.ts";
import { directoryPart, sourcesPart } from "./endpoints/live-directory.ts";
import { hangsPart } from "./endpoints/live-hangs.ts";
import { keeperPart } from "./endpoints/live-keeper.ts";
import { powerPart } from "./endpoints/live-power.ts";
import { latelyPart } from "./observe/lately.ts";
import { logsPart, reportPart } from "./observe/live-log.ts";
import { countsPart, metricsPart } from "./observe/live-metrics.ts";
import { readinessPart } from "./observe/live-readiness.ts";
import { recorderPart } from "./observe/live-recorder.ts";
import { runPart } from "./observe/live-run.ts";
import { shadowPart } from "./observe/live-shadow.ts";
import { tracingPart } from "./observe/live-tracing.ts";
import { lastingPart } from "./observe/lasting.ts";
import { stateWatchPart } from "./observe/state-watch.ts";
import type { GatewayContext } from "./plan/gateway-context.ts";
import { policyPart } from "./policy/live-policy.ts";
import { breakersPart, settingsPart, intakePart } from "./policy/live-router.ts";
import { statePart } from "./policy/live-state.ts";
import { secretPart } from "./policy/hash-secret.ts";
import { announcementPart, startAnnouncementPart } from "./ready/announce.ts";
import { warmUpPart } from "./ready/warm-up-all.ts";
import { predictorPart } from "./observe/live-predictor.ts";
import { restoredPart, rolloutsPart } from "./rollout/live-rollouts.ts";
import { peersPart, watchingPart } from "./ready/live-peers.ts";
import { replicaPart, sharePart } from "./share/live-share.ts";
import { frontPart } from "./tap/live-tap.ts";
import { blockSizesPart } from "./tokens/live-block-size.ts";
import { kvEventsPart } from "./tokens/live-kv-events.ts";
import { tokenizersPart } from "./tokens/tokenizers.ts";

/**
 * What a running gateway is made of. Each part states what it needs, how it starts and stops, and which settings it
 * takes over while it runs; the table of ARCHITECTURE.md shows them.
 */
export const GATEWAY = assembly<GatewayContext>()(
  ["plan", "environment", "log", "logLinesDropped", "leaving"],
  [
    // Before all others, so that it ends behind them.
    fleetPart,
    listedPart,
    logsPart,
    // The decision, and what of it outlives a restart.
    replicaPart,
    statePart,
    secretPart,
    settingsPart,
    breakersPart,
    intakePart,
    // Who sees every input.
    runPart,
    recorderPart,
    tuningPart,
    shadowPart,
    predictorPart,
    sharePart,
    // Prompts: which tokens and blocks they are.
    directoryPart,
    certificatesPart,
    tlsPart,
    tracingPart,
    tokenizersPart,
    blockSizesPart,
    // Endpoints: which there are, what they report, which hang.
    sourcesPart,
    readinessPart,
    reportPart,
    powerPart,
    hangsPart,
    frontPart,
    keeperPart,
    stateWatchPart,
    // What may change while it runs: the policy, and rollouts.
    policyPart,
    rolloutsPart,
    autopilotPart,
    lastingPart,
    // What engines report of their caches.
    kvEventsPart,
    // What it shows: metrics, status pages.
    countsPart,
    latelyPart,
    metricsPart,
    restoredPart,
    tokensPart,
    pagesPart,
    // The gateway, and what comes once it is there: engines start while it warms up.
    keysPart,
    identityPart,
    gatewayPart,
    listeningPart,
    startAnnouncementPart,
    pickerPart,
    observerPart,
    endpointsPart,
    warmUpPart,
    peersPart,
    watchingPart,
    announcementPart,
  ],
  LIVE_SETTINGS,
);
