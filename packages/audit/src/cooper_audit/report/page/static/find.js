"use strict";
// Finds completions by their words, verdicts and numbers: all of the run where the page has or can read all.

const FOUND = 500; // the most that are kept to be shown
let search = 0; // the number of the newest search; an older one gives up

function showFind(run) {
  const select = document.getElementById("find-number"), chosen = select.value;
  const all = Object.values(run.steps).flatMap((groups) => groups.flatMap((group) => group.completions.slice(0, 1)));
  const names = [...new Set(all.flatMap((one) => Object.keys(one).filter((name) => typeof one[name] === "number")))];
  fill(select, names.map((name) => el("option", { value: name }, name)));
  select.value = names.includes(chosen) ? chosen : names.includes("reward") ? "reward" : names[0];
  fill("find-rule", isSample(run) ? "Searches the completions in this page, which are a sample; cooper watch --web searches all." : "Searches all recorded completions.");
}

function criterion() {
  const value = (id) => document.getElementById("find-" + id).value;
  const words = value("words").toLowerCase().split(/\s+/).filter(Boolean), name = value("number");
  const low = value("low") === "" ? -Infinity : Number(value("low")), high = value("high") === "" ? Infinity : Number(value("high"));
  const bounded = low > -Infinity || high < Infinity;
  const empty = !words.length && !value("verdict") && !bounded;
  const verdicts = { right: (one) => isRight(one) === true, wrong: (one) => isRight(one) === false, disputed: (one) => (one.gold === true && isRejected(one)) || (one.gold === false && one.verdict === "correct"), unread: (one) => !["correct", "wrong"].includes(one.verdict) };
  const verdict = verdicts[value("verdict")] || (() => true);
  return empty ? null : (group, one) => {
    if (bounded && !(numberOf(one[name]) >= low && numberOf(one[name]) <= high)) return false;
    if (!verdict(one)) return false;
    const text = words.length ? [group.question, group.answer, group.problem, one.text, one.verdict].join("\n").toLowerCase() : "";
    return words.every((word) => text.includes(word));
  };
}

async function find(run) {
  const own = ++search, matches = criterion(), found = [];
  const steps = stepsOf(run);
  let seen = 0, count = 0;
  fill("find-items");
  fill("find-count");
  for (const [place, step] of matches ? steps.entries() : []) {
    const groups = await groupsAt(run, step);
    if (own !== search) return;
    for (const group of groups) for (const one of group.completions) {
      seen += 1;
      if (!matches(group, one)) continue;
      count += 1;
      if (found.length < FOUND) found.push({ ...group, ...one, step, group, score: one.reward });
    }
    if (live || place === steps.length - 1) fill("find-count", `${number(count)} of ${number(seen)} completions` + (place < steps.length - 1 ? `, step ${step} …` : ""));
  }
  if (matches) listFound(run, found, count, PAGE);
}

function listFound(run, found, count, shown) {
  const rest = Math.min(count, FOUND) - shown;
  fill("find-items", found.slice(0, shown).map((item) => galleryItem(run, item)), rest > 0 ? el("button", { onclick: () => listFound(run, found, count, shown + PAGE) }, `show ${Math.min(PAGE, rest)} more`) : count > FOUND && el("p", { class: "empty" }, `Only the first ${FOUND} are listed; narrow the search.`));
}
