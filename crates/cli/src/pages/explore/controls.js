// Sliders, limits and the link.

function build() {
  const { about, cases } = page;
  $("signals").replaceChildren(...about.signals.map(slider));
  $("decisions").replaceChildren(...about.decisions.map(card));
  const options = about.decisions.map(({ name }, j) => element("option", { value: String(j) }, name));
  $("pushed").replaceChildren(...options);
  $("pushed").onchange = tellPushes;
  $("which").hidden = about.decisions.length < 2;
  $("row").onchange = chooseRow;
  $("row").disabled = !cases.signals;
  $("typical").onclick = () => startFrom(about.typical);
  $("link").onclick = copyLink;
  window.addEventListener("hashchange", restore);
  $("past-box").hidden = !cases.signals;
  const head = ["row", "alike", ...(cases.decisions ? about.decisions.map(({ name, unit }) => (unit ? `${name}, ${unit}` : name)) : [])];
  $("past").tHead.replaceChildren(element("tr", {}, ...head.map((text, i) => element("th", i ? { className: "num" } : {}, text))));
  $("past-note").textContent = about.past_note;
  buildLimits();
}

function slider({ name, unit, low, high }, j) {
  const range = element("input", {
    type: "range", id: `slider-${j}`, min: String(low), max: String(high), step: "any", disabled: low === high,
  });
  range.oninput = () => setSignal(j, Number(range.value));
  const field = element("input", { type: "number", id: `signal-${j}`, step: "any", inputMode: "decimal" });
  field.onchange = () => (field.value === "" || !Number.isFinite(Number(field.value)) ? show(j) : setSignal(j, Number(field.value)));
  const mark = element("span", { className: "typical", title: "typical" });
  mark.style.left = `${high > low ? (100 * (page.typical[j] - low)) / (high - low) : 50}%`;
  const title = unit ? `${name}, ${unit}` : name;
  range.setAttribute("aria-label", title);
  return element("div", { className: "signal" },
    element("label", { htmlFor: `signal-${j}` }, title), field,
    element("div", { className: "track" }, mark, range),
    element("span", { className: "low" }, number(low)), element("span", { className: "high" }, low === high ? "never changes" : number(high)),
  );
}

function card({ name }, j) {
  const picture = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `cost along ${name}` });
  return element("div", { className: "decision", id: `decision-${j}` },
    element("div", { className: "told" },
      element("span", { className: "name" }, name), element("span", { className: "value" }), element("span", { className: "note" })),
    picture);
}

function buildLimits() {
  const { about } = page;
  $("limits-box").hidden = !knowsLimits();
  if (!knowsLimits()) return;
  const limits = limitsOf(0);
  const lists = [limits.equalBound, limits.bound, limits.lower, limits.upper];
  const lines = lists.flatMap((list, kind) => list.map((value, at) => ({ code: kind * 2 ** 30 + at, kind, at, value })));
  const ever = lines.filter(({ value }) => Number.isFinite(value));
  $("limits-box").hidden = ever.length === 0;
  const titled = ({ code, kind, at }) => {
    if (kind < 2) return limitName(code);
    const { name, unit } = about.decisions[at];
    return unit ? `${name}, ${unit}` : name;
  };
  const made = ever.map((line) => {
    const { code, kind } = line;
    const field = element("input", { type: "number", step: "any", inputMode: "decimal", id: `limit-${code}` });
    field.onchange = () => changeLimit(code, field);
    return element("div", { className: "limit", "data-code": String(code) },
      element("label", { htmlFor: `limit-${code}` }, `${titled(line)} ${["=", "≤", "≥", "≤"][kind]}`), field,
      element("span", { className: "price" }));
  });
  const shown = made.length <= 8 ? made : [element("details", {}, element("summary", {}, `All ${made.length} limits`), ...made)];
  $("limits").replaceChildren(...shown);
  page.names = about.names;
}

function changeLimit(code, field) {
  const value = Number(field.value);
  if (field.value === "" || !Number.isFinite(value)) page.edited.delete(code);
  else page.edited.set(code, value);
  putLimits();
  showLimits();
  later();
}

