//! RRTP's regular mode: S3 section 3.4.1, "pre-emptive, bounded" control of the rate, made into one
//! that works unseeded, fills lossy links and shares clean ones.
//!
//! What S3 wants is kept: a rate that stays below the path's by watching queues instead of causing
//! losses; an upper bound from the rate that arrives; a gentle answer to incipient congestion and a
//! Reno-like one to congestion that drops; losses that the receiver takes for the radio's are only
//! repaired; what is told of the network beforehand replaces the search for it.
//!
//! How S3 does it is not kept, because it cannot work as printed:
//! - *The rate cannot rise.* S3 raises it where send rate over receive rate is below 0.95. A link
//!   that is not full delivers at the rate at which it is sent to, so the ratio is 1 and the rate stays:
//!   the thesis runs on seeds. Ours probes: 15 % more for one of eight round trips, and twice as
//!   much again after a probe that found something.
//! - *The ratio cannot tell whose queue it is.* Whoever always yields to a queue starves beside TCP,
//!   which fills it. Ours has two modes and asks which one is right (below).
//! - *Epochs of ten packets* are a sixth of a round trip on one of S3's links and ten on another, while
//!   what a rate does is seen after one. Ours counts in round trips. The averages of 10 and 50 gaps
//!   stayed in `rrtp-lasthop`, where they suffice.
//! - beta from 0.05 doubling to 0.5 reduces within six epochs by ten times, whatever the excess was.
//!   Ours returns to the product of bandwidth and smallest round trip at once.
//!
//! **The law.** What is sent in addition arrives, waits or is lost, and what is sent less is missing at one of the
//! three. The controller varies its own rate all the time (climb, probe, quiet round, cut), and asks where it went:
//!
//! | what was sent more | what was cut | says |
//! |---|---|---|
//! | arrives | less arrives | there is room, or others have the rest |
//! | waits: round trips rise | less waits: they fall | the queue is ours; losses meanwhile are the link's |
//! | neither | neither | a full buffer or a policer dropped it: losses follow the rate, and brake |
//! | arrives, and round trips vary all the same | less arrives, and they stay | jitter, or a longer path: no queue |
//!
//! *Losses* (`rrtp/loss_model.rs`) are the link's as far as that showed it. Then they are made up for and do not
//! brake:
//! - In the *startup* they are believed on credit, if more arrived as more was sent; all of them, if the path had been
//!   empty and a queue grew then, as a queue that grows drops nothing. Without an answer that the queue is ours the
//!   credit ends after 24 rounds.
//! - In *default mode* packets that left while the sender held back are counted apart from all others. The link's loss
//!   is what both lose, but by no more than chance above what is lost when holding back. Two probes of which nothing
//!   arrives or waits end the belief. The bandwidth counts what the link lost of a sample, since the bottleneck had
//!   sent it: below what is known as much as chance may have lost, above it the mean only, so that no probe finds more
//!   by what it lost.
//! - In *competitive mode* losses brake, unless eight rounds in a row met no queue where one had shown before; what only
//!   a larger window loses than the one of the first of them follows the rate all the same. Where no
//!   queue shows, and a cut took losses but left the rate, a policer had dropped what was too much: from then on no
//!   empty queue acquits, whatever the receiver takes the losses for, a cut leaves 0.85 of the window, and nothing is
//!   refilled faster than Reno does, until losses go on although the window is less than what arrived before: a policer
//!   drops nothing of that. Where for twelve rounds no round trip met a queue, and small rounds lose as large ones do, the
//!   startup's climb is tried again: it ends at a queue, and at once where more is lost than at the small rate. It is
//!   tried ever more rarely, and not by flows of less than six packets. Where many others keep a queue full, round trips
//!   vary by the packets that come and go, so nobody climbs there.
//!
//! *An application that sends less than it may* makes no experiment. In rounds without a rate sample of the path's no
//! probe counts as dropped, no cut is judged, and a question is asked again; the bandwidth stays what it was, and most of
//! six such rounds must be lost before default mode ends for it. A silence of few packets, as many as a link that loses
//! loses in a row now and then, is no outage.
//!
//! *An outage* that is shorter than a restart needs, as at a satellite's handover, is no flood: a full queue goes on
//! sending. Where many packets were lost in a row that had left over so long that the link would have sent many, and no queue showed
//! before and after, nothing passed, and the path is what it was; this is believed once in eight rounds.
//!
//! Compare PCC Vivace's loss gradient (NSDI 2018), and BBRv3's loss bounds (draft-ietf-ccwg-bbr), which take all loss
//! for the rate's.
//!
//! *Round trips* (`rrtp/path_model.rs`) are without what was waited on the way back. *Noise* is what they are above
//! the smallest without a queue. It is learnt only where the window moved and they did not, more than chance explains,
//! while the delivery rate did: in a climb, or by the question below. It falls by itself.
//!
//! *Startup* (`rrtp/startup.rs`). What the packets that open a connection tell (`on_dispersion`; ten packets leave by it
//! until the first acknowledgement, since it can be forged), or else four packets; the spacing of their
//! acknowledgements is a first rate (in S3, section 3.2, two probe packets). The next flight is the product of that
//! rate and the round trip, at most 64 packets; if it is 64, its own spacing must confirm the rate, and no flight has more
//! than four times the packets of the one before. Where the first packet of a flight waits behind nothing of its own, others
//! begin, too: no flight follows, but what is out doubles, without what was lost of it. Then a quarter more
//! per round trip until a queue shows, or rounds no longer deliver more: then, too, if many packets are lost.
//!
//! *Default mode* (`rrtp/default_mode.rs`): the window is the product and a room of 4 ms, the rate 5 % above what
//! the bottleneck sends, so that the window rules and a queue never grows beyond the room. One of eight rounds sends
//! 15 % more; one sends a tenth less while there is loss or noise to explain. Losses up to what the link is known for
//! mean nothing. Who makes up for losses leaves three quarters of the room to those who cannot.
//!
//! *Competitive mode* (`rrtp/competitive.rs`): a window that grows by nine tenths of a packet per round trip and leaves
//! half of itself at congestion, nearly as Reno's; it grows again by what left after the cut.
//! Congestion is a loss that the receiver did not take for the radio's and that came while the
//! round trip was high, or, where round trips cannot tell, more losses than the link's. Two things depend on the queue.
//! Behind a deep one a round trip is long, and the window follows a curve of CUBIC's shape where that is faster; its scale
//! lies between Reno and CUBIC, as beside both a share near one half is wanted. A shallow one is
//! empty long before half: a cut after which the queue was seen to be gone lets the next one leave what the path itself
//! holds, and the growth is less by as much (AIMD with the same mean window).
//!
//! Where a link's losses keep a Reno below the own window, a queue is of no use to anybody: it is drained, but for what a
//! Reno reaches between two such losses. One that stays for two rounds all the same is kept by somebody who leaves no room.
//!
//! *Beside BBR* (`rrtp/beside_bbr.rs`) braking at losses leaves next to nothing of a short buffer. BBR is found by the
//! probes of the smallest round trip that empty the queue every ten seconds (`rrtp/probe_rtt.rs`): by one if it comes when
//! it is due while little of the link is left to this end, otherwise by two, to which nothing of one's own led. Then rate
//! and window are BBR's, but for a bound below the whole link, until none is seen for two periods.
//!
//! In competitive mode and in the startup, a round of which a queue that shows dropped more than half leaves what arrived of it.
//!
//! *Whose queue?* (`rrtp/question.rs`) The window is cut by a fifth for two round trips while round trips are long. There are three answers:
//! - *Ours*: the rate stays, as whoever is alone gets it from a shorter queue, and round trips fall by at least half of
//!   what was cut. Two such answers begin *default mode*. Where neither falls, the queue was full: no answer.
//! - *Others'*: the rate falls, as the others' packets stay: with part s, 0.8/(1 - 0.2 s) of it remains (s above 0.8
//!   counts as ours). *Competitive mode* goes on, and the question becomes rarer.
//! - *Nobody's*: the rate falls and round trips stay. The path is that long, or jitters: noise is learnt. This is
//!   believed only where round trips scatter from packet to packet as jitter that long makes them, or where the path was
//!   ours for long and they stayed for four rounds, and never while a tenth is lost, since a small share of somebody's
//!   queue looks alike.
//!
//! *Jitter* that is known by the scatter of many rounds, more than queues make, answers for three things: nothing is asked, as
//! what arrives in a round varies as much as round trips do; single losses are no congestion while round trips are no longer
//! than what was learnt of it; and who has never met congestion takes a window that grows without longer round trips for room,
//! and climbs again.
//!
//! A queue that grows for a base round trip while less comes out of it than the bandwidth that is known (in competitive
//! mode: than in the round before, and by more than windows grow that add a packet per round trip) makes what comes
//! out the bandwidth: a slower link's queue drains then, and if it stays it is others', and what was yielded is taken back.
//! A queue that stands although our part is held short, a bandwidth that falls by a fifth, or losses beyond the link's
//! end the default mode. After a silence in which everything was lost the path is taken for a new one,
//! but for what default mode had found the link to lose. So a changed path is asked the same question as a competitor,
//! and the question has no time constant of TCP's in it. Copa (NSDI 2018) and Nimbus (SIGCOMM 2022) ask by other means. Cuts are whole packets, an
//! answer that a loss spoiled is asked for again, and the queue that the startup found does not grow until it is
//! answered: on a slow link each packet is half a second. Where the queue holds a packet or two nothing can be asked;
//! there congestion's own cuts are answers: two that leave all of the rate.
//!
//! Seeds: a told rate begins in *default mode* with the whole product; if it is wrong, the modes find out. A
//! told loss rate is the least that is taken for the link's. A told RTT counts until the first is measured.
//!
//! Known limits:
//! - Several of a kind, clean and long-lived, stay *competitive mode*. With room for one product (40 ms) two keep
//!   13 ms in the mean, as each is sometimes taken for nobody; four keep 29.
//! - What holds its own beside CUBIC behind a long queue is too much for Reno. On 10 Mbit/s, 20 ms it has 0.46 to 0.57 beside
//!   one and four flows of TCP with SACK and of CUBIC, on 50 Mbit/s, 40 ms the same but behind two and four products: four
//!   leave four SACKs 0.37 and 0.39, one is left 0.33 and 0.25 by one CUBIC (docs/benchmarks.md, "Sharing"). Behind a quarter
//!   of the product it takes 0.62 to 0.69, as pacing keeps it from the bursts that such queues drop; Reno of 1990, which
//!   waits for its timer after several losses, is left 0.05 (docs/scenarios.md, "Shares").
//! - BBR is found at its first probe, 10 to 13 s after it began, and until then leaves 0.05 to 0.2 of the link; a newcomer
//!   to BBR waits for as long (0.11 of 20 Mbit/s and 0.08 of 100 from the fifth to the tenth second). Behind four products
//!   of 10 Mbit/s the queue of four does not run empty while four BBRs probe, and they are left 0.36. Behind a tenth of
//!   the product, where the queue comes and goes, BBR is believed for a third of the time (0.3 of the first minute).
//! - Where others brake at losses, and all let the queue run empty for 0.2 to 1 s just when BBR would, they are taken for
//!   BBR and lose most of the link for 20 s: 0.2 to 0.5% of the time of 52 networks without BBR, three to six runs of
//!   120 s each; most beside CUBIC on cellular links, 5%.
//! - Where an answer that nobody else is there was wrong, the next question waits for 48 rounds: a
//!   competitor that leaves meanwhile is noticed that much later.
//! - Alone on a slow link (144 kbit/s, 500 ms, 1 % loss, a buffer of 50 packets) two of 120 runs took losses
//!   for a competitor's and let the buffer fill: 7 and 18 packets in the mean, where others keep one.
//! - Where losses come in bursts, chance may end the startup and the climbs after it: on 20 Mbit/s, 25 ms with 30 % in
//!   bursts of four, 8 of 200 seeds have less than a fifth of what they could and 34 less than 0.8 (one burst of twenty is
//!   a silence of 20 s), told the rate none and 4; at 20 % 2 and 15, told none and 3; with single losses of 30 % none and 1.
//! - Where round trips vary by more than a few per cent without a queue, a link's losses are not climbed for again.
//! - Where jitter is longer than the path and the link loses, too, chance decides whether the jitter is learnt before losses keep
//!   the window small: on 20 Mbit/s, 25 ms with 1 % lost and 50 ms of jitter both ways 7 of 20 runs have less than a fifth of the
//!   link, with 100 ms both ways more than half. To climb there again after ever more rounds finds the room (13.7 and
//!   10.8 Mbit/s in the median), but leaves four CUBICs on a link with 40 ms of jitter a tenth.
//! - A link that varies by 1.4 each fifth of a second is followed down at once and up by probes only: 0.8 of it.
//! - Many flows on a link that loses are not always alike: losses bound all who see a queue, and one that takes it for the
//!   path's own delay fills what they leave. Of thirty on 100 Mbit/s, 25 ms one had more than three shares of 20 s in 5
//!   of 100 runs at 1 % and in 9 at 5 %, in four of each more than five, up to 13.
//! - On a link that loses 1 % one TCP beside it keeps 0.87 to 0.89 of what it has beside its own kind. What would leave it 0.9
//!   (to drain the queue for four rounds) leaves one of thirty of its own more than three shares in 20 of 200 runs instead of 14.
//! - A policer with a bucket of ten packets drops 1.6 % of what is sent at 10 Mbit/s and 50 ms, larger ones 0.8 to 2.3 %.
//!   It is not known for a policer at 20 Mbit/s (7 % dropped) or at 200 ms (9 %); at 2 Mbit/s, and where the bucket is half a
//!   product of 50 Mbit/s, it is taken for a link that loses, and drops 36 and 50 %.
//! - A link that loses and whose queue is too short to show (a fiftieth of the product) is taken for a full one.
//! - On a link that loses 5 % it fills what TCP cannot: of four TCPs beside it three keep 0.9 of what they had without,
//!   Westwood, which alone had used it, 0.7.
//! - A newcomer to a queue that thirty others keep full takes several shares for a second or two, until its credit
//!   ends.
//! - Flows that begin together on a link that holds two packets of each drop a quarter of what they send (twenty on 20 Mbit/s,
//!   20 ms, in the first 10 s; CUBIC 7 %): a first flight of ten is five times their share. So do twenty that come one after
//!   another within 2 s behind a short queue (20 Mbit/s, 200 ms, a quarter of the product: 18 %): who meets a full queue all
//!   the time sees no queue, and takes its drops for the link's.
//! - Who meets others in its opening begins with what is out, beside one TCP on 100 Mbit/s with a third of the link.
//! - On paths of less than 1 ms round trips tell of hosts, and only drops of a queue: the window is AIMD's, grows by no
//!   more than a 32nd per round trip, is paced, and a cut leaves what the path holds. A queue of one packet (100 Mbit/s,
//!   0.1 ms) drops 4 % of it, one of ten (1 Gbit/s) 0.3 %. Four Renos beside it still have next to nothing.
//! - In a queue of a fiftieth of the product (S3's long fat pipe) every probe overflows: 0.74 of the link.

