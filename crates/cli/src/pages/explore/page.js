// The page: what is given (signals, limits), what is found, and the link that says it all.

const NEAREST = 6;
const LISTED = 12;
const SLICE_MS = 7;
const STRANGE = 1;
const RARE = 10;
const KINDS = ["equal", "rows", "lower", "upper"];
const $ = (id) => document.getElementById(id);

const page = {
  about: JSON.parse($("about").textContent),
  engine: null,
  cases: null,
  signal: [],
  row: null,
  limits: null,
  edited: new Map(),
  answer: null,
};
window.argwhy = page;

function fail(error) {
  $("trouble").hidden = false;
  $("trouble").lastElementChild.textContent = error.message || String(error);
}

// An array of the page's numbers: { at, shape } → a view, row by row.
function view(numbers, place) {
  if (!place) return null;
  const size = place.shape.slice(1).reduce((a, b) => a * b, 1);
  return {
    n: place.shape[0],
    shape: place.shape,
    row: (i) => numbers.subarray(place.at + i * size, place.at + (i + 1) * size),
  };
}

async function start() {
  const { about } = page;
  const [code, bytes] = await Promise.all([unpacked("engine"), unpacked("numbers")]);
  const numbers = new Float64Array(bytes.buffer, 0, bytes.length / 8);
  page.engine = await Engine.start(code, $("model").textContent, numbers.subarray(0, about.model_numbers));
  page.cases = Object.fromEntries(Object.entries(about.arrays).map(([name, place]) => [name, view(numbers, place)]));
  if (page.cases.signals) {
    const { at, shape } = about.arrays.signals;
    page.engine.ask("remember", numbers.subarray(at, at + shape[0] * shape[1]), shape[0]);
  }
  page.typical = typicalSignal();
  page.ranges = decisionRanges();
  build();
  if (!restore()) startFrom(about.typical);
  document.body.dataset.ready = "yes";
}

function typicalSignal() {
  const { about, cases } = page;
  if (about.typical !== null) return Array.from(cases.signals.row(about.typical));
  return about.signals.map(({ low, high }) => (low + high) / 2);
}

// What each decision's axis shows: past decisions, else what is desired over the seen situations.
function decisionRanges() {
  const { about, cases, engine } = page;
  const n = about.decisions.length;
  const ranges = about.decisions.map(() => [Infinity, -Infinity]);
  const take = (values) => values.forEach((v, j) => {
    ranges[j] = [Math.min(ranges[j][0], v), Math.max(ranges[j][1], v)];
  });
  if (cases.decisions) {
    for (let i = 0; i < cases.decisions.n; i++) take(cases.decisions.row(i));
  } else {
    const ends = about.signals.flatMap(({ low, high }, j) => [low, high].map((end) => page.typical.with(j, end)));
    const few = cases.signals ? Math.min(100, cases.signals.n) : 0;
    for (let i = 0; i < few; i++) ends.push(cases.signals.row(Math.floor((i * cases.signals.n) / few)));
    ends.forEach((signal) => take(engine.answer(signal, n).desired));
  }
  return ranges.map(([low, high]) => {
    const room = high > low ? 0.12 * (high - low) : Math.max(1, Math.abs(low));
    return [low - room, high + room];
  });
}

// ---- limits

// Those of case `i`, with what the reader has changed.
function limitsOf(i) {
  const { about, cases, edited } = page;
  const n = about.decisions.length;
  const rows = (name) => {
    const array = cases[name];
    return array ? Array.from(array.row(array.n === 1 ? 0 : i)) : [];
  };
  const matrix = (name) => {
    const flat = rows(name);
    return Array.from({ length: flat.length / n }, (_, r) => flat.slice(r * n, (r + 1) * n));
  };
  const side = (name, none) => {
    const own = about.own[name].map((v) => v ?? none);
    const given = rows(name);
    const tighter = none < 0 ? Math.max : Math.min;
    return given.length ? own.map((v, j) => tighter(v, given[j])) : own;
  };
  const limits = {
    matrix: matrix("M"), bound: rows("W"), equalMatrix: matrix("M_eq"), equalBound: rows("W_eq"),
    lower: side("lower", -Infinity), upper: side("upper", Infinity),
  };
  for (const [code, value] of edited) {
    const [list, at] = placeOf(limits, code);
    if (at < list.length) list[at] = value;
  }
  return limits;
}

