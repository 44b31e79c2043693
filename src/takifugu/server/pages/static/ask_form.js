// Reads the form of a query into the document that the API takes, and shows the options of a kind.

const READ = {
  text: (values) => values[0],
  real: (values) => number(values[0]),
  whole: (values) => number(values[0], WHOLE),
  list: (values) => values,
  lines: (values) => lines(values[0]),
  flag: () => true,
  counts: (values) => {
    const rows = lines(values[0]).map((line) => line.split(/[\s,]+/u).filter(Boolean).map((one) => number(one)));
    return rows.length === 1 ? rows[0] : rows;
  },
};

const WHOLE = /^[+-]?[0-9]{1,15}$/u;
const REAL = /^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?$/iu;

function number(text, form = REAL) {
  // A number as people write it; any other text as it is: the server refuses it by name.
  const found = form.test(text) && text.length < 40 ? Number(text) : Infinity;
  return Number.isFinite(found) ? found : text;
}

function lines(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

export function filledIn(form) {
  // The options that are filled in; an empty field is not given.
  const answers = new Map();
  for (const [name, value] of new FormData(form)) {
    const text = value.trim();
    if (text) answers.set(name, [...(answers.get(name) ?? []), text]);
  }
  const document = { kind: answers.get("kind")[0] };
  const where = {};
  for (const [name, values] of answers) {
    if (name.startsWith("where:")) where[name.slice(6)] = values;
    const way = form.querySelector(`[name="${CSS.escape(name)}"][data-as]`)?.dataset.as;
    if (way in READ) document[name === "columns" ? "column" : name] = READ[way](values);
  }
  if (Object.keys(where).length) document.where = where;
  if (answers.has("from") || answers.has("to")) {
    document.window = [answers.get("from")?.[0] ?? null, answers.get("to")?.[0] ?? null];
  }
  return document;
}

export function complete(form) {
  // Whether enough is filled in to plan: a cost or an error, and what the kind needs.
  const options = filledIn(form);
  if (!("epsilon" in options || "within" in options || "confidence" in options)) return false;
  for (const part of form.querySelectorAll("fieldset[data-required]:not([hidden])")) {
    const field = part.querySelector("[name]");
    const needed = part.dataset.required.split(" ").includes(options.kind);
    if (needed && field && !(field.name in options)) return false;
  }
  return true;
}

export function showOptions(form) {
  // Shows the fields that the chosen kind has, and those of the chosen aim.
  const chosen = form.elements.kind.selectedOptions[0];
  const several = "several" in chosen.dataset;
  const ranking = "ranking" in chosen.dataset;
  for (const part of form.querySelectorAll("fieldset[data-kinds]")) {
    show(part, part.dataset.kinds.split(" ").includes(chosen.value));
  }
  for (const part of form.querySelectorAll('[data-of="columns"]')) show(part, several);
  for (const part of form.querySelectorAll('[data-of="one-column"]')) show(part, !several);
  for (const part of form.querySelectorAll('[data-of="distance"]')) show(part, !ranking);
  const aim = form.querySelector('[name="aim"]:checked').value;
  for (const part of form.querySelectorAll("fieldset[data-aim]")) show(part, part.dataset.aim === aim);
}

function show(part, shown) {
  part.hidden = !shown;
  const fields = part.matches("fieldset") ? [part] : part.querySelectorAll("input, select, textarea");
  for (const field of fields) field.disabled = !shown;
}

export function markWrong(form, field, words) {
  // Says beside a field what is wrong with it; without a field, below the form.
  for (const old of form.querySelectorAll('[aria-invalid="true"]')) old.removeAttribute("aria-invalid");
  for (const place of form.querySelectorAll(".wrong")) place.textContent = "";
  if (!words) return;
  const name = (field ?? "").split(",")[0].trim();
  const place = document.getElementById(`${name}-wrong`);
  const visible = place && !place.closest("[hidden]");
  (visible ? place : document.getElementById("any-wrong")).textContent = words;
  if (visible) document.getElementById(name)?.setAttribute("aria-invalid", "true");
}