function showLimits() {
  if (!page.limits) return;
  for (const line of $("limits").querySelectorAll("[data-code]")) {
    const code = Number(line.dataset.code);
    const [list, at] = placeOf(page.limits, code);
    const field = line.querySelector("input");
    if (document.activeElement !== field) field.value = String(Number(list[at].toPrecision(8)));
    line.classList.toggle("edited", page.edited.has(code));
  }
}

function show(j) {
  const { signal } = page;
  const { low, high, unit } = page.about.signals[j];
  const [range, field] = [$(`slider-${j}`), $(`signal-${j}`)];
  range.value = String(signal[j]);
  range.setAttribute("aria-valuetext", withUnit(signal[j], unit));
  field.value = String(Number(signal[j].toPrecision(6)));
  field.closest(".signal").classList.toggle("outside", signal[j] < low || signal[j] > high);
}

function setSignal(j, value) {
  page.signal[j] = value;
  show(j);
  later();
}

// Takes case `i` as it was, limits too; the middle of all ranges where there are no cases.
function startFrom(i) {
  const { about, cases } = page;
  page.row = i;
  page.edited.clear();
  page.signal = i === null ? page.typical.slice() : Array.from(cases.signals.row(i));
  $("row").value = i === null ? "" : String(about.places[i]);
  page.signal.forEach((_, j) => show(j));
  putLimits();
  showLimits();
  later();
}

function caseAt(place) {
  const { places } = page.about;
  let best = 0;
  places.forEach((other, i) => { if (Math.abs(other - place) < Math.abs(places[best] - place)) best = i; });
  return best;
}

function chooseRow() {
  const asked = Number($("row").value);
  if ($("row").value === "" || !Number.isFinite(asked)) return;
  const i = caseAt(asked);
  startFrom(i);
  const found = page.about.places[i];
  $("copied").textContent = found === asked ? "" : `Row ${asked} is not on this page; this is row ${found}.`;
}

// ---- the link

function hash() {
  const { about, signal, row, edited } = page;
  const parts = [`s=${signal.join(",")}`];
  if (row !== null) parts.push(`row=${about.places[row]}`);
  if (edited.size) parts.push(`limits=${[...edited].map(([code, value]) => `${code}:${value}`).join(",")}`);
  return `#${parts.join("&")}`;
}

function restore() {
  const { about, cases } = page;
  if (location.hash.length < 2 || location.hash === page.linked) return page.signal.length > 0;
  const found = new URLSearchParams(location.hash.slice(1));
  const signal = (found.get("s") ?? "").split(",").map(Number);
  if (signal.length !== about.signals.length || !signal.every(Number.isFinite)) {
    $("copied").textContent = "The link belongs to another model: started from a typical situation.";
    return false;
  }
  startFrom(found.has("row") && cases.signals ? caseAt(Number(found.get("row"))) : about.typical);
  page.signal = signal;
  for (const part of (found.get("limits") ?? "").split(",").filter(Boolean)) {
    const [code, value] = part.split(":").map(Number);
    if (Number.isFinite(value) && document.getElementById(`limit-${code}`)) page.edited.set(code, value);
  }
  signal.forEach((_, j) => show(j));
  putLimits();
  showLimits();
  later();
  return true;
}

function copyLink(event) {
  event.preventDefault();
  history.replaceState(null, "", hash());
  const told = (text) => { $("copied").textContent = text; };
  const copied = navigator.clipboard?.writeText(location.href);
  if (copied) copied.then(() => told("copied"), () => told("it is in the address bar"));
  else told("it is in the address bar");
}

// ---- one update a frame

let waiting = false;
function later() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    try {
      update();
    } catch (error) {
      fail(error);
    }
  });
}

let linking = 0;
function update() {
  const begun = performance.now();
  page.answer = page.engine.answer(page.signal, page.about.decisions.length);
  page.about.decisions.forEach((_, j) => drawDecision(j));
  tellHeld();
  tellFamiliarity();
  tellPast();
  const spent = performance.now() - begun;
  page.spent = spent;
  $("speed").textContent = `Answered in ${number(Math.round(10 * spent) / 10)} ms.`;
  startPushing();
  clearTimeout(linking);
  linking = setTimeout(() => {
    page.linked = hash();
    $("link").href = page.linked;
    try {
      history.replaceState(null, "", page.linked);
    } catch {
      // A page inside another may not change its address; the link still has it.
    }
  }, 150);
}

start().catch(fail);
