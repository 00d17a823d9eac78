"use strict";
// Line charts over the steps as SVG: integer ticks, a guide that shows every value, marks where an alarm went off, and
// the steps shaded since which something holds, such as a hack.

const SVG = "http://www.w3.org/2000/svg";
const MOST_IN_LEGEND = 12; // of more runs the table has the colours

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Ticks at round distances, at most `count` of them; whole numbers only where `whole` is set.
function ticks(low, high, count, whole = false) {
  const span = high - low || 1;
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  let width = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough && !(whole && one % 1)) || power * 10;
  if (whole) width = Math.max(1, Math.round(width));
  const found = [];
  for (let value = Math.ceil(low / width - 1e-9) * width; value <= high + width * 1e-6; value += width) found.push(Number(value.toPrecision(12)));
  return found;
}

// `lines`: [{name, colour, points: [[step, value]], marks: [step], onset: [from, to], state: what holds since then}]. Points without a value are left out before.
function lineChart(title, lines, options = {}) {
  const frame = el("figure", { class: "card chart", "data-title": title });
  frame.style.margin = "0";
  frame.append(el("h3", {}, title, options.note ? el("span", { class: "note" }, options.note) : null));
  const holder = el("div");
  frame.append(holder);
  if (options.legend) frame.append(legend(lines));
  const tip = el("div", { class: "tip", hidden: true });
  frame.append(tip);
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.round(holder.clientWidth);
    if (now > 0 && now !== width) holder.replaceChildren(drawing((width = now), title, lines, options, tip, frame));
  }).observe(holder);
  return frame;
}

function legend(lines) {
  const entries = lines.map((line) => el("span", {}, swatch(line.colour), line.name));
  if (lines.some((line) => (line.marks || []).length)) entries.push(el("span", {}, "▲ the reward-hacking alarm goes off"));
  const states = [...new Set(lines.filter((line) => line.onset).map((line) => line.state.toLowerCase()))];
  if (states.length) entries.push(el("span", {}, el("i", { class: "swatch onset-key" }), `${states.join(", or ")}; the darker part: where it began`));
  return el("div", { class: "legend" }, entries);
}

function drawing(width, title, lines, options, tip, frame) {
  const height = options.height || 170;
  const area = { left: 40, right: width - 8, top: 10, bottom: height - 22 };
  const all = lines.flatMap((line) => line.points);
  const steps = all.map((point) => point[0]);
  const first = Math.min(...steps, 0), last = Math.max(...steps, 1);
  const [low, high] = range(all.map((point) => point[1]), options.share);
  const x = (step) => area.left + ((step - first) / (last - first)) * (area.right - area.left);
  const y = (value) => area.bottom - ((value - low) / (high - low)) * (area.bottom - area.top);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", tabindex: 0, "aria-label": `${title}: ${lines.map((line) => line.name).join(", ")}` });
  for (const line of lines.filter((one) => one.onset)) {
    const [from, to] = line.onset.map(x), colour = lines.length > 1 ? line.colour : "var(--bad)";
    for (const [start, end, opacity] of [[from, x(last), 0.07], [from, Math.max(to, from + 3), 0.16]]) {
      const band = svg("rect", { class: "onset", x: start, width: Math.max(0, end - start), y: area.top, height: area.bottom - area.top });
      band.style.fill = colour;
      band.style.opacity = opacity;
      picture.append(band);
    }
  }
  for (const tick of ticks(low, high, 4)) {
    picture.append(svg("line", { class: "axis", x1: area.left, x2: area.right, y1: y(tick), y2: y(tick) }));
    picture.append(words(area.left - 6, y(tick) + 4, number(tick), "end"));
  }
  for (const tick of ticks(first, last, Math.max(2, Math.floor(width / 80)), true)) picture.append(words(x(tick), height - 6, number(tick), "middle"));
  for (const line of lines) {
    const path = line.points.map((point, i) => `${i ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`).join("");
    const curve = svg("path", { d: path });
    curve.style.stroke = line.colour;
    if (line.faint) curve.style.opacity = 0.5;
    picture.append(curve);
    if (line.points.length === 1) picture.append(dot(x(line.points[0][0]), y(line.points[0][1]), line.colour));
    for (const step of line.marks || []) {
      const value = between(line.points, step);
      if (value === null) continue;
      const mark = svg("path", { d: `M${x(step)} ${y(value) - 5}l6 10h-12z`, class: "mark" });
      mark.style.fill = line.colour;
      mark.style.stroke = "var(--card)";
      mark.style.strokeWidth = "1.5";
      mark.append(svg("title", {}, `${line.name}: alarm at step ${step}`));
      picture.append(mark);
    }
  }
  addGuide(picture, { x, y, area, first, last, width }, lines, tip, frame);
  return picture;
}

