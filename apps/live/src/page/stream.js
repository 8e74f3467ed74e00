// Frames from the server of the page, and the page's requests to it.

const token = new URLSearchParams(location.search).get("token") ?? "";
let source = null;

async function post(order) {
  const answer = await fetch("/link", {
    method: "POST", headers: { "x-narrows-token": token, "content-type": "application/json" }, body: JSON.stringify(order),
  });
  return [answer.ok, (await answer.text()).trim().replace(/^narrows: /, "")];
}

function connect() {
  source?.close();
  const query = new URLSearchParams({ token });
  if (run !== null) query.set("run", run);
  // At first only what there is.
  query.set("flows", [...(drawn?.keys() ?? [])].join("."));
  if (sequence !== null) query.set("packets", sequence);
  source = new EventSource(`/events?${query}`);
  // The first frame of a stream has everything.
  source.onopen = () => { store.clear(); byId("message").hidden = true; };
  source.onmessage = (event) => take(JSON.parse(event.data));
  source.addEventListener("links", (event) => controls.take(JSON.parse(event.data)));
  source.onerror = () => {
    phase = phase === "running" ? "gone" : phase;
    if (source.readyState === EventSource.CLOSED) fail("The command does not answer, or the token is wrong: open the address that it printed.");
    status();
  };
}

// The server sends all packets; a window needs no request.
function looked() {}
