// The page's only script. Everything that somebody said is put in as text, never as markup.
"use strict";

const el = (name, attributes = {}, ...children) => {
  const svg = ["svg", "rect", "circle", "text", "title", "line"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};
const by = (id) => document.getElementById(id);
const plain = (name) => String(name).replaceAll("_", " ");
const put = (id, ...children) => by(id).replaceChildren(...children.filter((child) => child !== null));
const named = (value) => (index.names[value] ? `${value} ${index.names[value]}` : plain(value));

// Half a character has no bytes: a browser may not copy or save it.
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const whole = (_, value) => (typeof value === "string" ? value.replace(LONE, "\ufffd") : value);

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text(), whole);
}

let index, chosen = [], current = -1, shown = 0;
const chunks = new Map();

async function rowAt(i) {
  const number = Math.floor(i / index.chunk);
  if (!chunks.has(number)) chunks.set(number, unpack(by(`rows-${number}`).textContent));
  return (await chunks.get(number))[i % index.chunk];
}

// --- coverage map ---------------------------------------------------------------------------

const STAGES = ["kept", "met", "played", "planned", "in no card", "cannot happen"];

function drawMap() {
  const [a, b] = [by("axis-a").value, by("axis-b").value];
  if (a === b) return put("map", el("p", {}, "Choose two axes."));
  const stage = new Map();
  const key = (u, v) => JSON.stringify([u, v]);
  for (const [x, u, y, v, step, why] of index.holes) {
    if (x === a && y === b) stage.set(key(u, v), [step, why]);
    if (x === b && y === a) stage.set(key(v, u), [step, why]);
  }
  const table = el("table", { class: "map" });
  table.append(el("tr", {}, el("td"), ...index.axes[b].map((v) => el("th", { class: "up" }, el("span", {}, named(v))))));
  const counts = new Map();
  for (const u of index.axes[a]) {
    const line = el("tr", {}, el("th", { title: named(u) }, named(u)));
    for (const v of index.axes[b]) {
      const [step, why] = stage.get(key(u, v)) || [0, "held by a kept row"];
      counts.set(step, (counts.get(step) || 0) + 1);
      const told = `${named(u)} with ${named(v)}: ${why}`;
      const pick = () => filterBy({ [a]: u, [b]: v });
      line.append(el("td", { class: `cell s${step}` }, el("button", { title: told, "aria-label": told, on: { click: pick } }, "kmpc·×"[step])));
    }
    table.append(line);
  }
  const legend = STAGES.map((name, step) => el("span", {}, el("i", { class: `cell s${step}` }, "kmpc·×"[step]), ` ${name} ${counts.get(step) || 0}  `));
  put("map", el("p", { class: "legend" }, ...legend), table);
}

// --- small charts -----------------------------------------------------------------------------

function bars(id, counts) {
  const entries = Object.entries(counts).sort((x, y) => y[1].all - x[1].all);
  const most = Math.max(1, ...entries.map(([, c]) => c.all));
  put(id, el("table", { class: "bars" }, ...entries.map(([name, c]) =>
    el("tr", {}, el("th", {}, plain(name)), el("td", { class: "n" }, `${c.kept} of ${c.all} kept`),
      el("td", {}, el("div", { class: "stack", style: `width:${(14 * c.all) / most}rem` },
        ...index.states.filter((s) => c[s]).map((s) => el("span", { class: s, style: `flex:${c[s]}`, title: `${c[s]} ${s}` }))))))));
}

function countBy(pick) {
  const counts = {};
  for (const row of index.rows) {
    const name = pick(row);
    if (name === undefined) continue;
    counts[name] = counts[name] || { all: 0, kept: 0 };
    counts[name].all += 1;
    counts[name][row.state] = (counts[name][row.state] || 0) + 1;
  }
  return counts;
}

