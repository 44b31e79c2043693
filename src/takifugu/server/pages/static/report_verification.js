// Whether a report is what the holder of a key signed: the same checks, in the same order and with
// the same words, as `takifugu report verify`. Everything is computed here: nothing is sent anywhere.

const LARGEST_SIGNATURE = 10_000; // bytes
const STATEMENT = new RegExp(
  "^takifugu report signature 1\n"
  + "report: sha256 (?<digest>[0-9a-f]{64})\n"
  + "size: (?<size>[0-9]{1,15}) bytes\n"
  + "ledger: (?<origin>[0-9a-f]{64})\n"
  + "as of event: (?<seq>[0-9]{1,15}) (?<hash>[0-9a-f]{64})\n"
  + "signed: (?<signed>[0-9T:+-]{25})\n"
  + "signer: (?<signer>[^\n]{1,800})\n"
  + "public key: (?<key>[A-Za-z0-9+/=]{44})\n"
  + "signature: (?<mark>[A-Za-z0-9+/=]{88})\n$",
  "u",
);
const HEAD = "takifugu-ledger ([0-9a-f]{64}) ([0-9]{1,15}) ([0-9a-f]{64})";
const PAGE = new RegExp(`<meta name="takifugu-ledger" content="${HEAD}">`, "gu");
const PDF = new RegExp(`%%EOF\n?%${HEAD}\n$`, "gu");
const TIME = /^([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\+00:00$/u;
const WHOLE = /^(?:0|[1-9][0-9]*)$/u;
const BLOCK = /-----BEGIN ([^-]*)-----([^-]*)-----END \1-----/uy;
const ED25519 = "302a300506032b6570032100"; // what stands before the 32 bytes of a public key
const EVENT = /^\{"hash":"(.{64})","body":(.*)\}$/su;
const ROOT = "0".repeat(64); // what the first event follows
const AT_ONCE = 2_000; // events that are hashed together
// What does not show: controls, formats, halves of letters, separators, and what is no letter (yet).
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|(?=\p{Cn})[\p{Noncharacter_Code_Point}\u2065\ufff0-\ufff8\u{e0000}-\u{e0fff}]/gu;

export class Refused extends Error {
  // What does not fit: reason "key", "signature", "report" or "ledger".
  constructor(message, reason) {
    super(message);
    this.reason = reason;
    this.field = "";
  }
}

export class WrongFile extends Error {
  // A file that is not what it must be: which one, what it is, what it must be.
  constructor(field, given, needed, reason) {
    super(`\`${field}\` ${given}; it must ${needed}`);
    this.reason = reason;
    this.field = field;
  }
}

export class Unable extends Error {
  // This browser, or this way of reaching the page, cannot verify.
  constructor(message, reason) {
    super(message);
    this.reason = reason;
    this.field = "";
  }
}

export async function verified({ report, signature, key, exported = null, name = "" }, progress = () => {}) {
  // What was signed, if the holder of the key signed it and it is about this report; an error if
  // not. Files are given by their bytes; `name` is that of the export.
  able();
  const given = publicKey(key);
  const { statement, text, own, mark } = parsed(signature);
  if (!same(own, given)) {
    throw new Refused(
      `the report was signed with another key (${await keyName(own)}) than the given one`
      + ` (${await keyName(given)}); ask the signer which one is theirs`,
      "key",
    );
  }
  if (!(await signed(given, mark, text))) {
    throw new Refused(
      "the signature does not fit its statement: the file was changed after it was signed."
      + " Ask for the original",
      "signature",
    );
  }
  if (statement.digest !== (await sha256(report)) || statement.size !== report.length) {
    throw new Refused(
      "the signature is about another file: the report was changed after it was signed, or"
      + " it is another one. Ask for the original",
      "report",
    );
  }
  const head = reportedHead(report);
  if (head.origin !== statement.origin || head.seq !== statement.seq || head.hash !== statement.hash) {
    throw new Refused(
      "the signature names another event of the ledger than the report; ask for the original",
      "ledger",
    );
  }
  const events = exported === null ? null : await countedEvents(exported, statement, name, progress);
  return { ...statement, key: await keyName(given), events };
}

export function words(found) {
  // What was found, in lines.
  const asOf = `as of event ${found.seq} of the ledger`;
  const later = found.events === null ? 0 : found.events - found.seq;
  return [
    `valid: signed by ${found.signer} at ${found.signed} with key ${found.key}`,
    found.events === null
      ? `${asOf} (${found.hash.slice(0, 12)}): not compared`
      : `${asOf}, which the export of ${found.events} events has`,
    ...(later === 0 ? [] : [`the ledger has gone on since: ${later} later events`]),
  ].map(visible);
}

export function visible(text) {
  // Text in which every mark that does not show is written out.
  return text.replace(HIDDEN, (letter) => Array.from(
    { length: letter.length },
    (_, place) => `\\u${letter.charCodeAt(place).toString(16).padStart(4, "0")}`,
  ).join(""));
}

export function able() {
  // An error where signatures cannot be checked at all.
  if (!globalThis.isSecureContext || !globalThis.crypto?.subtle) {
    throw new Unable(
      "browsers check signatures only on pages that came over https, or from this computer"
      + " itself; open the page that way, or use `takifugu report verify`",
      "context",
    );
  }
}

async function signed(key, mark, text) {
  // Whether a key made this signature over this text.
  let imported;
  try {
    imported = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
  } catch (error) {
    if (error.name !== "NotSupportedError") return false; // a key that nobody can have
    throw new Unable(
      "this browser does not know Ed25519 signatures; use a newer one, or `takifugu report verify`",
      "browser",
    );
  }
  return crypto.subtle.verify({ name: "Ed25519" }, imported, mark, text);
}

// --- files ---

function publicKey(content) {
  // The 32 bytes of a key from PEM.
  const text = letters(content);
  BLOCK.lastIndex = Math.max(0, text.indexOf("-----BEGIN "));
  const block = BLOCK.exec(text);
  const bytes = block?.[1] === "PUBLIC KEY" ? fromBase64(block[2].replace(/[ \t\r\n\v\f]+/gu, "")) : null;
  if (bytes?.length === 44 && hex(bytes.subarray(0, 12)) === ED25519) return bytes.subarray(12);
  const own = text.includes("PRIVATE KEY");
  throw new WrongFile(
    "key",
    own ? "is a private key" : "is not a public key of a signer",
    "be the public one, which `takifugu report key` writes as FILE.pub",
    own ? "private" : "not-a-key",
  );
}

function parsed(content) {
  // The statement, its bytes, the public key and the signature over it.
  const found = content.length <= LARGEST_SIGNATURE ? STATEMENT.exec(letters(content))?.groups : null;
  const own = found ? fromBase64(found.key) : null;
  const mark = found ? fromBase64(found.mark) : null;
  let signer = null;
  if (own?.length === 32 && mark?.length === 64) {
    const end = content.length - `\npublic key: \nsignature: \n`.length - found.key.length - found.mark.length;
    signer = utf8(content.subarray(end - found.signer.length, end));
  }
  if (signer === null || !WHOLE.test(found.size) || !WHOLE.test(found.seq) || !isTime(found.signed)) {
    throw new WrongFile(
      "signature", "is not the signature of a report", "be as `takifugu report sign` wrote it",
      "not-a-signature",
    );
  }
  const { digest, origin, hash } = found;
  const statement = {
    digest, size: Number(found.size), origin, seq: Number(found.seq), hash, signed: found.signed, signer,
  };
  const rest = `public key: ${found.key}\nsignature: ${found.mark}\n`.length;
  return { statement, text: content.subarray(0, content.length - rest), own, mark };
}

function isTime(text) {
  const found = TIME.exec(text)?.slice(1).map(Number);
  if (!found) return false;
  const [year, month, day, hour, minute, second] = found;
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0;
  return year >= 1 && day >= 1 && day <= days && hour < 24 && minute < 60 && second < 60;
}

function reportedHead(report) {
  // The event that a report is as of.
  const text = letters(report);
  const found = new Map();
  for (const match of text.matchAll(text.startsWith("%PDF-") ? PDF : PAGE)) {
    found.set(match.slice(1).join(" "), match);
  }
  if (found.size !== 1) {
    throw new WrongFile(
      "report", "does not say which event of a ledger it is as of",
      "be a report: `takifugu report` writes one", "not-a-report",
    );
  }
  const [, origin, seq, hash] = [...found.values()][0];
  return { origin, seq: Number(seq), hash };
}

async function countedEvents(content, { origin, seq: last, hash: recorded }, name, progress) {
  // How many events an export has, if each follows from the one before it and the event of the
  // report is among them.
  const wanted = new Map([[1, origin], [last, recorded]]);
  const needed = "be as `takifugu ledger export` wrote it";
  const noEvent = (line) => new WrongFile("export", `has no event in line ${line}`, needed, "not-an-export");
  const text = utf8(content);
  if (text === null) {
    throw new WrongFile("export", `${visible(name)} cannot be read (it is not UTF-8 text)`, needed, "text");
  }
  const lines = text.replace(/\r\n?/gu, "\n").split("\n");
  if (lines.pop() || !lines.length) throw noEvent(lines.length + 1);
  let previous = ROOT;
  for (let from = 0; from < lines.length; from += AT_ONCE) {
    progress(from, lines.length);
    const events = lines.slice(from, from + AT_ONCE).map((line) => EVENT.exec(line));
    const hashes = await Promise.all(events.map((event, place) => {
      const before = place ? events[place - 1]?.[1] : previous;
      return event && before ? sha256(encoded(`${before}\n${event[2]}`)) : null;
    }));
    for (const [place, event] of events.entries()) {
      const seq = from + place + 1;
      if (!event) throw noEvent(seq);
      if (event[1] !== hashes[place]) {
        throw new Refused(
          `event ${seq} of the export does not follow from the one before it: the file was`
          + " changed. Ask for the original",
          "ledger",
        );
      }
      if (wanted.has(seq) && wanted.get(seq) !== event[1]) {
        throw new Refused(
          `event ${seq} of the export is another one than the recorded one: it is another history`,
          "ledger",
        );
      }
      wanted.delete(seq);
    }
    previous = events.at(-1)[1];
  }
  if (wanted.size) {
    throw new Refused(
      `the export ends with event ${lines.length} and lacks event ${Math.min(...wanted.keys())}, which`
      + " was recorded: it is older, or was cut. Ask for a newer one",
      "ledger",
    );
  }
  return lines.length;
}

// --- bytes and text ---

function letters(bytes) {
  // One letter for each byte; those of ASCII are themselves.
  return new TextDecoder("latin1").decode(bytes);
}

function utf8(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

function encoded(text) {
  return new TextEncoder().encode(text);
}

function fromBase64(text) {
  // The bytes, if there is no other way to write them.
  try {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return btoa(String.fromCharCode(...bytes)) === text ? bytes : null;
  } catch {
    return null;
  }
}

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function same(left, right) {
  return hex(left) === hex(right);
}

async function sha256(bytes) {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

async function keyName(key) {
  // A short name of a public key, to be compared over the telephone.
  return (await sha256(key)).slice(0, 32).match(/.{4}/gu).join("-");
}
