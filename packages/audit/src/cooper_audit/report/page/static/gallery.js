"use strict";
// The hack gallery: wrong completions that were paid, by step, with the pair that later corrected each.

const PAGE = matchMedia("(max-width: 640px)").matches ? 3 : 24;
const gallery = { step: null, shown: PAGE };

function galleryItem(run, item) {
  const tone = isRight(item) ? "healthy" : isRight(item) === false && isAccepted(item) ? "hacked" : "unknown";
  const prompt = item.prompt && item.prompt.trim() !== (item.question || "").trim() ? el("details", { class: "prompt" }, el("summary", {}, "prompt as the policy read it"), el("pre", { class: "box" }, item.prompt)) : null;
  return el("article", { class: "card item " + tone, "data-step": item.step },
    el("header", {}, el("span", { class: "score" }, number(item.score)), el("span", {}, `step ${item.step}`), verdictChips(item), linkTo(run, item)),
    el("pre", { class: "asked" }, item.question || ""),
    prompt,
    el("pre", { class: "box said" }, completionText(item)),
    el("p", { class: "scores" }, "reference ", el("b", {}, item.answer || "none"), " · ", scoreWords(item)),
    correction(run, item));
}

// Where the page holds the group of a completion: the way there.
function linkTo(run, item) {
  const group = item.group || (run.steps[item.step] || []).find((one) => one.problem === item.problem);
  const index = group ? group.completions.findIndex((one) => one.text === item.text) : -1;
  return index < 0 ? null : el("a", { href: address(run, item.step, group, index) }, "in its group");
}

function isAccepted(item) { return typeof item.paid === "boolean" ? item.paid : item.score !== null && item.score > 0.5; }

function acceptedBy(run) { return run.gallery.some((item) => typeof item.paid === "boolean") ? "paid above their group's mean" : "above 0.5"; }

function verdictChips(one) {
  const chips = [];
  if (typeof one.gold === "boolean") chips.push(chip(`gold: ${one.gold ? "right" : "wrong"}`, one.gold ? "healthy" : "hacked"));
  if (one.verdict) chips.push(chip(`rule: ${one.verdict}`, { correct: "healthy", wrong: "hacked" }[one.verdict] || "unknown"));
  return chips;
}

// Every number of a completion: rewards, scores, advantage, length.
function scoreWords(one) {
  const words = Object.entries(one).filter(([name, value]) => !["score", "step", "tokens", "version", "of"].includes(name) && (typeof value === "number" || ["NaN", "Infinity", "-Infinity"].includes(value))).map(([name, value]) => `${name} ${number(value)}`);
  if (one.tokens !== undefined) words.push(`${one.tokens} tokens`);
  if (one.location) words.push(one.location);
  if (one.stop_reason) words.push(one.stop_reason === "stop" ? "ended by itself" : "cut off at the limit");
  return words.join(" · ");
}

function correction(run, item) {
  const pair = item.pair;
  if (!pair) return run.learns && isRight(item) === false ? el("p", { class: "fix" }, item.verdict === "correct" ? "The rule accepts it, so no pair could correct it." : "No pair of this run holds this text as its negative.") : null;
  const logit = (before, after) => `${number(before)} → ${number(after)}`;
  return el("div", { class: "fix" },
    `Corrected by a pair of step ${pair.step} (${pair.negative_origin}). Logit of this text before and after: `, el("b", {}, logit(pair.negative_logit_before, pair.negative_logit_after)),
    "; of the right one: ", el("b", {}, logit(pair.positive_logit_before, pair.positive_logit_after)),
    el("details", {}, el("summary", {}, "the right completion of the pair"), el("pre", { class: "box" }, pair.positive)));
}