mod beside_bbr;
mod competitive;
mod default_mode;
mod flight;
mod loss_model;
mod path_model;
mod probe_rtt;
mod question;
mod round;
mod startup;
mod unqueued;

use crate::{
    Ack, CongestionEvent, Controller, Environment, PacketOutcome, PathEvent, PathHints,
    Requirements, SendLimits, bounded, variables,
};
use competitive::Competitive;
pub(crate) use flight::Flight;
use loss_model::LossModel;
use narrows_base::{Descriptor, Rate, Settings, Status, Time, Variable};
pub(crate) use path_model::PathModel;

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "rrtp",
    summary: "short queues where it is alone, a fair share where it is not (after S3)",
    source: "S3 section 3.4.1, by other means: see its file",
    senses: "delivery rate, round-trip time, congestion losses",
    sets: "pacing rate and window",
    params: &[],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    Variable::state(
        "rrtp_state",
        "what the sender is at",
        &[
            "startup (looks for the rate)",
            "default (holds the queue short)",
            "competitive (takes its share)",
            "beside BBR (paces as it does)",
        ],
    ),
    variables::BANDWIDTH,
    variables::MIN_RTT,
    Variable::new("delivery_rate_bps", "bit/s", "delivery rate of the last round trip"),
    Variable::new(
        "own_window",
        "packets",
        "window of startup or of the competitive mode; the default mode has none",
    ),
    Variable::new("link_loss", "fraction", "packets that the link is believed to lose at any rate"),
    Variable::new(
        "rate_loss",
        "fraction",
        "loss that follows the own rate: a full buffer's or a policer's",
    ),
    Variable::new("noise_s", "s", "what round trips are above the smallest without any queue"),
    Variable::state(
        "queue_owner",
        "whose the queue is by the last experiment, which cut the window",
        &[
            "unknown",
            "ours (as much arrived from a shorter queue)",
            "others' (less arrived)",
            "nobody's (less arrived, but round trips stayed: the path is that long)",
        ],
    ),
];

