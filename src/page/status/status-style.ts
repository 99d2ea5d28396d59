/** What the status page has beside the style of all pages. No rule names an address. */
export const STATUS_STYLE = `
body{font-size:14px}
header{position:sticky;top:0;z-index:2;display:flex;flex-wrap:wrap;align-items:center;gap:4px 14px;padding:9px max(20px,calc((100vw - 1400px)/2));background:var(--card);border-bottom:1px solid var(--line)}
header h1{font-size:17px;margin:0}header h1 small{display:inline;margin-left:7px}
nav{display:flex;flex-wrap:wrap;gap:2px;margin-left:auto}
nav a{color:var(--soft);text-decoration:none;padding:4px 9px;border-radius:6px}nav a:hover{color:var(--ink);background:var(--bg)}
main{padding-top:16px}main:focus{outline:0}
section{scroll-margin-top:60px}
h2{margin:30px 0 2px}h3{margin:18px 0 2px;font-size:16px;overflow-wrap:anywhere}h4{margin:0 0 4px}
.lead{font-size:15px;margin:0 0 8px;overflow-wrap:anywhere}.page p{max-width:110ch}
p{overflow-wrap:anywhere}
.skip{position:absolute;left:-999px}.skip:focus{position:static}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
a{color:var(--c0)}
button,input,select{font:inherit;color:var(--ink);background:var(--card);border:1px solid var(--control);border-radius:7px;padding:4px 10px}
button{cursor:pointer}button:hover{background:var(--bg)}button[aria-pressed=true]{background:var(--ink);color:var(--card)}
input[type=search]{flex:1 1 180px;max-width:320px;min-width:0}
:root{--control:#7b8494}@media (prefers-color-scheme:dark){:root{--control:#79869a}}
.pill{display:inline-block;font-size:12px;font-weight:600;line-height:1.5;padding:0 8px;border-radius:999px;border:1px solid currentColor}.pill.plain{color:var(--soft)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:0}
.tiles>div{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 14px;min-width:0}
.tiles dt{font-size:12.5px;color:var(--soft)}.tiles dd{margin:0}.tiles b{display:block;font-size:21px;line-height:1.35;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}.tiles dd span{font-size:12.5px}.tiles dd>span:not(.bad):not(.good):not(:has(.warn)){color:var(--soft)}
.notice{border:1px solid currentColor;border-left-width:5px;border-radius:8px;background:var(--card);padding:10px 14px;margin:0 0 12px}.page .notice{max-width:none}
form.notice{display:flex;flex-wrap:wrap;gap:8px;align-items:center;border-color:var(--control)}.page form.notice p{margin:0;flex-basis:100%;max-width:none;color:var(--ink)}
.controls{display:flex;flex-wrap:wrap;gap:6px 10px;align-items:center;margin:0 0 8px}
.card.table{padding:2px 8px}
.table td,.table th{white-space:normal;vertical-align:top}
.table thead th{font-size:12.5px;white-space:nowrap;vertical-align:bottom}
.table tbody tr:last-child>*{border-bottom:0}
tbody th{font-weight:400}th.text,td.text{text-align:left}
.name,.wrap{overflow-wrap:anywhere}
.name{min-width:150px}td.trouble{min-width:180px;overflow-wrap:anywhere}td.why{min-width:220px}.came{display:block;color:var(--soft)}td.wrap{min-width:96px}td.figure{white-space:nowrap}
.troubled>*{background:color-mix(in srgb,var(--bad) 7%,transparent)}
button.sort{border:0;background:none;padding:0;color:var(--soft);font-weight:600;font-size:12.5px;text-decoration:underline dotted;text-underline-offset:3px}
[aria-sort=ascending] button.sort,[aria-sort=descending] button.sort{color:var(--ink);text-decoration-style:solid}
button.open{border:0;background:none;padding:0 0 0 13px;position:relative;text-align:left;overflow-wrap:anywhere}
button.open::before{content:"";position:absolute;left:0;top:calc(.75em - 4px);border:4px solid transparent;border-left:6px solid var(--soft);border-right:0}
button.open[aria-expanded=true]::before{top:calc(.75em - 3px);border:4px solid transparent;border-top:6px solid var(--soft);border-bottom:0}
.detail-row>td{text-align:left;padding:4px 12px 14px 24px}
.detail-row .scroll{contain:inline-size;border:1px solid var(--line);border-radius:7px}.detail-row .scroll th,.detail-row .scroll td{white-space:nowrap}.detail-row .scroll .name{min-width:0}
.metered{display:inline-flex;align-items:center;justify-content:flex-end;gap:8px;white-space:nowrap}
svg.meter{width:60px;flex:none}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(210px,1fr));gap:6px 18px;margin:4px 0}.facts dt{font-size:12px;color:var(--soft)}.facts dd{margin:0;overflow-wrap:anywhere}
.small{grid-template-columns:repeat(auto-fit,minmax(min(100%,290px),1fr))}
figcaption{margin-bottom:2px}
.legend{display:flex;flex-wrap:wrap;gap:2px 12px;min-height:21px;font-size:12.5px;color:var(--soft);font-variant-numeric:tabular-nums}.legend b{color:var(--ink)}.legend b.good{color:var(--good)}.legend b.bad{color:var(--bad)}
.value i.dot{width:8px;height:8px;margin-right:5px}
.plot{touch-action:pan-y;cursor:crosshair}
.cursor{stroke:var(--soft);stroke-dasharray:2 3}
.expected{color:var(--c4)}
.rollout{margin:0 0 14px}.rollout .cards,.rollout .card.table{margin:0 0 12px}
.steps{list-style:none;margin:0;padding:0}.steps li{padding:5px 0 5px 14px;border-left:2px solid var(--line);overflow-wrap:anywhere}.steps span{display:block;font-size:12.5px;color:var(--soft)}
.orders{display:flex;flex-wrap:wrap;gap:8px;align-items:center;margin:0 0 12px}.orders p{margin:0;flex-basis:100%}.orders form{display:flex;flex-wrap:wrap;gap:8px;align-items:center}.done progress{accent-color:var(--c0);vertical-align:middle}
.old main>:not(.notice){filter:grayscale(1)}
.narrow{display:none}
@media (max-width:820px){.card.table{overflow-x:auto;padding:2px 4px}.card.table th,.card.table td{padding:5px 4px}.name{min-width:142px}td.trouble{min-width:122px}td.why{min-width:130px}td.wrap{min-width:70px}.table thead th{white-space:normal}.folds svg.meter{display:none}header{position:static}}
@media (max-width:700px){
.narrow{display:inline-flex;gap:8px;align-items:center}
header{position:static;padding:8px 12px}nav{margin:0 -9px}
.tiles{grid-template-columns:repeat(2,1fr)}
table.folds,table.folds>tbody,table.folds>tbody>tr,table.folds>tbody>tr>*{display:block}
table.folds>thead{display:none}
table.folds>tbody>tr{padding:8px 2px;border-bottom:1px solid var(--line);display:grid;grid-template-columns:repeat(3,1fr);gap:3px 12px}
table.folds>tbody>tr:last-child{border-bottom:0}
table.folds>tbody>tr>*{border:0;padding:0;text-align:left;min-width:0;background:none}
table.folds>tbody>tr>th,table.folds>tbody>tr>.trouble,table.folds>tbody>tr>.why,table.folds>tbody>tr>.detail,table.folds>tbody>tr>td.name,table.folds>tbody>tr>td.wrap{grid-column:1/-1}
table.folds>tbody>tr>th{font-weight:600}
table.folds>tbody>tr>td[data-label]::before{content:attr(data-label);display:block;font-size:11.5px;color:var(--soft)}
table.folds>tbody>tr.troubled{background:color-mix(in srgb,var(--bad) 7%,transparent);margin:0 -8px;padding:8px 10px}
table.folds>tbody>tr.detail-row{display:block;padding:0 2px 8px}
table.folds>tbody>tr>.trouble:has(.soft){display:none}
.metered{justify-content:flex-start}
}
@media (prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
`;
