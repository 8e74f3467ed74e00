"""First paint of the live page in headless Chromium: the median of ten loads.

    python3 tools/live/first_paint.py target/release/narrows [LOADS]

The page is that of a comparison: four protocols of two flows each, over 30 s. Every load is a tab of its own, in one
browser; the times are those that the browser itself notes (first-paint), from the beginning of the load on.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

COMPARE = ["compare", "--link", "lte", "--protocols", "cubic,bbr,vegas,rrtp", "--flows", "2", "--duration", "30s",
           "--seeds", "1", "--live"]
PAINTED = ("new Promise(done => { const look = () => { const found = performance.getEntriesByName('first-paint');"
           " found.length ? done(found[0].startTime) : setTimeout(look, 20); }; look(); })")


class Browser:
    """Chromium under its own protocol, over a pair of pipes: messages end with a zero byte."""

    def __init__(self, profile):
        to_read, self.to = os.pipe()
        self.come, from_write = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to 4.
        command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                   "--window-size=1280,900", f"--user-data-dir={profile}"]
        shell = f'exec "$@" 3<&{to_read} 4>&{from_write}'
        self.process = subprocess.Popen(["bash", "-c", shell, "bash", *command], pass_fds=[to_read, from_write],
                                        stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.buffer, self.number = b"", 0

    def ask(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                more = os.read(self.come, 1 << 16)
                if not more:
                    sys.exit("the browser has ended")
                self.buffer += more
            text, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def first_paint(self, url):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.navigate", session, url=url)
        found = self.ask("Runtime.evaluate", session, expression=PAINTED, awaitPromise=True, returnByValue=True)
        self.ask("Target.closeTarget", targetId=target)
        return found["result"]["value"]


def main():
    narrows, loads = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    command = subprocess.Popen([narrows, *COMPARE], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    url = None
    for line in command.stderr:
        if found := re.search(r"http://\S*token=[0-9a-f]+", line):
            url = found[0]
            break
    if not url:
        sys.exit("the command told of no page")
    time.sleep(3)
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(profile)
        try:
            took = sorted(browser.first_paint(url) for _ in range(loads))
        finally:
            browser.process.terminate()
            browser.process.wait()
            command.terminate()
    print(f"first paint: median {statistics.median(took):.0f} ms, from {took[0]:.0f} to {took[-1]:.0f}, {loads} loads")


if __name__ == "__main__":
    main()