/// A link that is known to lose more is expected to.
const KNOWN_LOSS: f64 = 0.01;
/// Packets of a round below which its losses and deliveries are mostly chance.
const FEW_TO_TELL: f64 = 32.0;
/// A full queue that dropped so much of a round shows what there is room for.
const MOST_LOST: f64 = 0.5;
/// Packets of a window that a full queue may drop whole.
const SMALL: f64 = 6.0;
/// Packets of the first flight: enough for a spacing, few enough for any queue.
const FIRST_FLIGHT: f64 = 4.0;

/// Builds the controller.
pub fn build(_settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Rrtp::new(environment))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Looks for the rate.
    Startup,
    /// Holds the queue short.
    Default,
    /// Takes its part.
    Competitive,
    /// Takes its part where others do not brake at losses.
    BesideBbr,
}

#[derive(Clone, Debug)]
struct Rrtp {
    packet_bits: f64,
    /// Packets of the first flight.
    first_flight: f64,
    /// The rate was told, and no startup has looked for it.
    told: bool,
    /// Everything was lost once: losses without a queue that shows prove nothing from then on.
    restarted: bool,
    path: PathModel,
    mode: Mode,
    /// Packets: the startup's, or the competitive mode's; *default mode* has none of its own.
    window: f64,
    startup: startup::Startup,
    default_mode: default_mode::DefaultMode,
    competitive: Competitive,
    probe_rtt: probe_rtt::ProbeRtt,
    beside_bbr: beside_bbr::BesideBbr,
}

