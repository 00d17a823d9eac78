"use strict";
// Everything else about a run: charts by section, stages, every metric, pairs, faults and settings.

function panelLines(panel, run) {
  if (panel.by_run) {
    const metric = Object.keys(panel.metrics).find((name) => report.runs.some((one) => points(one, name).length));
    if (!metric) return [];
    return report.runs.map((one) => ({ ...runLine(one, metric), faint: report.runs.length > 1 && one !== run })).filter((line) => line.points.length);
  }
  const names = { ...panel.metrics };
  if (panel.prefix) for (const name of Object.keys(run.curves.columns)) if (name.startsWith(panel.prefix) && !(name in names) && !panel.leave_out.includes(name)) names[name] = name.slice(panel.prefix.length).replaceAll("_", " ");
  return Object.entries(names).map(([name, label], i) => ({ name: label, colour: report.palette[i % report.palette.length], points: points(run, name) })).filter((line) => line.points.length);
}

function showSections(run) {
  for (const section of report.sections) {
    const charts = section.panels.map((panel) => { const lines = panelLines(panel, run); return lines.length ? lineChart(panel.title, lines, { share: panel.share, note: panel.note, legend: !panel.by_run }) : null; });
    const runs = report.runs.length > 1 && report.runs.length <= MOST_IN_LEGEND ? el("div", { class: "whole" }, legend(report.runs.map((one) => ({ name: one.label, colour: one.colour })))) : null;
    fill(section.id, charts.some(Boolean) ? [runs, ...charts] : el("p", { class: "empty" }, "Nothing of this is on record."));
  }
  showStages(run);
  showMetrics(run);
  showPairs(run);
  showFaults(run);
  fill("settings-text", run.config);
  fill("facts-more", Object.entries(run.provenance).flatMap(([name, value]) => [el("dt", {}, name), el("dd", { class: "mono small" }, value)]));
}

// Seconds of every part in all recorded steps together, and the most memory of any step, where it is on record.
function showStages(run) {
  const most = Math.max(...run.stages.map((stage) => stage.seconds), 1e-9);
  const memory = [["memory", "#memory, MiB"], ["gpu_memory", "#GPU memory, MiB"]].filter(([name]) => run.stages.some((stage) => stage[name] !== null));
  const rows = run.stages.map((stage) => [stage.name, number(stage.seconds), el("span", { class: "meter" }, bar(stage.seconds / most)), ...memory.map(([name]) => (stage[name] === null ? "–" : number(stage[name])))]);
  fill("stages", rows.length ? el("div", { class: "card" }, table(["part of a step, in all steps", "#seconds", "", ...memory.map((one) => one[1])], rows)) : null);
}

function bar(part) {
  const inner = el("i");
  inner.style.width = `${100 * part}%`;
  return inner;
}

// The values of two metrics at the steps that record both: [x, y, step].
function together(run, x, y) {
  const own = new Map(points(run, x));
  return points(run, y).filter((point) => own.has(point[0])).map(([step, value]) => [own.get(step), value, step]);
}

let drawn = null; // the metric that was clicked

function showMetrics(run) {
  const chosen = document.getElementById("metric-against").value;
  const all = [...new Set(report.runs.flatMap((one) => Object.keys(one.last)))].sort();
  fill("metric-against", el("option", { value: "" }, "the steps"), all.map((name) => el("option", { value: name }, name)));
  document.getElementById("metric-against").value = chosen;
  const wanted = document.getElementById("metric-search").value.toLowerCase();
  const names = [...new Set(report.runs.flatMap((one) => Object.keys(one.last)))].filter((name) => name.toLowerCase().includes(wanted)).sort();
  const headings = ["metric", ...report.runs.map((one) => "#" + (report.runs.length > 1 ? one.label : "last value"))];
  const rows = names.map((name) => el("tr", { class: "pick", title: "draw it", onclick: () => drawMetric(name, run) }, el("td", { class: "mono small" }, name), report.runs.map((one) => el("td", { class: "num" }, number(one.last[name])))));
  fill("metric-table", table(headings, rows));
  if (drawn) drawMetric(drawn, run);
}

function drawMetric(name, run) {
  drawn = name;
  const against = document.getElementById("metric-against").value;
  if (against) {
    const clouds = report.runs.map((one) => ({ name: one.label, colour: one.colour, points: together(one, against, name) })).filter((cloud) => cloud.points.length);
    fill("metric-chart", clouds.length ? scatterChart(`${name} against ${against}`, clouds, document.getElementById("metric-chart").clientWidth) : el("p", { class: "empty" }, "No step records both."));
    return;
  }
  const lines = report.runs.map((one) => ({ ...runLine(one, name), faint: report.runs.length > 1 && one !== run })).filter((line) => line.points.length);
  fill("metric-chart", lines.length ? lineChart(name, lines, { height: 220, legend: report.runs.length > 1 }) : null);
}

function showPairs(run) {
  const rows = run.pairs.map((pair) => [number(pair.step), el("pre", {}, pair.question || ""), el("pre", {}, pair.positive), el("pre", {}, pair.negative), pair.negative_origin || "", `${number(pair.positive_logit_before)} → ${number(pair.positive_logit_after)}`, `${number(pair.negative_logit_before)} → ${number(pair.negative_logit_after)}`]);
  document.getElementById("pairs-part").hidden = !rows.length;
  fill("pairs", table(["#step", "question", "right", "wrong", "origin", "#logit of right", "#logit of wrong"], rows));
}

function showFaults(run) {
  const rows = run.events.filter((event) => event.metric || event.action === "died").map((event) => [number(event.step), number(event.since), event.message || "", "back_to" in event ? `${event.action} to step ${event.back_to}` : event.action]);
  document.getElementById("faults-part").hidden = !rows.length;
  fill("faults", table(["#step", "#since", "what", "action"], rows));
}
