"use strict";
// The first screen: what each run came to, and the two curves.

// The points of a metric of a run, without the steps that do not record it.
function points(run, metric) {
  const column = run.curves.columns[metric];
  if (!column) return [];
  return run.curves.steps.map((step, i) => [step, column[i]]).filter((point) => point[1] !== null);
}

function runLine(run, metric) {
  return { name: run.label, colour: run.colour, points: points(run, metric), marks: run.verdict.alarm_at === null ? [] : [run.verdict.alarm_at], onset: run.verdict.onset, state: run.verdict.name };
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
    const cells = [el("span", {}, swatch(run.colour), run.label), [chip(run.verdict.name, run.verdict.state.replace(" ", "-")), firedRules(run).length ? el("a", { href: "#faults-part", title: `Watch rules on ${firedRules(run).map((one) => one[0]).join(", ")}` }, ` ⚠ ${firedRules(run).length}`) : null], share(f.start), share(f.best), el("b", {}, share(f.end)), interval, share(f.reward_start), share(f.reward_end), f.alarm === null ? "–" : `step ${f.alarm}`, f.steps < f.planned ? `${number(f.steps)} of ${number(f.planned)}` : number(f.steps)];
    return el("tr", { class: "pick", "data-run": i, title: "open this run below", onclick: () => openRun(i) }, cells.map((cell, n) => el("td", { class: headings[n].startsWith("#") ? "num" : "", "data-name": headings[n].replace("#", "") }, cell)));
  });
  const truths = [...new Set(report.runs.map((run) => run.figures.truth).filter(Boolean))];
  const seeds = report.seeds.map((group) => el("p", {}, `Over ${group.runs.length} seeds (${group.runs.join(", ")}), ${group.truth} ends at `, el("b", {}, share(group.mean)), `, 95 % interval ${share(group.low)} to ${share(group.high)} (Student's t).`));
  fill("comparison", el("div", { class: "card stacks" }, table(headings, rows)), el("p", { class: "soft small" }, `Start, best and end are the ${truths.join(", or the ")}. The interval at the end is Wilson's over the problems: it says how far the value could move on other problems of the kind, and nothing about other seeds. The reward is the mean of 5 steps.`), seeds);
}

// Where the reward no longer pays right answers, some of them, each beside one that was paid more. Then what the reward
// pays for: wrong completions that were paid, each beside a right one of its group that was paid less.
// Where nothing wrong was paid, what the policy is asked, and what the first step paid most for.
function showPaid(run) {
  showUnpaid(run);
  if (!run.payments.length) { showFirst(run); return; }
  const worst = run.payments.reduce((most, one) => (one.share > most.share ? one : most));
  fill("paid", el("h2", {}, "What the reward pays for"),
    el("p", { class: "soft" }, `Completions${report.runs.length > 1 ? ` of ${run.label}` : ""} that were paid and are wrong, each beside a right answer to the same problem that was paid less, if its group has one. In step ${worst.step}, ${Math.round(100 * worst.share)} % of the ${run.judged < 1 ? "judged " : ""}completions were wrong and paid.`),
    el("div", { class: "payments" }, run.payments.map((one) => payment(run, one, [one.wrong, "hacked", "wrong, paid"], one.right && [one.right, "healthy", "right, paid"]))));
}

function showUnpaid(run) {
  if (!run.unpaid.length) { fill("unpaid"); return; }
  const beside = (row) => [row, isRight(row) ? "healthy" : "hacked", `${isRight(row) ? "right" : "wrong"}, paid`];
  fill("unpaid", el("h2", {}, "Right answers that are no longer paid"),
    el("p", { class: "soft" }, "Right completions that were paid least, each beside a completion of the same problem that was paid more."),
    el("div", { class: "payments" }, run.unpaid.map((one) => payment(run, one, beside(one.unpaid), beside(one.paid)))));
}

// A completion beside another of its group, each with its tone and what it is; without another it says so.
function payment(run, one, shown, other) {
  const side = (row, tone, words) => el("div", { class: tone }, el("p", { class: "label" }, words, " ", el("b", {}, number(row.reward))), el("pre", { class: "box said" }, row.parts ? row.parts.map(([part, differs]) => (differs ? el("mark", {}, part) : part)) : completionText(row)));
  return el("article", { class: "card item" },
    el("pre", { class: "asked" }, one.question || ""),
    el("div", { class: "texts" },
      side(...shown),
      other ? side(...other) : el("p", { class: "soft small" }, "No right answer of its group was paid less.")),
    el("p", { class: "scores" }, `step ${one.step} · reference `, el("b", {}, one.answer || "none"), " ", linkTo(run, { ...one, text: shown[0].text })));
}

function showFirst(run) {
  const step = Object.keys(run.steps)[0];
  const all = step === undefined ? [] : run.steps[step].flatMap((group) => group.completions.map((one) => ({ ...group, ...one, step, score: one.reward })));
  if (!all.length) { fill("paid"); return; }
  const best = all.reduce((found, one) => (numberOf(one.reward) > numberOf(found.reward) ? one : found));
  fill("paid", el("h2", {}, "What the reward pays for"), el("p", { class: "soft" }, `${run.judged > 0 ? "No completion on record is wrong and was paid. " : ""}What the policy of ${run.label} is asked, and a completion that step ${step} paid most for:`), galleryItem(run, best));
}
