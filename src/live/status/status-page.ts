import { createHash } from "node:crypto";

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d8dce2, #343a43); --dim: light-dark(#5c6672, #98a2ae);
  --bar: light-dark(#4678c8, #6f9de8); --good: light-dark(#1d7d3f, #5fcf86); --warn: light-dark(#9a6700, #e3b341);
  --bad: light-dark(#b42318, #ff8177); --raised: light-dark(#f5f6f8, #1b1f25); }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1500px; padding: 1rem 1.5rem 3rem; font: 14px/1.45 system-ui, sans-serif;
  background: light-dark(#fff, #121519); color: light-dark(#1b1f24, #e6e9ed); }
header { display: flex; flex-wrap: wrap; gap: .3rem 1rem; align-items: baseline; }
h1 { font-size: 1.25rem; margin: 0; } h2 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
#state { color: var(--dim); } #state.bad { color: var(--bad); }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
tr:last-child > td { border-bottom: 0; }
th { font-weight: 600; color: var(--dim); background: var(--raised); position: sticky; top: 0; }
th.text, td.text { text-align: left; }
td.wrap { white-space: normal; min-width: 14rem; max-width: 28rem; }
.dim { color: var(--dim); } .good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); }
.best { font-weight: 700; }
meter { width: 5rem; height: .8rem; vertical-align: middle; }
tbody.decision > tr:first-child { cursor: pointer; } tbody.decision > tr:first-child:hover { background: var(--raised); }
tbody.decision > tr:first-child:focus-visible { outline: 2px solid var(--bar); outline-offset: -2px; }
td.detail { padding: .4rem .6rem .8rem 2rem; background: var(--raised); }
form { display: none; margin: 1rem 0; gap: .5rem; } form.shown { display: flex; }
input, button { font: inherit; padding: .25rem .5rem; }
`;

const SCRIPT = `
const byId = (id) => document.getElementById(id);
let token = sessionStorage.getItem("gnomon-token") ?? "";
let opened = new Set();
const cell = (text, kind = "") => { const td = document.createElement("td"); td.className = kind; td.textContent = text; return td; };
const row = (...cells) => { const tr = document.createElement("tr"); tr.append(...cells); return tr; };
const head = (...names) => { const tr = document.createElement("tr");
  for (const name of names) { const th = document.createElement("th"); th.scope = "col"; th.textContent = name.replace("<", ""); if (name.startsWith("<")) th.className = "text"; tr.append(th); }
  const thead = document.createElement("thead"); thead.append(tr); return thead; };
const count = (value) => value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: 1 });
const share = (value) => value === null || value === undefined ? "–" : (100 * value).toFixed(1) + " %";
const age = (millis) => millis === null || millis === undefined ? "never" : millis < 10000 ? (millis / 1000).toFixed(1) + " s" : Math.round(millis / 1000) + " s";
const score = (value) => value === null ? "–" : value.toFixed(3);
const level = { ready: "good", waiting: "warn", lost: "bad", closed: "good", "half-open": "warn", open: "bad", fresh: "good", stale: "warn", unknown: "bad" };
function bar(value) {
  const td = cell("");
  if (value === undefined) { td.textContent = "–"; return td; }
  const meter = document.createElement("meter"); meter.max = 1; meter.value = value; meter.high = 0.9; meter.low = 0.75; meter.optimum = 0;
  td.append(meter, " " + share(value)); return td;
}
const problems = (e) => [e.state === "ready" ? "" : e.state + (e.detail ? ": " + e.detail : ""), e.cordoned ? "cordoned" : "",
  (e.breaker ?? "closed") === "closed" ? "" : "breaker " + e.breaker, e.standing === undefined || e.standing === null || e.standing === "well" ? "" : e.standing, e.state !== "ready" || e.signals?.freshness === "fresh" ? "" : "signals " + (e.signals?.freshness ?? "unknown"),
  (e.scrape && e.scrape.lastError && "scrape: " + e.scrape.lastError) || "", e.state === "ready" && e.detail ? e.detail : ""].filter((text) => text !== "");
