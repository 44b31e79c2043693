// The page of reports: whoever chose the files is told whether the signature holds.

import { coded } from "./coded_text.js";
import { Refused, able, verified, visible, words } from "./report_verification.js";

const form = document.getElementById("verify-report");
const button = document.getElementById("verify-button");
const answer = document.getElementById("verify-answer");
const fields = Object.fromEntries(
  ["report", "signature", "key", "export"].map((name) => [name, document.getElementById(`verify-${name}-file`)]),
);
let turn = 0; // of the files that are chosen: an answer about others is not shown

function say(kind, title, lines) {
  const notice = document.createElement("div");
  notice.className = `notice ${kind}`;
  const heading = document.createElement("p");
  heading.append(Object.assign(document.createElement("strong"), { textContent: title }));
  notice.append(heading, ...lines.map((line) => {
    const paragraph = document.createElement("p");
    paragraph.append(...coded(sentence(line)));
    return paragraph;
  }));
  answer.replaceChildren(notice);
}

function sentence(text) {
  // Words of the command as a sentence; what the title says already is left out.
  const rest = text.replace(/^valid: /u, "");
  return rest[0].toUpperCase() + rest.slice(1) + (rest.endsWith(".") ? "" : ".");
}

function forget() {
  turn += 1;
  answer.replaceChildren();
  answer.removeAttribute("aria-busy");
  button.removeAttribute("aria-disabled");
  for (const field of Object.values(fields)) field.removeAttribute("aria-invalid");
}

async function content(name) {
  // The bytes of a chosen file; null if none is.
  const file = fields[name].files[0];
  if (!file) return null;
  try {
    return new Uint8Array(await file.arrayBuffer());
  } catch {
    fields[name].setAttribute("aria-invalid", "true");
    throw new Error(
      `\`${name}\` ${visible(file.name)} cannot be read (it is too large, or changed since it was`
      + " chosen); choose it again",
    );
  }
}

async function check(event) {
  event.preventDefault();
  if (button.getAttribute("aria-disabled")) return;
  forget();
  const mine = turn;
  button.setAttribute("aria-disabled", "true");
  answer.setAttribute("aria-busy", "true");
  const show = (...what) => {
    if (mine === turn) say(...what);
  };
  show("plain", "Checking …", []);
  try {
    const [report, signature, key, exported] = [
      await content("report"), await content("signature"), await content("key"), await content("export"),
    ];
    const name = fields.export.files[0]?.name ?? "";
    const found = await verified({ report, signature, key, exported, name }, (done, all) => {
      show("plain", `Checking event ${done + 1} of ${all} …`, []);
    });
    show("good", "Valid.", words(found));
  } catch (error) {
    if (mine === turn && error.field in fields) fields[error.field].setAttribute("aria-invalid", "true");
    show("alarm", error instanceof Refused ? "Not valid." : "Not verified.", [visible(error.message)]);
  }
  if (mine === turn) {
    answer.removeAttribute("aria-busy");
    button.removeAttribute("aria-disabled");
  }
}

form.addEventListener("submit", check);
form.addEventListener("change", forget);
form.hidden = false;
document.getElementById("verify-without").hidden = true;
try {
  able();
} catch (error) {
  say("alarm", "Not here.", [error.message]);
}