function histogram(id) {
  const sizes = index.rows.map((row) => row.tokens);
  const most = Math.max(1, ...sizes), bins = new Array(24).fill(0);
  for (const size of sizes) bins[Math.min(23, Math.floor((24 * size) / most))] += 1;
  const high = Math.max(1, ...bins), svg = el("svg", { viewBox: "0 0 480 130", role: "img", "aria-label": "tokens of a conversation" });
  bins.forEach((count, i) => svg.append(el("rect", { x: i * 20, y: 110 - (100 * count) / high, width: 18, height: (100 * count) / high, class: "mark" },
    el("title", {}, `${count} conversations of ${Math.round((i * most) / 24)} to ${Math.round(((i + 1) * most) / 24)} tokens`))));
  svg.append(el("text", { x: 0, y: 126 }, "0"), el("text", { x: 480, y: 126, "text-anchor": "end" }, `${most} tokens, about`));
  put(id, svg);
}

function scatter(id) {
  const svg = el("svg", { viewBox: "0 0 480 300", role: "img", "aria-label": "openings, alike ones near each other" });
  index.rows.slice(0, 1500).forEach((row, i) => svg.append(el("circle", { cx: 10 + 460 * row.at[0], cy: 10 + 280 * row.at[1], r: 3, class: row.state, on: { click: () => open(i) } },
    el("title", {}, `${row.id}: ${row.opening}`))));
  put(id, svg);
}

// --- the conversations --------------------------------------------------------------------------

function filterBy(values) {
  for (const [axis, value] of Object.entries(values)) by(`f-${axis}`).value = value;
  applyFilters();
  by("conversations").scrollIntoView();
}

async function applyFilters() {
  const wanted = Object.keys(index.axes).map((axis) => [axis, by(`f-${axis}`).value]).filter(([, v]) => v);
  const state = by("f-state").value, check = by("f-check").value, text = by("f-text").value.trim().toLowerCase();
  let found = index.rows.map((_, i) => i).filter((i) => {
    const row = index.rows[i];
    return (!state || row.state === state) && wanted.every(([axis, v]) => row.situation[axis] === v)
      && (!check || row.reasons.includes(check));
  });
  if (text) {
    const held = [];
    for (const i of found) if (JSON.stringify(await rowAt(i)).toLowerCase().includes(JSON.stringify(text).slice(1, -1))) held.push(i);
    if (by("f-text").value.trim().toLowerCase() !== text) return;
    found = held;
  }
  chosen = found;
  shown = 0;
  put("list");
  put("count", `${chosen.length} of ${index.rows.length} conversations`);
  more();
  if (chosen.length) open(chosen[0], false);
  else put("talk", el("p", {}, "No conversation is like that."));
}

function more() {
  for (const i of chosen.slice(shown, shown + 100)) {
    const row = index.rows[i];
    by("list").append(el("li", {}, el("button", { id: `b-${i}`, on: { click: () => open(i) } },
      el("b", { class: row.state }, row.state), ` ${row.id} `, el("small", {}, row.opening))));
  }
  shown += 100;
  by("more").hidden = shown >= chosen.length;
}

function pieces(text, findings) {
  const spans = findings.map((f) => {
    const start = f.quote ? text.indexOf(f.quote) : -1;
    return start < 0 ? [0, text.length, f] : [start, start + f.quote.length, f];
  });
  const cuts = [...new Set([0, text.length, ...spans.flatMap(([s, e]) => [s, e])])].sort((x, y) => x - y);
  return cuts.slice(0, -1).map((start, n) => {
    const over = spans.filter(([s, e]) => s <= start && cuts[n + 1] <= e).map(([, , f]) => `${f.severity}: ${f.check}. ${f.reason}`);
    const part = text.slice(start, cuts[n + 1]);
    return over.length ? el("mark", { title: over.join("; ") }, part) : part;
  });
}

const WHO = { user: "customer", assistant: "agent", tool: "world", system: "policy" };

function turn(row, message, i) {
  const found = row.findings.filter((f) => f.message_index === i);
  const said = el("div", { class: "said" }, ...pieces(message.content || "", found));
  const body = message.role === "tool" || message.role === "system"
    ? el("details", {}, el("summary", {}, `${(message.content || "").slice(0, 90)}…`), said) : said;
  const calls = (message.tool_calls || []).map((c) => el("div", { class: "call" }, `${c.function.name}(${c.function.arguments})`,
    row.failed_calls.includes(c.id) ? el("b", { class: "failed" }, " failed") : null));
  const mine = (row.customer_calls || []).filter((c) => c.after_message === i)
    .map((c) => el("div", { class: "call" }, `the customer: ${c.name}(${JSON.stringify(c.arguments)}) → ${c.reply}`));
  return el("div", { class: `turn ${message.role}` }, el("div", { class: "who" }, `${i} ${WHO[message.role] || message.role}`),
    el("div", {}, body, ...calls, ...mine, ...found.map((f) => el("div", { class: "why" }, `${f.severity}: ${f.check}. ${f.reason}`))));
}

