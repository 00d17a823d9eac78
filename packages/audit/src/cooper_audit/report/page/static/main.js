"use strict";
// Opens a run in the lower half of the page. The upper half shows all runs at once.

let current = 0;

// `keep`: the run goes on, and what is chosen in the page stays so.
function openRun(index, keep = false) {
  current = index;
  const run = report.runs[index];
  for (const row of document.querySelectorAll("tr[data-run]")) row.classList.toggle("on", Number(row.dataset.run) === index);
  document.getElementById("run-choice").value = String(index);
  const verdict = run.verdict;
  const box = fill("verdict", el("p", { class: "verdict-name" }, el("b", {}, verdict.name), verdict.since ? ` ${verdict.since}` : ""), el("p", {}, verdict.sentence), el("p", { class: "soft small" }, (verdict.basis || []).join(" ")), firedRuleChips(run),
    el("p", { class: "label" }, "What to do next"), el("ul", { class: "next" }, verdict.next.map((line) => el("li", {}, line))),
    el("details", { open: verdict.state === "faults" }, el("summary", {}, `what speaks for and against it: ${verdict.signals.length} signal${verdict.signals.length === 1 ? "" : "s"}`), el("ul", { class: "signals" }, verdict.signals.map((signal) => el("li", { class: signal.state }, signal.text)))));
  box.className = "verdict " + verdict.state.replace(" ", "-");
  fill("facts", Object.entries(run.facts).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
  showPaid(run);
  showParts(run);
  showGallery(run, keep);
  showSections(run);
  if (!keep) fill("find-items");
  showFind(run);
  return showRollouts(run, keep);
}

// The watch rules that fired, each once with its steps in the tip.
function firedRules(run) {
  const fired = new Map();
  for (const event of run.events) if (event.metric) fired.set(event.metric, [...(fired.get(event.metric) || []), event]);
  return [...fired];
}

function firedRuleChips(run) {
  const chips = firedRules(run).map(([metric, events]) => el("a", { href: "#faults-part", title: `Watch rule at step ${events.map((event) => event.step).join(", ")}: ${events[0].message || ""}` }, chip(`⚠ ${metric}${events.length > 1 ? ` × ${events.length}` : ""}`, "recovered")));
  return chips.length ? el("p", { class: "fired-rules" }, chips.flatMap((one) => [one, " "])) : null;
}

// The address of a run, and of a step, a problem and a completion in it.
function address(run, step, group, completion) {
  return "#" + new URLSearchParams({ run: run.label, step, problem: group.problem || "", completion });
}

// Parts that are closed on a narrow screen, so that the page is no longer than what is looked for.
const narrow = matchMedia("(max-width: 640px)").matches;

function openPart() {
  const aim = location.hash.length > 1 && !location.hash.includes("=") && document.getElementById(location.hash.slice(1));
  const part = aim && aim.closest("details.part");
  if (part && !part.open) { part.open = true; aim.scrollIntoView(); }
}

async function follow() {
  openPart();
  const wanted = new URLSearchParams(location.hash.slice(1));
  if (!wanted.has("run") && !wanted.has("step")) return;
  const index = report.runs.findIndex((run) => run.label === wanted.get("run"));
  await openRun(index < 0 ? current : index);
  if (!wanted.has("step")) return;
  document.getElementById("rollouts-part").open = true;
  const run = report.runs[current];
  if (!stepsOf(run).includes(Number(wanted.get("step")))) {
    document.getElementById("rollout-rule").textContent = `Step ${wanted.get("step")} is not in this page; the run's folder has it in rollouts/, and cooper watch --web shows it.`;
    document.getElementById("browser").scrollIntoView();
    return;
  }
  document.getElementById("rollout-step").value = wanted.get("step");
  await listProblems(run);
  const place = opened.findIndex((group) => group.problem === wanted.get("problem"));
  if (place >= 0) document.getElementById("rollout-problem").value = String(place);
  listGroup(run);
  const found = place >= 0 && document.querySelector(`#rollout-group [data-completion="${Number(wanted.get("completion"))}"]`);
  if (found) found.classList.add("aimed");
  (found || document.getElementById("browser")).scrollIntoView({ block: "center" });
}

// What is new in the runs, every few seconds while somebody looks at the page.
async function update() {
  const word = (text) => { document.getElementById("live").textContent = text; };
  try {
    const answer = document.hidden ? null : await fetch("data?" + encodeURIComponent(report.version));
    if (answer && answer.status === 200) {
      Object.assign(report, await answer.json());
      colourRuns();
      showStory();
      await openRun(current, true);
    }
    word(answer && !answer.ok ? await answer.text() : report.runs.map((run) => `${report.runs.length > 1 ? run.label + ": " : ""}step ${run.facts.steps}`).join(" · "));
  } catch (error) {
    word("not followed any more: cooper watch has ended");
  }
  setTimeout(update, 2000);
}

function colourRuns() { report.runs.forEach((run, i) => { Object.assign(run, { colour: report.colours[i], place: i }); }); }

function start() {
  if (narrow) for (const part of document.querySelectorAll("details.part")) part.open = false;
  colourRuns();
  showStory();
  fill("run-choice", report.runs.map((run, i) => el("option", { value: i }, run.label)));
  const on = (id, event, act) => document.getElementById(id).addEventListener(event, () => act(report.runs[current]));
  on("gallery-search", "input", (run) => { gallery.shown = PAGE; listGallery(run); });
  on("gallery-order", "change", listGallery);
  on("rollout-step", "change", (run) => listProblems(run));
  on("rollout-problem", "change", listGroup);
  on("rollout-order", "change", listGroup);
  on("rollout-shading", "change", listGroup);
  on("metric-search", "input", showMetrics);
  on("metric-against", "change", showMetrics);
  for (const input of document.querySelectorAll("#find-controls input, #find-controls select")) on(input.id, "input", find);
  document.getElementById("run-choice").addEventListener("change", (event) => openRun(Number(event.target.value)));
  const rows = report.differences.map((row) => [el("span", { class: "mono small" }, row.key), ...row.values.map((value) => el("span", { class: "mono small" }, value === null ? "–" : value))]);
  if (rows.length) fill("differences", table(["setting", ...report.runs.map((run) => run.label)], rows));
  openRun(report.opens_at).then(follow);
  if (live) update();
  window.addEventListener("hashchange", follow);
}

start();