function placeOf(limits, code) {
  const kind = KINDS[Math.floor(code / 2 ** 30)];
  const list = { equal: limits.equalBound, rows: limits.bound, lower: limits.lower, upper: limits.upper }[kind];
  return [list, code % 2 ** 30];
}

function limitName(code) {
  const { names } = page.about;
  return names[KINDS[Math.floor(code / 2 ** 30)]][code % 2 ** 30];
}

// A message with limits by their names.
function named(message) {
  const kind = { M_eq: "equal", M: "rows", lower: "lower", upper: "upper" };
  return message.replace(/(M_eq|M|lower|upper)\[(\d+)\]/g, (all, list, at) => page.about.names[kind[list]][at] ?? all);
}

function knowsLimits() {
  const { about, cases } = page;
  return !about.constrained || ["M", "W_eq", "lower", "upper"].some((name) => cases[name]);
}

function putLimits() {
  if (!knowsLimits()) return;
  page.limits = limitsOf(page.row ?? 0);
  try {
    page.engine.limit(page.limits);
    $("limits-note").classList.remove("wrong");
    $("limits-note").textContent = page.about.own_only
      ? "The model's own. They can be tightened here, not loosened."
      : `As in row ${page.about.places[page.row ?? 0]}, until changed here.`;
  } catch (error) {
    $("limits-note").classList.add("wrong");
    $("limits-note").textContent = `Nothing is allowed within these limits (${named(error.message)}). What is shown keeps those before.`;
  }
}

// ---- found

// Where decision j may move, all others as they are.
function interval(j, u) {
  const { matrix, bound, equalMatrix, lower, upper } = page.limits;
  let [from, to] = [lower[j], upper[j]];
  const marks = [];
  const mark = (at, name) => { if (Number.isFinite(at)) marks.push({ at, name }); };
  mark(from, page.about.names.lower[j]);
  mark(to, page.about.names.upper[j]);
  matrix.forEach((row, r) => {
    if (row[j] === 0 || !Number.isFinite(bound[r])) return;
    const rest = row.reduce((sum, a, k) => (k === j ? sum : sum + a * u[k]), 0);
    const at = (bound[r] - rest) / row[j];
    if (row[j] > 0) to = Math.min(to, Math.max(at, u[j]));
    else from = Math.max(from, Math.min(at, u[j]));
    mark(at, page.about.names.rows[r]);
  });
  if (equalMatrix.some((row) => row[j] !== 0)) [from, to] = [u[j], u[j]];
  return { allowed: [from, to], marks };
}

function theta(j, k) {
  return page.about.theta ? page.about.theta[j][k] : Number(j === k);
}

function drawDecision(j) {
  const { answer, about } = page;
  const u = answer.decision ?? answer.desired;
  const others = u.reduce((sum, v, k) => (k === j ? sum : sum + theta(j, k) * v), 0);
  const slope = others - answer.desired[j];
  const cost = (v) => (theta(j, j) * (v + u[j]) + 2 * slope) * (v - u[j]);
  const wanted = -slope / theta(j, j);
  const known = answer.decision ? interval(j, u) : { allowed: [1, 0], marks: [] };
  const [low, high] = page.ranges[j];
  const card = $(`decision-${j}`);
  const { unit } = about.decisions[j];
  card.querySelector(".value").textContent = withUnit(u[j], unit);
  const apart = Math.abs(wanted - u[j]) > 1e-9 * Math.max(1, Math.abs(u[j]));
  card.querySelector(".note").textContent = !answer.decision ? "desired; its limits are not known"
    : apart ? `desired ${withUnit(wanted, unit)}` : "as desired";
  card.classList.toggle("held", apart);
  drawCost(card.querySelector("svg"), {
    low: Math.min(low, u[j]), high: Math.max(high, u[j]), cost, best: wanted, desired: wanted,
    decided: answer.decision ? u[j] : null, ...known,
  });
}

