"""Compare ``rrtp_from_the_page.py`` with the project's ``rrtp`` on random networks, over the same endpoint.

python python/examples/compare_rrtp_from_the_page.py [NETWORKS [SEED]]
"""

import random
import sys
from concurrent.futures import ProcessPoolExecutor

import narrows
from rrtp_from_the_page import FromThePage

OWN, PAGE = "rrtp", "rrtp+FromThePage(classifier=spike)"
MEASURES = {"goodput_bps": "goodput", "rtt_s_mean": "mean RTT", "loss_rate": "share of losses"}


def networks(count, seed):
    """Draw links and the competitors on them."""
    r = random.Random(seed)

    def drawn(**shares):
        kinds = [kind for kind, share in shares.items() for _ in range(int(share * count))]
        kinds += [None] * (count - len(kinds))
        r.shuffle(kinds)
        return kinds

    losses, delays = drawn(random=1 / 3, bursts=1 / 8), drawn(jitter=1 / 5)
    queues, beside = drawn(codel=1 / 6), drawn(cubic=1 / 6, sack=1 / 6)
    for i in range(count):
        rate, delay = 0.5 * 400 ** r.random(), 150 ** r.random()
        link = f"{rate:.3f}Mbit/s,{delay:.2f}ms,queue={0.1 * 30 ** r.random():.2f}bdp"
        duration = f"{r.uniform(20, 30):.1f}s"
        if losses[i] == "random":
            link += f",loss={r.uniform(0, 3):.2f}%"
        if losses[i] == "bursts":
            link += f",loss=ge(g={r.uniform(0.05, 0.3):.2f}%,h={r.uniform(10, 30):.1f}%)"
        if delays[i]:
            link += f",jitter={delay * r.uniform(0.05, 0.5):.2f}ms"
        if queues[i]:
            link += ",aqm=codel"
        yield {"link": link, "duration": duration, "against": beside[i]}


def both(network):
    """Run both controllers on a network: returns their rows."""
    narrows.register(FromThePage)
    protocols = f"{OWN},{PAGE}"
    found = narrows.compare(**network, protocols=protocols, seeds=1, progress=False)
    return found.to_dict()["results"]


def mean(row, measure):
    return row[measure]["mean"]


def main(count=40, seed=33):
    """Print a table of all networks, and the differences on the whole."""
    drawn = list(networks(int(count), int(seed)))
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(both, drawn))
    print(
        "| network | beside | " + " | ".join(f"{m}: rrtp, page" for m in MEASURES.values()) + " |"
    )
    print("|---|---|" + "---|" * len(MEASURES))
    for network, (own, page) in zip(drawn, rows, strict=True):
        pairs = [f"{mean(own, m):.6g}, {mean(page, m):.6g}" for m in MEASURES]
        print(f"| {network['link']} | {network['against'] or ''} | {' | '.join(pairs)} |")
    for measure, name in MEASURES.items():
        sums = [sum(mean(row, measure) for row in column) for column in zip(*rows, strict=True)]
        cells = [
            abs(mean(page, measure) / mean(own, measure) - 1)
            for own, page in rows
            if mean(own, measure)
        ]
        print(f"{name}: {sums[1] / sums[0] - 1:+.3%} in all, at most {max(cells):.3%} on a network")
    equal = sum(own["digest"] == page["digest"] for own, page in rows)
    print(f"equal to the bit: {equal} of {len(rows)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