impl Rrtp {
    fn new(environment: &Environment) -> Rrtp {
        let mut rrtp = Rrtp {
            packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
            told: false,
            restarted: false,
            path: PathModel::with_losses(),
            mode: Mode::Startup,
            window: bounded(environment.initial_window.min(FIRST_FLIGHT), 1.0),
            startup: startup::Startup::default(),
            default_mode: default_mode::DefaultMode::default(),
            competitive: Competitive::default(),
            probe_rtt: probe_rtt::ProbeRtt::default(),
            beside_bbr: beside_bbr::BesideBbr::default(),
            first_flight: 0.0,
        };
        rrtp.first_flight = rrtp.window;
        rrtp.learn(&environment.hints);
        rrtp
    }

    fn learn(&mut self, hints: &PathHints) {
        if let Some(rtt) = hints.rtt {
            self.path.set_base(crate::positive(rtt));
        }
        if let Some(loss) = hints.loss {
            self.path.radio_loss = loss.clamp(0.0, 1.0);
        }
        if let Some(rate) = hints.rate {
            let told = bounded(rate.as_bps() as f64 / self.packet_bits, 1e-3);
            self.path.set_bandwidth(told);
            self.told = true;
            self.path.losses.iter_mut().for_each(|l| l.told = hints.loss.is_none());
            self.begin_default();
        }
    }
}

