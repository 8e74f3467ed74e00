// Frames for the live page inside of the lens: asked of the page around it.
const token = "";
const post = async () => [false, ""];
const LOOK_AGAIN_MS = 150;
let asked = 0, windowAsked = null, lookTimer = 0, follower = false;

function request(window) {
  asked += 1;
  windowAsked = window;
  parent.postMessage({ lens: "frame", flows: [...(drawn?.keys() ?? [])], packets: sequence, window, number: asked }, "*");
}
function connect() { request(windowAsked); }

// The newest window has all its packets; a long one has a selection.
function looked(window) {
  if (!follower) parent.postMessage({ lens: "window", window }, "*");
  clearTimeout(lookTimer);
  lookTimer = setTimeout(() => request(window[1] - window[0] < store.now ? window.map(Math.round) : null), LOOK_AGAIN_MS);
}

addEventListener("message", ({ source, data: message }) => {
  if (source !== parent) return;
  if (message.lens === "window") {
    follower = true;
    look(...message.window);
    follower = false;
    return;
  }
  if (message.number !== asked) return;
  const { chosen } = view;
  store.clear();
  take(JSON.parse(message.frame));
  view.chosen = chosen && (store.events.find((e) => e.t === chosen.t && e.title === chosen.title) ?? null);
});
