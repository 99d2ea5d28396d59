/** Colours and measures of all pages, for light and dark. No rule names an address. */
export const PAGE_STYLE = `
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1b1f27;--soft:#5b6472;--line:#dfe3ea;--grid:#e9ecf1;--band:#f3c94a55;--good:#0a7a3d;--warn:#8a5300;--bad:#b3261e;
--live:#11151c;--c0:#2563eb;--c1:#e4572e;--c2:#0f9d7a;--c3:#a43bd1;--c4:#c98a00;--c5:#d6336c;--c6:#0891b2;--c7:#6b7280}
@media (prefers-color-scheme:dark){:root{--bg:#0f1319;--card:#181d26;--ink:#e8ebf0;--soft:#9aa5b5;--line:#2b3340;--grid:#232a35;--band:#f3c94a2e;--good:#4ade80;--warn:#f0b849;--bad:#ff8a80;
--live:#f5f7fa;--c0:#6ea8ff;--c1:#ff8a65;--c2:#3ddbb0;--c3:#d38bf5;--c4:#f0c04a;--c5:#ff7aa8;--c6:#4fd1ea;--c7:#a3adbb}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1440px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:26px;line-height:1.25;margin:0 0 6px}h2{font-size:19px;margin:38px 0 4px}h3{font-size:15px;margin:0 0 8px}h4{font-size:14px;margin:0;overflow-wrap:anywhere}
p{margin:4px 0 12px;color:var(--soft);max-width:78ch}
.lead{font-size:18px;color:var(--ink)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:14px}
.wide{grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr))}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px;margin:0;min-width:0}
figcaption{font-weight:600;margin-bottom:6px}
svg{display:block;width:100%;height:auto}
svg text{font:11px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:var(--soft)}
svg .label{fill:var(--ink);font-size:12px;paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}
.mid{text-anchor:middle}.end{text-anchor:end}
.grid{stroke:var(--grid)}.zero{stroke:var(--soft)}.band{fill:var(--band)}.track{fill:var(--grid)}
.line{fill:none;stroke-width:2;stroke:currentColor;stroke-linejoin:round;stroke-linecap:round}.area{fill:currentColor;opacity:.16}.mark{stroke-dasharray:4 4}.thin{stroke-width:1.5}.thick{stroke-width:4}
.dot,.bar{fill:currentColor}
polyline.live{stroke-width:3;stroke-dasharray:5 3;stroke-linecap:butt}
.live{color:var(--live)}
.s0,.e0{color:var(--c0)}.s1,.e1{color:var(--c1)}.s2,.e2{color:var(--c2)}.s3,.e3{color:var(--c3)}.s4,.e4{color:var(--c4)}.s5,.e5{color:var(--c5)}.s6,.e6{color:var(--c6)}.s7,.e7{color:var(--c7)}
i.dot{display:inline-block;width:10px;height:10px;border-radius:50%;background:currentColor;margin-right:7px}
.keys{display:flex;flex-wrap:wrap;gap:6px 8px;margin:10px 0 14px}
.key{display:inline-flex;align-items:center;background:var(--card);border:1px solid var(--line);border-radius:999px;padding:3px 11px;font-size:13px;color:var(--ink);font-family:inherit;overflow-wrap:anywhere}
button.key{cursor:pointer}button.key[aria-pressed=false]{opacity:.4}:focus-visible{outline:2px solid var(--c0);outline-offset:2px;border-radius:3px}
.off{display:none}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:13.5px}
.figures th,.figures td{padding:6px 6px}.figures tbody th{white-space:normal;overflow-wrap:anywhere;min-width:110px}.figures thead th:not([colspan]):not([rowspan]){font-weight:400}
th,td{padding:6px 9px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{font-weight:600}th[rowspan]{vertical-align:top}thead th[rowspan]{vertical-align:bottom}th:first-child{text-align:left}thead th{color:var(--soft);vertical-align:bottom}thead th[colspan]{text-align:center}thead tr+tr th:first-child{text-align:right}
small{display:block;font-weight:400;color:var(--soft);font-size:11.5px}h4 small{display:inline;margin-left:6px}
em{font-style:normal;font-size:11px;border:1px solid var(--line);border-radius:5px;padding:1px 5px;color:var(--soft);font-weight:400}
.text,thead th.text{text-align:left}.below{margin-top:14px}
.live-row{font-style:italic}
.chosen{background:color-mix(in srgb,var(--c2) 16%,transparent)}
.good{color:var(--good)}.warn{color:var(--warn)}.bad{color:var(--bad)}.soft{color:var(--soft)}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,580px),1fr));gap:18px}.pair table{font-size:12.5px}.pair th,.pair td{padding:5px 6px}.pair thead th{white-space:normal}.pair section{min-width:0}.tight table{font-size:12.5px}.tight th,.tight td{padding:5px 6px}
article.card{margin-bottom:14px}
ul{color:var(--soft);padding-left:20px;margin:4px 0}
@media (max-width:600px){main{padding:18px 12px 40px}h1{font-size:21px}.lead{font-size:16px}.card{padding:11px 10px}}
`;
