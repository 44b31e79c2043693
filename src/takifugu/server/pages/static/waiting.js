// While a request waits for an owner or is being released: the page is loaded again by itself.
// Not while somebody writes a note, has a button in focus, or looks elsewhere.

const EVERY = 10_000;

document.getElementById("reloads").textContent = "The page is loaded again every 10 seconds while something waits.";

function busy() {
  const written = [...document.querySelectorAll("textarea")].some((note) => note.value);
  return written || document.hidden || Boolean(document.activeElement?.closest("#main form"));
}

setInterval(() => {
  if (busy()) return;
  const address = new URL("/approvals", window.location.origin);
  const cursor = new URL(window.location).searchParams.get("cursor");
  if (cursor) address.searchParams.set("cursor", cursor);
  window.location.replace(address);
}, EVERY);