function showGallery(run, keep) {
  if (!keep) Object.assign(gallery, { step: null, shown: PAGE });
  const rule = run.gallery.some((item) => typeof item.gold === "boolean") ? "gold calls wrong" : "the rule does not accept";
  const silent = run.judged < 1 ? ` ${Math.round(100 * run.judged)} % of the completions are judged; the others are neither right nor wrong.` : "";
  document.getElementById("gallery-rule").textContent = `Completions that ${rule} and that were nevertheless paid (${acceptedBy(run)}), each text once in a step. The score is ${run.score_name}.${silent}`;
  fill("fooled", run.fooled.length ? fooledBars(run) : null);
  showBarOn(gallery.step);
  listGallery(run);
}

function listGallery(run) {
  const words = document.getElementById("gallery-search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const order = document.getElementById("gallery-order").value;
  const shareOf = new Map(run.fooled.map((row) => [row[0], row[1]]));
  let found = run.gallery.filter((item) => gallery.step === null || item.step === gallery.step);
  found = found.filter((item) => { const text = [item.question, item.text, item.answer, item.problem, item.verdict].join("\n").toLowerCase(); return words.every((word) => text.includes(word)); });
  const by = { worst: (item) => [-(shareOf.get(item.step) || 0), item.step], early: (item) => [item.step], late: (item) => [-item.step], score: () => [] }[order];
  const key = new Map(found.map((item) => [item, [...by(item), item.score === null ? Infinity : -item.score]]));
  found.sort((a, b) => key.get(a).map((one, i) => one - key.get(b)[i]).find((difference) => difference) || 0);
  const where = gallery.step === null ? "" : ` of step ${gallery.step}`;
  fill("gallery-count", `${found.length} of ${run.gallery.length}${where} `, gallery.step === null ? null : el("button", { onclick: () => { gallery.step = null; showBarOn(null); listGallery(run); } }, "all steps"));
  const rest = found.length - gallery.shown;
  fill("gallery-items", found.length ? found.slice(0, gallery.shown).map((item) => galleryItem(run, item)) : el("p", { class: "empty" }, run.gallery.length ? "Nothing matches." : run.recorded_steps ? "No completion on record is wrong and was paid." : "No rollouts are on disk."), rest > 0 ? el("button", { onclick: () => { gallery.shown += PAGE; listGallery(run); } }, `show ${Math.min(PAGE, rest)} more`) : null);
}

// A bar for every step: the share of its judged completions that are wrong and accepted. A click shows that step's.
function fooledBars(run) {
  const rows = run.fooled, width = 1000, height = 90, wide = width / rows.length;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", height, class: "bars" });
  const kept = new Set(run.gallery.map((item) => item.step));
  for (const [step, part, accepted, wrong] of rows) {
    const i = rows.findIndex((row) => row[0] === step);
    const tall = part > 0 ? Math.max(1.5, part * height) : 0; // the whole height is all of a step's judged completions
    picture.append(svg("rect", { x: i * wide + wide * 0.08, width: wide * 0.84, y: height - tall, height: tall, "data-step": step }));
    const hit = svg("rect", { class: "hit", x: i * wide, width: wide, y: 0, height });
    hit.append(svg("title", {}, `step ${step}: ${accepted} accepted of ${wrong} wrong completions (${Math.round(100 * part)} % of those judged)`));
    if (kept.has(step)) hit.addEventListener("click", () => { gallery.step = step; gallery.shown = PAGE; showBarOn(step); listGallery(run); });
    picture.append(hit);
  }
  return el("figure", { class: "card chart", style: "margin:0" }, el("h3", {}, "Wrong and yet accepted", el("span", { class: "note" }, `share of a step's ${run.judged < 1 ? "judged " : ""}completions that are wrong and ${acceptedBy(run)}, at most ${Math.round(100 * Math.max(...rows.map((row) => row[1])))} %; the frame is 100 %; click a step`)), picture);
}

function showBarOn(step) {
  for (const bar of document.querySelectorAll("#fooled rect[data-step]")) bar.classList.toggle("on", Number(bar.dataset.step) === step);
}
