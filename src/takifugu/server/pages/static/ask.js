// The page that asks: what a query costs is shown while it is typed, and it is released once.

import { Problem, call, finished } from "./calls.js";
import { coded } from "./coded_text.js";
import { complete, filledIn, markWrong, showOptions } from "./ask_form.js";

const PAUSE = 300; // milliseconds without typing after which a query is planned
const form = document.getElementById("ask");
const panel = document.getElementById("price");
const release = document.getElementById("release");
const api = `/api/v1/datasets/${encodeURIComponent(form.dataset.dataset)}`;
const at = (id) => document.getElementById(id);
const keys = new Map(); // one idempotency key for each query of this form: a double click is one charge
let timer = 0;
let running = null; // the controller of the call that is under way
let planned = null; // the options and the plan that the panel shows
let releasing = false;

function state(name) {
  panel.dataset.state = name;
  for (const part of panel.querySelectorAll("[data-when]")) {
    part.hidden = !part.dataset.when.split(" ").includes(name);
  }
  panel.setAttribute("aria-busy", String(name === "working"));
}

function say(words) {
  if (at("said").textContent !== words) at("said").textContent = words;
  at("peeked").textContent = words;
  at("peek").hidden = false;
}

function working(words) {
  at("progress").textContent = words;
  state("working");
}

async function ended(answer, controller) {
  // The document of a call that may have become a job.
  const place = answer.headers.get("Location") ?? "";
  if (answer.status !== 202 || !place.startsWith("/api/v1/jobs/")) return answer.document;
  const done = await finished(answer.document.id, {
    progress: (words) => { if (running === controller) at("progress").textContent = words; },
    signal: controller.signal,
  });
  if (done.state === "done") return done.result;
  throw new Problem(done.problem ?? { title: "Cancelled", detail: "It was cancelled; nothing was charged." });
}

async function plan() {
  running?.abort();
  running = null;
  planned = null;
  if (!complete(form)) {
    markWrong(form, null, "");
    state("empty");
    say("Fill in the form to see what it costs.");
    return;
  }
  const options = filledIn(form);
  const controller = new AbortController();
  running = controller;
  working("planning…");
  try {
    const answer = await call("POST", `${api}/plans`, { body: { query: options }, signal: controller.signal });
    const found = await ended(answer, controller);
    if (running !== controller) return;
    planned = { options, found };
    markWrong(form, null, "");
    show(found);
  } catch (error) {
    if (error.name === "AbortError" || running !== controller) return;
    const problem = error instanceof Problem ? error.document : {};
    markWrong(form, problem.field, error.message);
    state("refused");
    say(`Refused: ${error.message}`);
  } finally {
    if (running === controller) running = null;
  }
}

function show({ plan: found, words, approval }) {
  for (const name of ["cost", "adds", "spent", "error", "odds", "useful", "verdict"]) {
    at(name).replaceChildren(...coded(words[name]));
  }
  at("verdict").className = `badge ${words.tone}`;
  at("notes").replaceChildren(...words.notes.map((note) => {
    const item = document.createElement("li");
    item.append(...coded(note));
    return item;
  }));
  at("own").textContent = words.own;
  at("own").parentElement.hidden = !words.own;
  at("over-words").replaceChildren(...coded(words.over));
  offer(at("use-most"), words.most, "the most that is accepted");
  gauge(found.cost);
  const over = !found.cost.fits && !found.stored;
  const noise = words.confirm;
  if (release) {
    at("release-price").textContent = `: ${words.takes}`;
    at("waits").hidden = !approval;
    at("waits-words").replaceChildren(...coded(sentence(approval ?? "")));
    at("release-verb").textContent = approval ? "Ask for approval" : "Release";
    offer(at("use-needed"), words.needed, "which makes it useful");
    at("accept-noise").checked = false;
    ready();
  }
  state(over ? "over" : noise ? "noise" : "ready");
  say(over ? `Costs ${words.cost} alone: more than the budget admits.` : `${found.stored ? "Free" : `Costs ${words.cost} alone, adds ${words.adds}`}; ${words.verdict}.`);
}