const weight = (e) => e.state !== "ready" || e.standing === "hung" ? 3 : (e.breaker ?? "closed") !== "closed" ? 2 : problems(e).length > 0 ? 1 : 0;
function showEndpoints(endpoints) {
  const body = document.createElement("tbody");
  const bad = endpoints.filter((e) => weight(e) > 0).length;
  byId("trouble").className = bad > 0 ? "bad" : "good";
  byId("trouble").textContent = endpoints.length === 0 ? "no endpoint is known" : bad > 0 ? bad + " of " + endpoints.length + " in trouble, listed first" : "all " + endpoints.length + " well";
  for (const e of [...endpoints].sort((a, b) => weight(b) - weight(a))) {
    const s = e.signals ?? {}; const l = e.ledger ?? {};
    body.append(row(cell(e.id, "text"), cell(e.cordoned ? "cordoned" : e.state, "text " + (e.cordoned ? "warn" : level[e.state])),
      cell(problems(e).join("; ") || "–", "text wrap " + (weight(e) > 1 ? "bad" : weight(e) > 0 ? "warn" : "dim")),
      cell(e.breaker ?? "–", "text " + (level[e.breaker] ?? "dim")), cell((s.freshness ?? "unknown") + ", " + age(s.ageMillis), "text " + level[s.freshness ?? "unknown"]),
      cell(count(s.running)), cell(count(s.waiting)), cell(count(l.requestsInFlight)), cell(count(e.effectiveLoad)), cell(count(l.prefillTokensQueued)), cell(count(l.decodeTokens)),
      bar(e.kvUtilization), cell(share(s.prefixHitRatio)), cell(count(e.indexBlocks)), cell(count(e.kvCapacityTokens)),
      cell(e.models.slice(0, 4).join(", ") + (e.models.length > 4 ? " and " + (e.models.length - 4) + " more" : ""), "text wrap dim")));
  }
  byId("endpoints").replaceChildren(head("<Endpoint", "<State", "<Trouble", "<Breaker", "<Signals", "Running", "Waiting", "In flight", "Load", "Prefill queued", "Decode tokens", "KV in use", "Hit ratio", "Index blocks", "KV tokens", "<Models"), body);
}
function breakdown(d) {
  const table = document.createElement("table");
  const body = document.createElement("tbody");
  for (const c of d.candidates) {
    const chosen = c.endpoint === d.endpoint ? " best" : "";
    body.append(row(cell(c.endpoint, "text" + chosen), ...d.scorers.map((s) => cell(score(c.scores[s.name]))), cell(score(c.total), chosen),
      cell(c.removedBy || "", "text warn"), cell(count(c.hitTokens)), cell(count(c.effectiveLoad)), cell(share(c.kvUtilization)), cell(count(c.requestsInFlight)), cell(count(c.prefillTokensQueued)), cell(c.freshness + ", " + age(c.loadAgeMillis), "text " + level[c.freshness])));
  }
  table.append(head("<Candidate", ...d.scorers.map((s) => s.name + " × " + s.weight.toFixed(3)), "Total", "<Removed by", "Hit tokens", "Load", "KV in use", "In flight", "Prefill queued", "<Signals"), body);
  return table;
}
function showDecisions(decisions) {
  const bodies = decisions.map((d) => {
    const body = document.createElement("tbody"); body.className = "decision";
    const first = row(cell(d.at.slice(11, 23), "text dim"), cell(d.model ?? "retry " + d.attempt, "text"), cell(d.endpoint ?? "none", "text " + (d.endpoint ? "" : "bad")), cell((d.why ?? d.reason) + (d.usedLedger ? " (ledger)" : ""), "text wrap"),
      cell(count(d.promptTokens)), cell(count(d.hitTokens)), cell(count(d.decisionMicros)), cell(d.profile + " v" + d.policyVersion, "text dim"), cell(d.requestId, "text dim"));
    const detail = cell("", "detail"); detail.colSpan = 9;
    const second = row(detail);
    const toggle = () => { const show = !opened.has(d.sequence); if (show) opened.add(d.sequence); else opened.delete(d.sequence); show ? (detail.replaceChildren(breakdown(d)), body.append(second)) : second.remove(); first.ariaExpanded = String(show); };
    first.tabIndex = 0; first.ariaExpanded = "false"; first.onclick = toggle;
    first.onkeydown = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); } };
    body.append(first);
    if (opened.has(d.sequence)) { detail.append(breakdown(d)); body.append(second); first.ariaExpanded = "true"; }
    return body;
  });
  const shown = new Set(decisions.map((d) => d.sequence)); opened = new Set([...opened].filter((sequence) => shown.has(sequence)));
  byId("decisions").replaceChildren(head("<Time (UTC)", "<Model", "<Endpoint", "<Reason", "Prompt tokens", "Hit tokens", "Decided in µs", "<Profile", "<Request"), ...bodies);
}
const clock = (at) => at.slice(0, 19).replace("T", " ");
function showPolicy(p) {
  const now = p.inForce;
  const warm = now.profiles.filter((name) => name !== now.defaultProfile);
  byId("policy").textContent = "Version " + now.version + ": " + now.defaultProfile + (warm.length > 0 ? ", with " + warm.join(", ") + " ready" : "") + ". Set by " + (now.source === "start" ? "the configuration at start" : now.source + (now.by ? ", " + now.by : "")) + " at " + clock(now.at) + " UTC.";
  const refused = p.refused[0];
  byId("policy-trouble").className = "bad";
  byId("policy-trouble").textContent = refused && refused.at > now.at ? "a change was refused since" : "";
  const rows = [...p.versions.map((v) => [v.at, row(cell(clock(v.at), "text dim"), cell("version " + v.version, "text " + (v.version === now.version ? "good" : "")), cell(v.source, "text"), cell(v.by, "text"), cell(v.defaultProfile + (v.note ? " (" + v.note + ")" : ""), "text wrap"))]),
    ...p.refused.map((r) => [r.at, row(cell(clock(r.at), "text dim"), cell("refused", "text bad"), cell(r.source, "text"), cell(r.by, "text"), cell(r.problems.join("; "), "text wrap"))])];
  const body = document.createElement("tbody");
  body.append(...rows.sort((a, b) => a[0] < b[0] ? 1 : a[0] > b[0] ? -1 : 0).slice(0, 8).map((entry) => entry[1]));
  byId("versions").replaceChildren(head("<Time (UTC)", "<Change", "<Source", "<By", "<Profile, or why not"), body);
}
async function get(path) {
  const answer = await fetch(path, { headers: token === "" ? {} : { authorization: "Bearer " + token } });
  if (answer.status === 401) { byId("ask").className = "shown"; throw new Error("the admin token is needed"); }
  if (!answer.ok) throw new Error((await answer.json()).error?.message ?? "status " + answer.status);
  return answer.json();
}
async function refresh() {
  const state = byId("state");
  const focused = document.activeElement?.closest?.("tbody.decision");
  if (!document.hidden) {
    try {
      const [fleet, last, policy] = await Promise.all([get("endpoints"), get("decisions?n=30"), get("policy")]);
      byId("ask").className = "";
      showEndpoints(fleet.endpoints);
      showPolicy(policy);
      if (!focused) showDecisions(last.decisions);
      state.className = ""; state.textContent = "as of " + new Date().toLocaleTimeString() + (focused ? ", decisions held while one is selected" : "");
    } catch (error) { state.className = "bad"; state.textContent = error.message; }
  }
  setTimeout(refresh, 1000);
}
byId("ask").onsubmit = (event) => { event.preventDefault(); token = byId("token").value; sessionStorage.setItem("gnomon-token", token); byId("token").value = ""; };
refresh();
`;

const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** What the page may do: run its own script and style, and ask this origin. */
export const STATUS_PAGE_POLICY = [
  "default-src 'none'",
  `script-src ${hash(SCRIPT)}`,
  `style-src ${hash(STYLE)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Endpoints and last decisions, read every second from their JSON. Holds no data itself and loads nothing else. */
export const STATUS_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>gnomon</title>
<style>${STYLE}</style>
<header><h1>gnomon</h1><span id="state" role="status">loading</span></header>
<form id="ask"><label for="token">Admin token</label><input id="token" type="password" autocomplete="off"><button>Show</button></form>
<h2>Endpoints <span id="trouble" role="status"></span></h2>
<div class="scroll"><table id="endpoints"></table></div>
<h2>Policy <span id="policy-trouble" role="status"></span></h2>
<p id="policy"></p>
<div class="scroll"><table id="versions"></table></div>
<h2>Last decisions <span class="dim">(select one for its scores)</span></h2>
<div class="scroll"><table id="decisions"></table></div>
<script>${SCRIPT}</script>
</html>
`;
