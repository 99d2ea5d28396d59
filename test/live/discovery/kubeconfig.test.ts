import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { stringify } from "yaml";
import { ApiServer } from "#live/discovery/api-server.ts";
import { kubeContext } from "#live/discovery/kubeconfig.ts";
import { kubernetesApi } from "#live/discovery/kubernetes-api.ts";
import { detailOf } from "#live/discovery/kubernetes-fault.ts";
import { FakeApiServer } from "./fake-api-server.ts";

const PODS = { group: "", version: "v1", resource: "pods", namespace: "ns" };

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-kubeconfig-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function kubeconfig(server: string, user: object, cluster: object = {}): string {
  return stringify({
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "k", user: "u" } }],
    clusters: [
      { name: "other", cluster: { server: "http://127.0.0.1:1" } },
      { name: "k", cluster: { server, ...cluster } },
    ],
    users: [{ name: "u", user }],
  });
}

/** Whether an API server that wants the token "cluster-secret" took what this user shows. */
async function reads(t: TestContext, user: object, folder: string, cluster: object = {}): Promise<void> {
  const fake = await FakeApiServer.start();
  t.after(() => fake.stop());
  fake.put("/api/v1/namespaces/ns/pods", { metadata: { name: "p" } });
  const file = join(folder, "config");
  writeFileSync(file, kubeconfig(fake.kubeContext.cluster.server, user, cluster));
  const api = kubernetesApi(undefined, { KUBECONFIG: file });
  t.after(() => api.stop());
  const { items } = await api.list(PODS, AbortSignal.timeout(5_000));
  assert.equal(items.length, 1);
}

test("a user's token, its file beside the kubeconfig, and a program's credential are shown to the API server", async (t) => {
  const folder = folderOf(t);
  await reads(t, { token: "cluster-secret" }, folder);
  writeFileSync(join(folder, "token"), "cluster-secret\n");
  await reads(t, { tokenFile: "token" }, folder, { "insecure-skip-tls-verify": true });
  const program = join(folder, "login");
  const answer = '{"kind":"ExecCredential","status":{"token":"\'$TOKEN\'"}}';
  writeFileSync(
    program,
    `#!/bin/sh\ncase "$KUBERNETES_EXEC_INFO" in *ExecCredential*) ;; *) exit 1 ;; esac\necho '${answer}'\n`,
  );
  chmodSync(program, 0o755);
  const env = [{ name: "TOKEN", value: "cluster-secret" }];
  await reads(t, { exec: { command: program, args: ["a"], env } }, folder);
  await assert.rejects(reads(t, { token: "wrong" }, folder), { statusCode: 401 });
});

test("a token that its file has new is shown from then on, and a program is asked again after a 401", async (t) => {
  const folder = folderOf(t);
  const fake = await FakeApiServer.start();
  t.after(() => fake.stop());
  const list = (server: ApiServer) => server.get("/api/v1/namespaces/ns/pods", {}, AbortSignal.timeout(5_000));
  const file = join(folder, "token");
  writeFileSync(file, "old");
  const { cluster } = fake.kubeContext;
  const byFile = new ApiServer({ cluster, user: { tokenFile: file } });
  t.after(() => byFile.stop());
  await assert.rejects(list(byFile), { statusCode: 401 });
  writeFileSync(file, "cluster-secret");
  await (await list(byFile)).body.dump();

  writeFileSync(join(folder, "answer"), '{"status":{"token":"old"}}');
  const byProgram = new ApiServer({ cluster, user: { exec: { command: "cat", args: [join(folder, "answer")] } } });
  t.after(() => byProgram.stop());
  await assert.rejects(list(byProgram), { statusCode: 401 });
  writeFileSync(join(folder, "answer"), '{"status":{"token":"cluster-secret"}}');
  await (await list(byProgram)).body.dump();
});

test("a program that brings nothing is named, and what it wrote is in no message", async (t) => {
  const folder = folderOf(t);
  const { cluster } = { cluster: { server: "http://127.0.0.1:1" } };
  for (const [text, code] of [
    ["secret-text", "EXEC_CREDENTIAL"],
    ['{"status":{}}', "EXEC_CREDENTIAL"],
  ] as const) {
    writeFileSync(join(folder, "answer"), text);
    const server = new ApiServer({ cluster, user: { exec: { command: "cat", args: [join(folder, "answer")] } } });
    const error: unknown = await server.get("/", {}, AbortSignal.timeout(5_000)).catch((thrown: unknown) => thrown);
    assert.ok(
      error instanceof Error && error.message.includes("program cat") && !error.message.includes("secret-text"),
    );
    assert.match(detailOf(error), new RegExp(code));
  }
  const missing = new ApiServer({ cluster, user: { exec: { command: join(folder, "nothing") } } });
  await assert.rejects(missing.get("/", {}, AbortSignal.timeout(5_000)), { code: "ENOENT" });
});

test("several files join, the first one that has something counts, and paths are of the file that they stand in", (t) => {
  const folder = folderOf(t);
  const at = (name: string) => join(folder, name);
  mkdirSync(at("sub"));
  writeFileSync(at("sub/users"), stringify({ users: [{ name: "u", user: { tokenFile: "t" } }] }));
  writeFileSync(at("all"), kubeconfig("https://10.0.0.1", { token: "x" }, { "certificate-authority": "ca.crt" }));
  const KUBECONFIG = ["missing", "sub/users", "all"].map(at).join(":");
  const { cluster, user } = kubeContext({ KUBECONFIG });
  assert.deepEqual(user, { tokenFile: at("sub/t") });
  assert.deepEqual(cluster, { server: "https://10.0.0.1", "certificate-authority": at("ca.crt") });
});

test("where nothing is configured the message names the places, and a kubeconfig's mistakes are named without its text", (t) => {
  const home = folderOf(t);
  assert.throws(() => kubeContext({ KUBERNETES_SERVICE_HOST: "10.96.0.1" }, home), {
    message:
      /no service account token \(\/var\/run\/secrets\/kubernetes\.io\/serviceaccount\/token is missing\); set automountServiceAccountToken/,
  });
  assert.throws(() => kubeContext({}, home), { message: /KUBECONFIG is not set, there is no ~\/\.kube\/config/ });
  assert.throws(() => kubeContext({ KUBECONFIG: "/nowhere" }, home), { message: /KUBECONFIG names \/nowhere/ });
  mkdirSync(join(home, ".kube"));
  const file = join(home, ".kube/config");
  const message = (text: string): string => {
    writeFileSync(file, text);
    try {
      kubeContext({}, home);
    } catch (error) {
      return (error as Error).message;
    }
    return "";
  };
  assert.match(message("{ token: secret"), /cannot be read as YAML/);
  assert.doesNotMatch(message("{ token: secret"), /secret/);
  assert.match(message("just text"), /expected a kubeconfig/);
  assert.match(message("current-context: none"), /no current context, or one without a cluster/);
  assert.match(message(kubeconfig("https://x", { "auth-provider": {} })), /expected a user with .* got auth-provider/);
  assert.equal(message(kubeconfig("https://x", { token: "x" })), "");
});
