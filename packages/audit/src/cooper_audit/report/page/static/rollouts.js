"use strict";
// The rollout browser: step, then problem, then the completions of its group.

const live = document.body.dataset.live === "true"; // the page comes from `cooper watch --web`, which has all steps
let opened = []; // the groups of the chosen step

function stepsOf(run) { return live ? run.fooled.map((row) => row[0]) : Object.keys(run.steps).map(Number); }

async function groupsAt(run, step) {
  if (!live) return run.steps[step] || [];
  const answer = await fetch(`rollouts/${run.place}/${step}`);
  return answer.ok ? (await answer.json()).map((group) => ({ ...group, of: group.completions.length })) : [];
}

// Whether the page lacks completions of the run's folder.
function isSample(run) {
  return !live && (stepsOf(run).length < run.recorded_steps || Object.values(run.steps).some((groups) => groups.length < run.problems_of_step || groups.some((group) => group.of > group.completions.length)));
}

// `keep`: the run goes on, and what is chosen stays so.
async function showRollouts(run, keep = false) {
  const steps = stepsOf(run), select = document.getElementById("rollout-step");
  const chosen = keep && select.value, problem = keep && document.getElementById("rollout-problem").value;
  document.getElementById("rollouts").hidden = !steps.length;
  document.getElementById("rollouts-none").hidden = Boolean(steps.length);
  const most = Math.max(...Object.values(run.steps).map((groups) => groups.length));
  fill("rollout-rule", !steps.length ? "" : isSample(run) ? `${steps.length} of the ${number(run.recorded_steps)} recorded steps and up to ${most} of the ${run.problems_of_step} problems of each are in this page; rollouts/ has all, and cooper watch --web shows them.` : `All ${number(steps.length)} recorded steps.`);
  if (!steps.length) return;
  fill(select, steps.map((step) => el("option", { value: step }, `step ${step}`)));
  select.value = chosen || String(steps[steps.length - 1]);
  await listProblems(run, problem);
}

async function listProblems(run, problem = false) {
  const step = document.getElementById("rollout-step").value, groups = await groupsAt(run, step);
  if (step !== document.getElementById("rollout-step").value || run !== report.runs[current]) return; // another one was chosen meanwhile
  opened = groups;
  fill("rollout-problem", groups.map((group, i) => el("option", { value: i }, `${i + 1}. ${(group.question || group.problem || "").slice(0, 70)}`)));
  if (problem) document.getElementById("rollout-problem").value = problem;
  listGroup(run);
}

function listGroup(run) {
  const group = opened[Number(document.getElementById("rollout-problem").value)];
  if (!group) { fill("rollout-group", el("p", { class: "empty" }, "This step cannot be read.")); return; }
  const order = document.getElementById("rollout-order").value;
  const completions = [...group.completions];
  if (order !== "drawn") completions.sort((a, b) => numberOf(b[order]) - numberOf(a[order]));
  const shading = document.getElementById("rollout-shading");
  const hasLogprobs = completions.some((one) => one.logprobs);
  shading.disabled = !hasLogprobs;
  shading.parentElement.title = hasLogprobs ? "The darker a token, the less likely it was." : "This step's rollouts hold no log-probabilities.";
  document.getElementById("rollout-no-logprobs").hidden = hasLogprobs;
  const rewards = completions.map((one) => numberOf(one.reward)).filter(Number.isFinite);
  const low = Math.min(0, ...rewards), high = Math.max(1, ...rewards); // one scale for all groups of a reward in [0, 1]
  const step = document.getElementById("rollout-step").value;
  const shown = group.of > completions.length ? `the first ${completions.length} of ${group.of} completions` : `${completions.length} completions`;
  fill("rollout-group",
    el("div", { class: "card item whole" }, el("div", { class: "texts" }, el("div", {}, el("p", { class: "label" }, group.prompt ? "prompt as the policy read it" : "question"), el("pre", { class: "box" }, group.prompt || group.question || "")), el("div", {}, el("p", { class: "label" }, "reference"), el("pre", { class: "box" }, group.answer || "none"), el("p", { class: "scores" }, `${group.problem || ""} · ${shown}`)))),
    completions.map((one) => [one, group.completions.indexOf(one)]).map(([one, index]) => el("article", { class: "card item " + { true: "healthy", false: "hacked", null: "unknown" }[isRight(one)], "data-completion": index },
      el("header", {}, el("span", { class: "score" }, one.reward === "NaN" ? "no opinion" : number(one.reward)), meter(numberOf(one.reward), low, high), one.advantage === undefined ? null : el("span", {}, `advantage ${number(one.advantage)}`), verdictChips(one), el("a", { href: address(run, step, group, index) }, "link")),
      el("pre", { class: "box said" }, completionText(one, shading.checked && hasLogprobs)), el("p", { class: "scores" }, scoreWords(one)))));
}

// Whether gold or else the rule calls a completion right; null where neither has judged it.
function isRight(one) {
  if (typeof one.gold === "boolean") return one.gold;
  return [undefined, null, "silent", "timeout"].includes(one.verdict) ? null : one.verdict === "correct";
}

// Whether the rule has judged a completion and does not accept it.
function isRejected(one) { return ["wrong", "unparsed"].includes(one.verdict); }

function numberOf(value) { return typeof value === "number" ? value : -Infinity; }

function meter(value, low, high) {
  const bar = el("i");
  bar.style.width = `${high > low && Number.isFinite(value) ? (100 * (value - low)) / (high - low) : value > 0 ? 100 : 0}%`;
  return el("span", { class: "meter", title: "reward, from 0 to 1 or as far as the group goes" }, bar);
}

// The text, or its tokens shaded by how unlikely each was.
function completionText(one, shaded = false) {
  if (!shaded || !one.logprobs) return one.text === "" ? el("span", { class: "soft" }, "(empty)") : one.text;
  return one.pieces.map((piece, i) => {
    const logprob = numberOf(one.logprobs[i]);
    const token = el("span", { class: "token", title: `log-probability ${number(logprob)}, probability ${number(Math.exp(logprob))}` }, piece);
    token.style.background = `rgb(217 72 15 / ${Math.min(0.75, (1 - Math.exp(logprob)) * 0.75).toFixed(2)})`;
    return token;
  });
}
