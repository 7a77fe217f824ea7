// This file pauses and resumes hosts, if the page may do so.
import { byId, make, plain, set } from "./text.js";

// act asks the handler to pause or to resume a host, or all hosts if the name is empty.
async function act(action, host) {
  const name = host ? plain(host, 120) : "all hosts";
  let failed;
  try {
    const response = await fetch(action, { method: "POST", body: new URLSearchParams({ host }) });
    if (!response.ok) failed = await response.text();
  } catch (error) {
    failed = error.message;
  }
  const done = action === "pause" ? `${name}: paused, requests under way go on.` : `${name}: resumed.`;
  set(byId("pause-status"), failed ? `${name}: ${plain(failed, 300)}` : done);
}

let allowed = false;

// allow shows the buttons for all hosts, if the page may pause hosts.
export function allow(canPause) {
  allowed = Boolean(canPause);
  byId("pause-all").hidden = !allowed;
  byId("resume-all").hidden = !allowed;
}

export function begin() {
  byId("pause-all").addEventListener("click", () => act("pause", ""));
  byId("resume-all").addEventListener("click", () => act("resume", ""));
}

// pauseButton returns a button that pauses a host, or resumes it while it is paused.
export function pauseButton(host) {
  const button = make("button", "pause");
  button.type = "button";
  let action = "pause";
  button.addEventListener("click", () => act(action, host));
  button.show = paused => {
    action = paused ? "resume" : "pause";
    button.hidden = !allowed;
    set(button, paused ? "Resume" : "Pause");
    button.setAttribute("aria-label", `${paused ? "Resume" : "Pause"} ${plain(host, 120)}`);
  };
  return button;
}
