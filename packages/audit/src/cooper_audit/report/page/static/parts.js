"use strict";
// The parts of a run: kinds of its problems as small multiples, those that are lost first, with what was paid in them.

function showParts(run) {
  document.getElementById("parts-part").hidden = !run.parts.length;
  const names = Object.keys(report.part_measures).filter((name) => run.parts.some((part) => part.curves[name]));
  const colours = new Map(names.map((name, i) => [name, report.palette[i % report.palette.length]]));
  const lost = run.parts.filter((part) => part.said.length).length;
  fill("parts-rule", `Kinds of the problems that at least 1 % of the completions are of, by the data's own fields, the form and size of the reference, the length of the question and its wording; ${run.parts.length} of them, ${lost || "none"} with a sign of a loss. Each test shares its error with those of all other parts.`);
  fill("parts-legend", legend(names.map((name) => ({ name: report.part_measures[name], colour: colours.get(name) }))));
  fill("parts", run.parts.map((part) => partChart(part, names, colours)));
  fill("parts-examples", run.parts.filter((part) => part.examples.length).map(partExamples));
}

function partChart(part, names, colours) {
  const onset = part.since === null ? undefined : [part.since, part.since];
  const lines = names.filter((name) => part.curves[name]).map((name, i) => ({ name: report.part_measures[name], colour: colours.get(name), points: part.curves[name], onset: i ? undefined : onset, state: "lost" }));
  const length = part.length.length ? `, length ${number(part.length[0])} → ${number(part.length[1])}` : "";
  const chart = lineChart(part.name, lines, { share: true, height: part.said.length ? 220 : 130, note: `${Math.round(100 * part.share)} % of the completions, ${number(part.problems)} problems${length}` });
  if (part.also.length) chart.append(el("p", { class: "soft small" }, `also ${part.also.slice(0, 3).join(" · ")}`));
  if (part.said.length) {
    chart.classList.add("whole");
    chart.append(...part.said.map((sentence) => el("p", { class: "lost" }, sentence)));
  }
  return chart;
}

function partExamples(part) {
  return el("section", {}, el("h3", {}, `Paid in “${part.name}” since step ${part.since}`), el("div", { class: "items tiles" }, part.examples.map((one) => el("article", { class: "card item" },
    el("pre", { class: "asked" }, one.question || ""),
    el("pre", { class: "box said" }, completionText(one)),
    el("p", { class: "scores" }, `step ${one.step} · paid ${number(one.reward)} · reference `, el("b", {}, one.answer || "none"), " ", verdictChips(one))))));
}
