"use strict";
// Opens a run in the lower half of the page. The upper half shows all runs at once.

let current = 0;

function openRun(index) {
  current = index;
  const run = report.runs[index];
  for (const row of document.querySelectorAll("tr[data-run]")) row.classList.toggle("on", Number(row.dataset.run) === index);
  document.getElementById("run-choice").value = String(index);
  const verdict = run.verdict;
  const box = fill("verdict", el("b", {}, verdict.name), el("div", {}, el("p", {}, verdict.sentence), el("details", { open: true }, el("summary", {}, `${verdict.signals.length} signal${verdict.signals.length === 1 ? "" : "s"}`), el("ul", { class: "signals" }, verdict.signals.map((signal) => el("li", { class: signal.state }, signal.text))))));
  box.className = "verdict " + verdict.state.replace(" ", "-");
  if (report.runs.length === 1) fill("summary", Object.entries(run.facts).filter(([name]) => name !== "run").map(([name, value]) => (["kind", "steps"].includes(name) ? value : `${name} ${value}`)).join(" · "));
  fill("facts", Object.entries(run.facts).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
  showExample(run);
  showGallery(run);
  showRollouts(run);
  showSections(run);
}

function start() {
  report.runs.forEach((run, i) => { run.colour = report.colours[i]; });
  showStory();
  fill("run-choice", report.runs.map((run, i) => el("option", { value: i }, run.label)));
  const on = (id, event, act) => document.getElementById(id).addEventListener(event, () => act(report.runs[current]));
  on("gallery-search", "input", (run) => { gallery.shown = PAGE; listGallery(run); });
  on("gallery-order", "change", listGallery);
  on("rollout-step", "change", listProblems);
  on("rollout-problem", "change", listGroup);
  on("rollout-order", "change", listGroup);
  on("rollout-shading", "change", listGroup);
  on("metric-search", "input", showMetrics);
  document.getElementById("run-choice").addEventListener("change", (event) => openRun(Number(event.target.value)));
  const rows = report.differences.map((row) => [el("span", { class: "mono small" }, row.key), ...row.values.map((value) => el("span", { class: "mono small" }, value === null ? "–" : value))]);
  if (rows.length) fill("differences", table(["setting", ...report.runs.map((run) => run.label)], rows));
  openRun(report.opens_at);
}

start();
