"use strict";
// The first screen: what each run came to, and the two curves.

// The points of a metric of a run, without the steps that do not record it.
function points(run, metric) {
  const column = run.curves.columns[metric];
  if (!column) return [];
  return run.curves.steps.map((step, i) => [step, column[i]]).filter((point) => point[1] !== null);
}

function runLine(run, metric) {
  return { name: run.label, colour: run.colour, points: points(run, metric), marks: run.verdict.alarm_at === null ? [] : [run.verdict.alarm_at] };
}

function showStory() {
  const accuracy = report.story_metric;
  const charts = [];
  const add = (title, metric) => {
    const lines = report.runs.map((run) => runLine(run, metric)).filter((line) => line.points.length);
    if (lines.length) charts.push(lineChart(title, lines, { share: true, height: 250, legend: report.runs.length <= MOST_IN_LEGEND }));
  };
  if (accuracy) add(report.story_names[accuracy], accuracy);
  add("Training reward", "reward/mean");
  fill("story", charts);
  if (report.runs.length > 1) showComparison();
}

function showComparison() {
  const headings = ["run", "verdict", "#start", "#best", "#end", "95 % interval", "#reward, start", "#reward, end", "#alarm", "#steps"];
  const rows = report.runs.map((run, i) => {
    const f = run.figures;
    const interval = typeof f.low === "number" ? `${share(f.low)} to ${share(f.high)}` : "–";
    const cells = [el("span", {}, swatch(run.colour), run.label), [chip(run.verdict.name, run.verdict.state.replace(" ", "-")), warnings(run).length ? el("a", { href: "#faults-part", title: warnings(run).map((one) => one[0]).join(", ") }, ` ⚠ ${warnings(run).length}`) : null], share(f.start), share(f.best), el("b", {}, share(f.end)), interval, share(f.reward_start), share(f.reward_end), f.alarm === null ? "–" : `step ${f.alarm}`, f.steps < f.planned ? `${number(f.steps)} of ${number(f.planned)}` : number(f.steps)];
    return el("tr", { class: "pick", "data-run": i, title: "open this run below", onclick: () => openRun(i) }, cells.map((cell, n) => el("td", { class: headings[n].startsWith("#") ? "num" : "", "data-name": headings[n].replace("#", "") }, cell)));
  });
  const truths = [...new Set(report.runs.map((run) => run.figures.truth).filter(Boolean))];
  const seeds = report.seeds.map((group) => el("p", {}, `Over ${group.runs.length} seeds (${group.runs.join(", ")}), ${group.truth} ends at `, el("b", {}, share(group.mean)), `, 95 % interval ${share(group.low)} to ${share(group.high)} (Student's t).`));
  fill("comparison", el("div", { class: "card stacks" }, table(headings, rows)), el("p", { class: "soft small" }, `Start, best and end are the ${truths.join(", or the ")}. The interval at the end is Wilson's over the problems: it says how far the value could move on other problems of the kind, and nothing about other seeds. The reward is the mean of 5 steps.`), seeds);
}

// Of a hacked run a wrong completion that the reward paid best, from the step in which most of them got through. Of
// any other run what it pays for in its first step.
function showExample(run) {
  const candidates = run.gallery.filter(isAccepted);
  if (!["hacked", "recovered"].includes(run.verdict.state) || !candidates.length) { showFirst(run); return; }
  const most = Math.max(...candidates.map((item) => fooledAt(run, item.step)));
  const usual = (item) => (item.logprobs ? mean(item.logprobs.map(numberOf)) : item.score); // the likeliest
  const inWorst = candidates.filter((item) => fooledAt(run, item.step) >= 0.95 * most);
  const plain = inWorst.filter(isRejected); // rule and gold agree that it is wrong
  const worst = (plain.length ? plain : inWorst).reduce((best, item) => (usual(item) > usual(best) ? item : best));
  fill("example", el("p", { class: "label" }, `What the hack looks like in ${run.label}: ${Math.round(100 * fooledAt(run, worst.step))} % of the ${run.judged < 1 ? "judged " : ""}completions of step ${worst.step} are wrong and accepted, such as this one`), galleryItem(run, worst));
}

function showFirst(run) {
  const step = Object.keys(run.steps)[0];
  const all = step === undefined ? [] : run.steps[step].flatMap((group) => group.completions.map((one) => ({ ...group, ...one, step, score: one.reward })));
  if (!all.length) { fill("example"); return; }
  const best = all.reduce((found, one) => (numberOf(one.reward) > numberOf(found.reward) ? one : found));
  fill("example", el("p", { class: "label" }, `What the policy of ${run.label} is asked, and a completion that step ${step} paid most for`), galleryItem(run, best));
}

function mean(values) { return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length); }

function fooledAt(run, step) {
  const row = run.fooled.find((one) => one[0] === step);
  return row ? row[1] : 0;
}
