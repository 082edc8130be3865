// Numbers, words and pictures.

// As in argwhy's other pages: four digits, a real minus sign, thousands from 10,000 on.
function number(value) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "–" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  let text;
  if (size < 1e-4 || size >= 1e7) {
    text = value.toExponential(2).replace(".00e", "e").replace("e+", "e");
  } else {
    const decimals = Math.max(0, 3 - Math.floor(Math.log10(size)));
    text = value.toFixed(decimals);
    if (text.includes(".")) text = text.replace(/0+$/, "").replace(/\.$/, "");
    if (size >= 9999.5) text = text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  }
  return text.replace(/-/g, "−");
}

function withUnit(value, unit) {
  return unit ? `${number(value)} ${unit}` : number(value);
}

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";
function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const WIDTH = 300;
const HEIGHT = 100;
const FLOOR = 66;
const POINTS = 48;

// The cost along one decision: bold where allowed, limits as lines, decided and desired as marks.
// `curve`: { low, high, cost(v), allowed: [from, to], decided, desired, marks: [{ at, name }], unit }
function drawCost(svg, curve) {
  const { low, high, allowed } = curve;
  const x = (v) => 8 + ((WIDTH - 16) * (v - low)) / (high - low || 1);
  let top = Math.max(curve.cost(low), curve.cost(high), Number.MIN_VALUE);
  const bottom = Math.min(0, curve.cost(Math.min(Math.max(curve.best, low), high)));
  const y = (cost) => FLOOR - ((FLOOR - 8) * (cost - bottom)) / (top - bottom || 1);
  const line = (from, to) => {
    const points = [];
    for (let i = 0; i <= POINTS; i++) {
      const v = from + ((to - from) * i) / POINTS;
      points.push(`${x(v).toFixed(1)},${y(curve.cost(v)).toFixed(1)}`);
    }
    return points.join(" ");
  };
  const inside = [Math.max(low, allowed[0]), Math.min(high, allowed[1])];
  const parts = [
    shape("polyline", { points: line(low, high), class: "beyond" }),
    shape("line", { x1: 8, x2: WIDTH - 8, y1: FLOOR, y2: FLOOR, class: "axis" }),
  ];
  if (inside[0] <= inside[1]) {
    parts.unshift(shape("rect", {
      x: x(inside[0]), width: Math.max(1, x(inside[1]) - x(inside[0])), y: 4, height: FLOOR - 4, class: "allowed",
    }));
    parts.push(shape("polyline", { points: line(inside[0], inside[1]), class: "within" }));
  }
  for (const { at, name } of curve.marks) {
    if (at < low || at > high) continue;
    const mark = shape("line", { x1: x(at), x2: x(at), y1: 4, y2: FLOOR + 4, class: "limit" });
    mark.append(shape("title", {}, name));
    parts.push(mark);
  }
  parts.push(shape("text", { x: 8, y: HEIGHT - 6, class: "end" }, number(low)));
  parts.push(shape("text", { x: WIDTH - 8, y: HEIGHT - 6, class: "end", "text-anchor": "end" }, number(high)));
  const desired = Math.min(Math.max(curve.desired, low), high);
  const dx = x(desired);
  parts.push(shape("path", { d: `M${dx - 6},${FLOOR + 11} h12 l-6,-9 z`, class: "desired" }));
  if (curve.decided !== null) {
    parts.push(shape("circle", { cx: x(curve.decided), cy: y(curve.cost(curve.decided)), r: 5.5, class: "decided" }));
  }
  svg.replaceChildren(...parts);
}

// Bars to both sides of a middle line, one a signal.
function drawPushes(box, bars) {
  const most = Math.max(...bars.map((bar) => Math.abs(bar.push)), Number.MIN_VALUE);
  box.replaceChildren(...bars.map((bar) => {
    const share = (50 * Math.abs(bar.push)) / most;
    const fill = element("span", { className: bar.push < 0 ? "fill down" : "fill up" });
    fill.style.width = `${share}%`;
    return element("div", { className: "push" },
      element("span", { className: "name" }, bar.name),
      element("span", { className: "track", ariaHidden: "true" }, fill),
      element("span", { className: "value" }, (bar.push > 0 ? "+" : "") + number(bar.push)),
    );
  }));
}