impl Rrtp {
    /// Whether a loss now is congestion's: where round trips cannot tell, more must be lost than the link loses.
    fn is_congested(&self) -> bool {
        if self.mode == Mode::Competitive && self.competitive.is_policed() {
            return true;
        }
        let loss = self.path.link_loss();
        match self.path.queue_shows() {
            Some(shows) => shows,
            None => {
                loss < KNOWN_LOSS || self.path.lost_now() as f64 > 2.0 + 2.0 * loss * self.window
            }
        }
    }

    /// A full queue that shows, and dropped most of a round: what arrived of it is what there is room for. Halves of a
    /// window that is several times too large would take as many rounds.
    fn leave_what_arrived(&mut self) {
        let round = self.path.round;
        let many = round.delivered + round.lost >= FEW_TO_TELL;
        if many && round.lost_share() > MOST_LOST && self.path.shows_queue() {
            self.window = self.window.min(round.delivered.max(FIRST_FLIGHT));
        }
    }
}

impl Controller for Rrtp {
    fn on_ack(&mut self, ack: &Ack) {
        self.path.crediting = match self.mode {
            Mode::Startup | Mode::Default => true,
            Mode::Competitive => self.competitive.knows_losses(),
            Mode::BesideBbr => false,
        };
        let round = self.path.on_ack(ack);
        let probes = self.probe_rtt.on_ack(ack, &self.path, self.competitive.last_cut());
        if probes && self.mode == Mode::Competitive {
            self.begin_beside_bbr(ack.now);
        }
        if round && self.mode != Mode::Default {
            self.leave_what_arrived();
        }
        match self.mode {
            Mode::Startup => self.startup_ack(ack, round),
            Mode::Default => self.default_ack(ack, round),
            Mode::Competitive => self.competitive_ack(ack, round),
            Mode::BesideBbr => self.beside_bbr_ack(ack, round),
        }
    }

