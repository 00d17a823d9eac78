"use strict";
// Builds elements. Text of a run reaches the page through `textContent` alone, so none of it can become markup.

const report = JSON.parse(document.getElementById("report-data").textContent);

// Characters that one cannot see, or that move the text around them: shown by their number.
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/u;

function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : runText(String(child)));
  }
}

// The text as nodes, with every unseen character as a small mark.
function runText(text) {
  if (!UNSEEN.test(text)) return document.createTextNode(text);
  const fragment = document.createDocumentFragment();
  let plain = "";
  for (const character of text) {
    if (!UNSEEN.test(character)) { plain += character; continue; }
    fragment.append(plain);
    plain = "";
    const mark = document.createElement("span");
    mark.className = "control";
    mark.textContent = "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    fragment.append(mark);
  }
  fragment.append(plain);
  return fragment;
}

function fill(target, ...children) {
  const element = typeof target === "string" ? document.getElementById(target) : target;
  element.replaceChildren();
  append(element, children);
  return element;
}

function chip(text, tone = "") { return el("span", { class: "chip " + tone }, text); }

function swatch(colour) {
  const mark = el("span", { class: "swatch" });
  mark.style.background = colour;
  return mark;
}

function number(value, digits = 3) {
  if (typeof value === "string") return value;
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
}

const share = (value) => (typeof value === "number" ? value.toFixed(2) : "–");

function table(headings, rows) {
  const head = el("tr", {}, headings.map((one) => el("th", { class: one.startsWith("#") ? "num" : "" }, one.replace("#", ""))));
  const body = rows.map((cells) => (cells instanceof Node ? cells : el("tr", {}, cells.map((cell, i) => el("td", { class: headings[i].startsWith("#") ? "num" : "" }, cell)))));
  return el("div", { class: "wide" }, el("table", {}, el("thead", {}, head), el("tbody", {}, body)));
}
