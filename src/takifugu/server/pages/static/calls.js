// Calls of the API from a page: the token against cross-site requests, problems, jobs.

const CSRF = document.querySelector('meta[name="csrf-token"]')?.content ?? "";

export class Problem extends Error {
  // What the server said is wrong: its fields are those of problem+json.
  constructor(document) {
    super(document.detail || document.title || "The server cannot be reached.");
    this.document = document;
  }
}

export async function call(method, path, { body, headers = {}, signal } = {}) {
  // The answer of the API as { status, headers, document }; a Problem if it refuses.
  const sent = { Accept: "application/json", "X-CSRF-Token": CSRF, ...headers };
  if (body !== undefined) sent["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method, headers: sent, signal, cache: "no-store", credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ title: "No connection", detail: "The server cannot be reached. Try again." });
  }
  if (response.status === 401) {
    window.location.assign(`/sign-in?next=${encodeURIComponent(window.location.pathname)}`);
  }
  const text = await response.text();
  let document = null;
  try {
    document = text ? JSON.parse(text) : null;
  } catch {
    document = null;
  }
  if (!response.ok) {
    throw new Problem(document ?? { status: response.status, title: `The server answered ${response.status}` });
  }
  return { status: response.status, headers: response.headers, document };
}

export async function finished(job, { progress, signal }) {
  // Waits until a job is at its end, telling its progress; its document, or a Problem.
  // When the signal comes, the job is cancelled too.
  const path = `/api/v1/jobs/${encodeURIComponent(job)}`;
  const stop = () => call("DELETE", path).catch(() => {});
  if (signal.aborted) {
    stop();
    throw new DOMException("superseded", "AbortError");
  }
  await new Promise((resolve, reject) => {
    const events = new EventSource(`${path}/events`);
    signal.addEventListener("abort", () => {
      events.close();
      stop();
      reject(new DOMException("superseded", "AbortError"));
    }, { once: true });
    events.addEventListener("progress", (event) => progress(words(event.data)));
    for (const end of ["end", "done", "failed", "cancelled"]) {
      events.addEventListener(end, () => {
        events.close();
        resolve();
      });
    }
    events.onerror = () => {
      if (events.readyState === EventSource.CLOSED) resolve();
    };
  });
  const { document } = await call("GET", path, { signal });
  return document;
}

function words(data) {
  try {
    const found = JSON.parse(data);
    return typeof found === "string" ? found : found.words ?? found.message ?? data;
  } catch {
    return data;
  }
}
