// Six lessons: each is a question that can be changed, with changes to try.
const LESSONS = [
  {
    title: "Slow start",
    text: [
      "A sender does not know the path's rate. It begins with ten segments and doubles its window each round trip until a loss, a mark or a longer RTT tells it to stop.",
      "On a long path a short transfer is over before the window has reached the rate. Look at cwnd in the lens: it doubles, overshoots the queue, and loses what did not fit.",
      "CUBIC leaves slow start early where the RTT grows (HyStart). rrtp measures the path's rate during its handshake and begins with it.",
    ],
    options: { link: "20Mbit/s,50ms,queue=1bdp", protocols: "reno,cubic,bbr,rrtp", source: "transfer(size=2MB)", duration: "20s" },
    tries: [
      ["A path ten times as long", { link: "20Mbit/s,300ms,queue=1bdp" }],
      ["A small queue", { link: "20Mbit/s,50ms,queue=0.1bdp" }],
      ["100 kB instead of 2 MB", { source: "transfer(size=100kB)" }],
    ],
    lens: ["reno", "rrtp"],
  },
  {
    title: "Why loss-based control fails on radio",
    text: [
      "Reno and CUBIC take each loss for congestion and reduce their window. On a radio link packets are lost with an empty queue, too.",
      "With a loss probability p, Reno's window stays near 1.22/√p segments, whatever the link's rate: at 1% that is 12 segments. The faster or longer the path, the more of it is wasted.",
      "Protocols that look at delay or at the delivery rate (Veno, Westwood+, BBR, ST-PD, rrtp) can tell such a loss from a full queue.",
    ],
    options: { link: "10Mbit/s,40ms,loss=1%", protocols: "reno,cubic,veno,westwood+,bbr,stpd,rrtp", duration: "40s" },
    tries: [
      ["No loss", { link: "10Mbit/s,40ms" }],
      ["0.1% loss", { link: "10Mbit/s,40ms,loss=0.1%" }],
      ["Losses in bursts", { link: "10Mbit/s,40ms,loss=ge(g=0.1%,h=20%)" }],
    ],
    lens: ["cubic", "rrtp"],
  },
  {
    title: "Bufferbloat, and queues that manage themselves",
    text: [
      "A loss-based sender fills any queue until it overflows. Behind a large queue each packet waits: a call over the same link has that delay, too.",
      "CoDel and PIE drop packets early, when the waiting time stays above a target. FQ-CoDel also gives each flow a queue of its own.",
      "BBR, Copa and rrtp keep the queue short without help of the router.",
    ],
    options: { link: "10Mbit/s,20ms,queue=8bdp", protocols: "cubic,bbr,copa,rrtp", duration: "40s" },
    tries: [
      ["CoDel", { link: "10Mbit/s,20ms,queue=8bdp,aqm=codel" }],
      ["PIE", { link: "10Mbit/s,20ms,queue=8bdp,aqm=pie" }],
      ["FQ-CoDel, beside a CUBIC flow", { link: "10Mbit/s,20ms,queue=8bdp,aqm=fq-codel", against: "cubic:1" }],
    ],
    lens: ["cubic", "copa"],
  },
  {
    title: "Fairness",
    text: [
      "Flows of one protocol should share a link equally. Jain's index says how equal their rates are: 1 is equal, 1/n is one flow alone.",
      "Beside another protocol the column “share” counts: half would be equal for one flow beside one. Delay-based senders give way to CUBIC, which fills the queue; a sender that ignores losses takes from it.",
      "Equal windows are not equal rates: of two flows the one with the shorter RTT gets more.",
    ],
    options: { link: "20Mbit/s,25ms,queue=1bdp", protocols: "reno,cubic,bbr,bbr3,vegas,copa,rrtp", against: "cubic:1", duration: "60s" },
    tries: [
      ["Four flows of one protocol", { against: "", flows: "4" }],
      ["A large queue", { link: "20Mbit/s,25ms,queue=8bdp" }],
      ["A small queue", { link: "20Mbit/s,25ms,queue=0.3bdp" }],
    ],
    lens: ["vegas", "bbr"],
  },
  {
    title: "The states of BBR",
    text: [
      "BBR models the path by two numbers: the largest delivery rate and the smallest RTT of recent times. It sends at that rate, and keeps twice their product in flight.",
      "Startup doubles the rate until it grows no more. Drain empties the queue that Startup made. ProbeBW sends a quarter more for a round trip, then less. ProbeRTT shrinks the window to four packets to see the RTT without a queue.",
      "In the lens every change of state is a mark ◆; choose one to read why. BBRv3 also bounds what is in flight where losses exceed 2%.",
    ],
    options: { link: "20Mbit/s,40ms,queue=2bdp", protocols: "bbr,bbr3", duration: "30s" },
    tries: [
      ["A queue of a tenth", { link: "20Mbit/s,40ms,queue=0.1bdp" }],
      ["Beside CUBIC", { against: "cubic:1" }],
      ["Loss of 5%", { link: "20Mbit/s,40ms,queue=2bdp,loss=5%" }],
    ],
    lens: ["bbr", "bbr3"],
    view: "lens",
  },
  {
    title: "Ideas of five papers",
    text: [
      "ST-PD (a thesis on TCP over satellites) sizes its steps by the measured queueing delay. TCP Jersey sets its window to an estimate of the available bandwidth when a router warns of congestion.",
      "TFWC (Choi 2006) keeps TFRC's smooth rate, but by a window. TEAR (Jayaram 2001) emulates a TCP window at the receiver, and sends at its mean rate.",
      "The thesis on RRTP decouples reliability from congestion control: the receiver reports what arrived, and the rate falls a little at a time (LIMD). docs/papers.md says which of their figures are reproduced.",
    ],
    options: { link: "wireless", protocols: "reno,stpd,jersey,westwood+,tfwc,tear,rrtp" },
    tries: [
      ["A geostationary satellite", { link: "geo" }],
      ["A cellular channel", { link: "cdma" }],
      ["Beside Reno", { against: "reno:1" }],
    ],
    lens: ["stpd", "tear"],
  },
];

// The list of lessons, or one; `start` and `change` get options.
function showLesson(number, start, change) {
  const box = byId("lesson");
  const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });
  const lesson = LESSONS[number];
  const list = document.createElement("div");
  list.className = "chips";
  list.append(...LESSONS.map((other, n) => {
    const button = make("button", `${n + 1}. ${other.title}`, { type: "button" });
    button.setAttribute("aria-pressed", n === number);
    button.addEventListener("click", () => start(n));
    return button;
  }));
  box.replaceChildren(make("h2", "Lessons"), list);
  if (!lesson) return;
  box.append(make("h3", lesson.title), ...lesson.text.map((text) => make("p", text)), make("h4", "Change it"));
  const tries = document.createElement("div");
  tries.className = "buttons";
  tries.append(...[["As it began", {}], ...lesson.tries].map(([label, options]) => {
    const button = make("button", label, { type: "button" });
    button.addEventListener("click", () => change({ ...lesson.options, ...options }));
    return button;
  }));
  box.append(tries, make("p", "All controls work here, too; “Lens” shows single flows.", { className: "quiet" }));
}