function tellHeld() {
  const { answer, about } = page;
  const prices = answer.prices.filter(({ price }) => price !== 0);
  const priced = (price) => (about.money ? `${number(price * about.money.worth)} (in the money of ${about.money.signal})` : number(price));
  let text = "No limit holds it: what is decided is what is wanted.";
  if (!answer.decision) text = "This model's limits come with the data, which this page was made without: it tells what is desired.";
  else if (prices.length) {
    const listed = prices.slice(0, 6).map(({ code, price }) => `${limitName(code)} at a price of ${priced(price)}`);
    if (prices.length > 6) listed.push(`${prices.length - 6} more`);
    text = `It is held by ${listed.join(", and by ")}.`;
  }
  $("held").textContent = text;
  const held = new Map(answer.prices.map(({ code, price }) => [code, price]));
  for (const line of $("limits").querySelectorAll("[data-code]")) {
    const price = held.get(Number(line.dataset.code));
    line.classList.toggle("holds", price !== undefined);
    line.querySelector(".price").textContent = price === undefined ? "" : `price ${priced(price)}`;
  }
  const u = answer.decision ?? answer.desired;
  const short = about.decisions.slice(0, 3).map(({ name, unit }, j) => `${name} ${withUnit(u[j], unit)}`);
  if (u.length > 3) short.push("…");
  $("strip").textContent = short.join(" · ") + (prices.length ? " · held by a limit" : "");
}

function tellFamiliarity() {
  const { answer, about, signal } = page;
  const p = answer.familiarity;
  const outside = about.signals.filter(({ low, high }, j) => signal[j] < low || signal[j] > high).map(({ name }) => name);
  const range = outside.length ? ` Out of its seen range: ${outside.join(", ")}.` : "";
  let [tone, words] = ["good", "Familiar: the model has seen situations like this."];
  if (p === null) [tone, words] = ["neutral", "This model does not tell how familiar a situation is."];
  else if (p < STRANGE) [tone, words] = ["bad", "Strange: hardly any situation it learned from was as unlike the others."];
  else if (p < RARE) [tone, words] = ["caution", `Rare: ${number(p)} % of the situations it learned from were stranger.`];
  $("familiarity").className = `light ${tone}`;
  $("familiarity").lastElementChild.textContent = words + range;
}

function tellPast() {
  const { cases, about, engine, signal } = page;
  if (!cases.signals) return;
  const rows = engine.nearest(signal, NEAREST).map(({ index, alike }) => {
    const go = element("button", { type: "button", className: "row", onclick: () => startFrom(index) }, String(about.places[index]));
    const cells = [element("td", {}, go), element("td", { className: "num" }, number(Math.round(alike * 1e3) / 1e3))];
    if (cases.decisions) cases.decisions.row(index).forEach((v) => cells.push(element("td", { className: "num" }, number(v))));
    return element("tr", {}, ...cells);
  });
  $("past").tBodies[0].replaceChildren(...rows);
}

// ---- pushes: their rows of g are computed in slices, between frames

let pushing = 0;
function startPushing() {
  const { engine, signal, typical } = page;
  const mine = ++pushing;
  page.pushes = null;
  engine.ask("start_pushing", [...signal, ...typical]);
  let rows = 8;
  const slice = () => {
    if (mine !== pushing) return;
    const begun = performance.now();
    let left = 1;
    while (left > 0 && performance.now() - begun < SLICE_MS) {
      const at = performance.now();
      [left] = engine.ask("go_on", [], rows);
      if (performance.now() - at < SLICE_MS / 4) rows = Math.min(256, 2 * rows);
    }
    if (left > 0) setTimeout(slice, 0);
    else {
      page.pushes = engine.ask("pushes", []);
      tellPushes();
    }
  };
  setTimeout(slice, 0);
}

function tellPushes() {
  const { about, pushes, signal, typical } = page;
  if (!pushes) return;
  const n = about.decisions.length;
  const [m, d] = [Number($("pushed").value || 0), about.signals.length];
  const bars = about.signals.map(({ name, unit }, j) => ({
    name: `${name} = ${withUnit(signal[j], unit)}`, push: pushes[j * n + m], moved: signal[j] !== typical[j],
  }));
  const errors = about.signals.map((_, j) => pushes[(d + j) * n + m]);
  const moved = bars.filter((bar) => bar.moved).sort((a, b) => Math.abs(b.push) - Math.abs(a.push));
  drawPushes($("pushes"), moved.slice(0, LISTED));
  const where = about.typical === null ? "the middle of all ranges" : `the typical situation (row ${about.places[about.typical]})`;
  const whole = moved.reduce((sum, bar) => sum + bar.push, 0);
  const more = moved.length > LISTED ? ` ${moved.length - LISTED} more signals have smaller parts.` : "";
  const sampled = pushes[pushes.length - 1] ? "" : ` Sampled; standard error at most ${number(Math.max(...errors))}.`;
  $("pushes-note").textContent = moved.length
    ? `Beside ${where}, signals pushed what is desired by ${number(whole)} in all.${more}${sampled}`
    : `This is ${where}: nothing pushed it.`;
}