// A dot for every step at the values of two metrics; later steps are stronger. `clouds`: [{name, colour, points: [[x, y, step]]}].
function scatterChart(title, clouds, room) {
  const width = Math.max(260, Math.min(640, room - 30)), height = Math.round(width / 2), area = { left: 48, right: width - 12, top: 10, bottom: height - 24 };
  const all = clouds.flatMap((cloud) => cloud.points);
  const [left, right] = range(all.map((point) => point[0])), [low, high] = range(all.map((point) => point[1]));
  const x = (value) => area.left + ((value - left) / (right - left)) * (area.right - area.left);
  const y = (value) => area.bottom - ((value - low) / (high - low)) * (area.bottom - area.top);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, style: `max-width: ${width}px` });
  for (const tick of ticks(low, high, 5)) {
    picture.append(svg("line", { class: "axis", x1: area.left, x2: area.right, y1: y(tick), y2: y(tick) }));
    picture.append(words(area.left - 6, y(tick) + 4, number(tick), "end"));
  }
  for (const tick of ticks(left, right, 6)) picture.append(words(x(tick), height - 6, number(tick), "middle"));
  const last = Math.max(1, ...all.map((point) => point[2]));
  for (const cloud of clouds) for (const point of cloud.points) {
    const mark = dot(x(point[0]), y(point[1]), cloud.colour);
    mark.style.opacity = 0.25 + (0.75 * point[2]) / last;
    mark.append(svg("title", {}, `${cloud.name}, step ${point[2]}: ${number(point[0])}, ${number(point[1])}`));
    picture.append(mark);
  }
  return el("figure", { class: "card chart", style: "margin:0", "data-title": title }, el("h3", {}, title, el("span", { class: "note" }, "a dot for every step, later ones stronger")), picture, clouds.length > 1 ? legend(clouds) : null);
}

function range(values, isShare) {
  const low = Math.min(...values), high = Math.max(...values);
  if (isShare && low >= 0 && high <= 1) return [0, 1];
  if (!values.length || !Number.isFinite(low) || (low === 0 && high === 0)) return [0, 1];
  const bottom = low >= 0 && low < high * 0.6 ? 0 : low;
  if (bottom === high) return [bottom - Math.abs(bottom || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  const room = (high - bottom) * 0.06;
  return [bottom === 0 ? 0 : bottom - room, high + room];
}

function words(x, y, text, anchor) { return svg("text", { x, y, "text-anchor": anchor }, text); }

function dot(x, y, colour) {
  const circle = svg("circle", { cx: x, cy: y, r: 3.5 });
  circle.style.fill = colour;
  return circle;
}

// The last value up to a step, or null before the first.
function valueAt(points, step) {
  let found = null;
  for (const point of points) { if (point[0] > step) break; found = point[1]; }
  return found;
}

// The height of a line at a step, also between two of its points.
function between(points, step) {
  const next = points.findIndex((point) => point[0] >= step);
  if (next < 0) return null;
  const [x, y] = points[next];
  if (x === step) return y;
  if (next === 0) return null;
  const [x0, y0] = points[next - 1];
  return y0 + ((y - y0) * (step - x0)) / (x - x0);
}

// A vertical guide under the pointer or, with the arrow keys, at any step; beside it the value of every line.
function addGuide(picture, scale, lines, tip, frame) {
  const layer = svg("g", {});
  picture.append(layer);
  const steps = [...new Set(lines.flatMap((line) => line.points.map((point) => point[0])))].sort((a, b) => a - b);
  let at = null;
  const show = (index) => {
    at = Math.max(0, Math.min(steps.length - 1, index));
    const step = steps[at], x = scale.x(step);
    const found = lines.map((line) => [line, valueAt(line.points, step)]).filter((entry) => entry[1] !== null);
    layer.replaceChildren(svg("line", { class: "guide", x1: x, x2: x, y1: scale.area.top, y2: scale.area.bottom }));
    for (const [line, value] of found) layer.append(dot(x, scale.y(value), line.colour));
    fill(tip, el("b", {}, `step ${number(step)}`), found.map(([line, value]) => el("div", {}, el("span", {}, swatch(line.colour), line.name), el("b", {}, number(value)))));
    tip.hidden = false;
    const right = x > scale.width / 2;
    tip.style.left = right ? "auto" : `${x + 24}px`;
    tip.style.right = right ? `${frame.clientWidth - x - 4}px` : "auto";
    tip.style.top = "2.2rem";
  };
  const hide = () => { layer.replaceChildren(); tip.hidden = true; at = null; };
  const follow = (event) => {
    if (!steps.length) return;
    const box = picture.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width * scale.width - scale.area.left) / (scale.area.right - scale.area.left);
    const wanted = scale.first + share * (scale.last - scale.first);
    show(steps.reduce((best, step, i) => (Math.abs(step - wanted) < Math.abs(steps[best] - wanted) ? i : best), 0));
  };
  picture.addEventListener("pointermove", follow);
  picture.addEventListener("pointerdown", follow);
  picture.addEventListener("pointerleave", hide);
  picture.addEventListener("blur", hide);
  picture.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (move && steps.length) { event.preventDefault(); show(at === null ? 0 : at + move); }
  });
}