    fn on_packet_outcome(&mut self, outcome: &PacketOutcome) {
        if self.mode == Mode::Startup {
            self.startup_outcome(outcome);
        }
        let quiet = match self.mode {
            Mode::Startup | Mode::BesideBbr => false,
            Mode::Default => self.default_mode.is_quiet(outcome.sent),
            Mode::Competitive => {
                self.path.shows_no_queue() && self.competitive.holds_back(self.window)
            }
        };
        // What is lost while a queue shows says nothing of the link, nor where one may be that does not show: but at
        // first round trips cannot tell, and what was counted then is believed until the startup ends.
        let says = match self.path.queue_shows() {
            Some(shows) => !shows,
            None => (self.mode == Mode::Startup && !self.restarted) || self.told,
        };
        // A silence is an outage, whatever its packets would have shown.
        let says = says && !(outcome.lost && self.path.is_silent());
        if let Some(losses) = self.path.losses.as_mut().filter(|_| says) {
            losses.on_outcome(outcome.lost, quiet);
        }
        if outcome.lost {
            self.path.on_loss(outcome.sent);
            // No link loses as much more than it is known to as a flooded queue, whatever the trip times say.
            let policed = self.mode == Mode::Competitive
                && self.competitive.drops(self.path.lost_now(), self.window);
            if policed || self.path.is_flooded() || (!outcome.radio && self.is_congested()) {
                self.congestion_loss(outcome);
            }
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        if let CongestionEvent::SlowStartRestart(_) = event
            && !self.path.lost_by_chance()
        {
            if self.mode == Mode::Competitive && self.window < SMALL && self.path.shows_queue() {
                // A full queue drops two or three packets in a row now and then, and is the same path after it.
                self.competitive.question.drop();
                self.window = 1.0;
                return;
            }
            self.path.forget_rates();
            self.path.forget_round_trips();
            // What the link was known to lose while nobody else was there it may lose still.
            let proven = self.mode == Mode::Default;
            (self.restarted, self.told) = (!proven, false);
            let keep = if proven { LossModel::hold } else { LossModel::distrust };
            self.path.losses.iter_mut().for_each(keep);
            self.mode = Mode::Startup;
            self.startup = startup::Startup::again();
            self.window = FIRST_FLIGHT.min(self.window.max(1.0));
        }
    }

    fn on_path_event(&mut self, _now: Time, event: &PathEvent) {
        match event {
            PathEvent::Hints(hints) => self.learn(hints),
            PathEvent::Dispersion(dispersion) if self.mode == Mode::Startup => {
                self.startup_dispersion(dispersion);
            }
            PathEvent::Dispersion(_) | PathEvent::PacketBytes(_) => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        let (window, rate) = match self.mode {
            Mode::Startup => self.startup_limits(),
            Mode::Default => self.default_limits(),
            Mode::Competitive => self.competitive_limits(),
            Mode::BesideBbr => self.beside_bbr_limits(),
        };
        let bps = rate.map(|r| Rate::from_bps_f64(bounded(r * self.packet_bits, 1.0)));
        SendLimits { pacing_rate: bps, ..SendLimits::unpaced(bounded(window, 1.0)) }
    }

    fn requirements(&self) -> Requirements {
        Requirements::RRTP
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rrtp_state", f64::from(self.mode as u8));
        put("bandwidth_bps", self.path.bandwidth() * self.packet_bits);
        if let Some(base) = self.path.base() {
            put("min_rtt_s", base);
        }
        put("delivery_rate_bps", self.path.round.rate() * self.packet_bits);
        put("own_window", self.window);
        put("link_loss", self.path.link_loss());
        put("rate_loss", self.path.rate_loss());
        put("noise_s", self.path.noise());
        put("queue_owner", f64::from(self.competitive.answer() as u8));
    }
}

#[cfg(test)]
mod tests;