function sentence(text) {
  return text && `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

function offer(button, epsilon, why) {
  button.hidden = !epsilon;
  button.textContent = epsilon ? `Use ε = ${epsilon}, ${why}` : "";
  button.dataset.epsilon = epsilon ?? "";
}

function take(event) {
  form.querySelector('[name="aim"][value="epsilon"]').checked = true;
  showOptions(form);
  form.elements.epsilon.value = event.currentTarget.dataset.epsilon;
  form.elements.epsilon.focus();
  plan();
}

function amount(text) {
  const [above, below = "1"] = String(text).split("/");
  return Number(above) / Number(below);
}

function gauge(cost) {
  const drawn = at("gauge");
  if (!drawn) return;
  const budget = amount(cost.budget);
  const percent = (value) => `${Math.min(Math.max(value / budget, 0), 1) * 100}%`;
  const after = cost.after ?? (cost.before ?? budget) + cost.alone;
  drawn.classList.toggle("over", !cost.fits);
  drawn.querySelector(".spent").setAttribute("width", percent(cost.before ?? budget));
  drawn.querySelector(".more").setAttribute("width", percent(after));
}

function ready() {
  // A release of mostly noise waits for its box to be checked.
  const wait = planned?.found.words.confirm && !at("accept-noise").checked;
  at("release-button").disabled = releasing || Boolean(wait);
}

function keyOf(options) {
  const text = JSON.stringify(options);
  if (!keys.has(text)) {
    const random = crypto.getRandomValues(new Uint8Array(16));
    const made = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
    keys.set(text, keys.size ? made : release.elements.key.value);
  }
  return keys.get(text);
}

async function send(event) {
  event.preventDefault();
  if (releasing || !planned) return;
  releasing = true;
  const { options, found: shown } = planned;
  const controller = new AbortController();
  running = controller;
  ready();
  working("charging, then drawing…");
  for (const part of form.querySelectorAll("fieldset, select")) part.inert = true;
  try {
    const answer = await call("POST", `${api}/releases`, {
      body: { query: options, accept_noise: at("accept-noise").checked, plan: shown.plan.digest },
      headers: { "Idempotency-Key": keyOf(options) },
      signal: controller.signal,
    });
    const found = await ended(answer, controller);
    window.location.assign(
      found.charge === undefined || found.charge === null ? "/approvals?done=asked" : `/releases/${found.charge}`,
    );
    return;
  } catch (error) {
    for (const part of form.querySelectorAll("fieldset, select")) part.inert = false;
    releasing = false;
    planned = { options, found: shown };
    show(shown);
    if (error.name === "AbortError") {
      say("Cancelled. Look at Releases: if it was charged before, asking again gives the same answer.");
      return;
    }
    markWrong(form, error.document?.field, error.message);
    state("refused");
    say(`Refused: ${error.message}`);
  } finally {
    if (running === controller) running = null;
  }
}

for (const part of document.querySelectorAll("[data-without-script]")) part.hidden = true;
form.addEventListener("input", () => {
  if (release) at("release-button").disabled = true; // what is released is what was priced
  clearTimeout(timer);
  timer = setTimeout(plan, PAUSE);
});
form.addEventListener("change", (event) => {
  if (event.target.name === "kind" || event.target.name === "aim") showOptions(form);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  plan();
});
at("cancel").addEventListener("click", () => {
  running?.abort();
  running = null;
  state("empty");
  say("Cancelled.");
});
at("use-most").addEventListener("click", take);
if (release) {
  at("use-needed").addEventListener("click", take);
  at("accept-noise").addEventListener("change", ready);
  release.addEventListener("submit", send);
}
showOptions(form);
plan();
