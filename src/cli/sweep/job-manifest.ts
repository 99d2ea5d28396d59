import { stringify } from "yaml";

export interface JobOptions {
  readonly name: string;
  readonly image: string;
  /** PersistentVolumeClaim with the sweep's inputs, which also takes its parts. */
  readonly claim: string;
  readonly file: string;
  readonly parts: string;
  readonly shards: number;
  /** Shards at a time. */
  readonly parallelism: number;
  /** Cores, and threads, of each. */
  readonly cpus: number;
}

const FOLDER = "/sweep";
const USER = 1_000;
const RETRIES_PER_SHARD = 3;
/** The exit code of a command line that is wrong, which no retry mends. */
const EXIT_USAGE = 2;

/**
 * An indexed Job (batch/v1) that runs one shard a pod, each with its number in JOB_COMPLETION_INDEX. A pod that is lost is
 * started again, and a shard that was written is not run twice. Fit for namespaces that enforce the restricted standard.
 */
export function jobManifest(options: JobOptions): string {
  const { name, image, claim, file, parts, shards, parallelism, cpus } = options;
  const container = {
    name: "sweep",
    image,
    imagePullPolicy: "IfNotPresent",
    workingDir: FOLDER,
    args: ["sweep", file, "--shards", String(shards), "--parts", parts, "--threads", String(cpus)],
    resources: { requests: { cpu: String(cpus), memory: "512Mi" }, limits: { memory: "2Gi" } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    volumeMounts: [{ name: "sweep", mountPath: FOLDER }],
  };
  return stringify({
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, labels: { "app.kubernetes.io/name": "gnomon", "app.kubernetes.io/component": "sweep" } },
    spec: {
      completionMode: "Indexed",
      completions: shards,
      parallelism,
      backoffLimitPerIndex: RETRIES_PER_SHARD,
      podFailurePolicy: {
        rules: [
          { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
          { action: "FailIndex", onExitCodes: { containerName: "sweep", operator: "In", values: [EXIT_USAGE] } },
        ],
      },
      template: {
        metadata: { labels: { "app.kubernetes.io/name": "gnomon", "app.kubernetes.io/component": "sweep" } },
        spec: {
          restartPolicy: "Never",
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: USER,
            runAsGroup: USER,
            fsGroup: USER,
            fsGroupChangePolicy: "OnRootMismatch",
            seccompProfile: { type: "RuntimeDefault" },
          },
          containers: [container],
          volumes: [{ name: "sweep", persistentVolumeClaim: { claimName: claim } }],
        },
      },
    },
  });
}