function folded(title, value) {
  if (value === null || value === undefined || (typeof value === "object" && !Object.keys(value).length)) return null;
  return el("details", {}, el("summary", {}, title), el("pre", {}, typeof value === "string" ? value : JSON.stringify(value, null, 2)));
}

async function open(i, jump = true) {
  current = i;
  const row = await rowAt(i);
  if (current !== i) return;
  const told = index.rows[i];
  document.querySelectorAll("#list [aria-current]").forEach((b) => b.removeAttribute("aria-current"));
  const button = by(`b-${i}`);
  if (button) {
    button.setAttribute("aria-current", "true");
    if (jump) button.scrollIntoView({ block: "nearest" });
  }
  const system = { role: "system", content: row.system ?? index.system };
  const verdict = row.verdict
    ? `${told.state} by ${row.verdict.rule}, reward ${row.verdict.reward}: ${row.verdict.reason}` : row.failure
      ? `failed: ${row.failure.role}, ${row.failure.reason}: ${row.failure.message}` : "unjudged";
  const right = row.oracle ? `Right is: ${row.oracle.ends.join(" or ")}. ${row.oracle.why}` : "";
  put("talk", el("h3", {}, el("b", { class: told.state }, told.state), ` ${told.id}`),
    el("p", {}, Object.entries(told.situation).map(([k, v]) => `${plain(k)}: ${named(v)}`).join(" · ")),
    el("p", {}, `Customer: ${Object.entries(row.persona).map(([k, v]) => `${k} ${plain(v)}`).join(", ")}. Stopped by ${plain(row.stop)}.`),
    el("p", {}, verdict), el("p", {}, right),
    ...[system, ...row.messages].map((m, n) => turn(row, m, n)),
    folded("Card", row.card), folded("World changes", row.changes), folded("Oracle", row.oracle),
    folded("Scores", row.verdict && row.verdict.scores), folded("Prompts and players", row.provenance), folded("Usage", row.usage));
  if (jump) history.replaceState(null, "", `#row=${encodeURIComponent(told.id)}`);
}

function step(by_) {
  const at = chosen.indexOf(current) + by_;
  if (at < 0 || at >= chosen.length) return;
  while (at >= shown) more();
  open(chosen[at]);
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
  const acts = { j: () => step(1), k: () => step(-1), "/": () => by("f-text").focus() };
  if (acts[event.key]) {
    event.preventDefault();
    acts[event.key]();
  }
}

function select(id, label, values) {
  return el("label", {}, `${label} `, el("select", { id, on: { change: applyFilters } }, el("option", { value: "" }, "any"),
    ...values.map((v) => el("option", { value: v }, named(v)))));
}

async function start() {
  index = await unpack(by("index").textContent);
  const axes = Object.keys(index.axes), checks = [...new Set(index.rows.flatMap((row) => row.reasons))].sort();
  put("filters", select("f-state", "state", index.states), select("f-check", "reason", checks),
    ...axes.map((axis) => select(`f-${axis}`, plain(axis), index.axes[axis])),
    el("label", {}, "text ", el("input", { id: "f-text", type: "search", on: { change: applyFilters } })));
  if (axes.length > 1) {
    for (const id of ["axis-a", "axis-b"]) {
      put(id, ...axes.map((axis) => el("option", { value: axis }, plain(axis))));
      by(id).addEventListener("change", drawMap);
    }
    by("axis-b").value = axes[1];
    drawMap();
  }
  bars("textures", countBy((row) => row.texture));
  bars("stances", countBy((row) => row.situation.stance));
  histogram("tokens");
  scatter("spread");
  by("more").addEventListener("click", more);
  document.addEventListener("keydown", keys);
  await applyFilters();
  const asked = new URLSearchParams(location.hash.slice(1)).get("row");
  const at = index.rows.findIndex((row) => row.id === asked);
  if (at >= 0) await open(at);
  document.body.dataset.ready = "yes";
}

start();
