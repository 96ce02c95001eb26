"""A real browser, without a window: Debian's chromium, driven by selenium."""
import json

import pytest

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.common.exceptions import ElementClickInterceptedException, ElementNotInteractableException, StaleElementReferenceException  # noqa: E402
from selenium.webdriver.chrome.options import Options  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

from hosts import wait_until  # noqa: E402

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--disable-background-networking", "--no-first-run")


class Browser:
    """One tab."""

    def __init__(self):
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.resize(1280)

    def close(self):
        self.driver.quit()

    def resize(self, width, height=900):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def prefer(self, scheme):
        """light or dark"""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, address):
        """As a new tab would: nothing is kept of the page before."""
        self.driver.get("about:blank")
        self.driver.get(address)

    def go(self, page):
        """To another page of the app, by its fragment."""
        self.run("location.hash = arguments[0]", f"#/{page}")
        self.wait(lambda: self.run("return location.hash") == f"#/{page}", f"the page {page}")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, selector="main"):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def title(self):
        return self.text("h1")

    def wait(self, condition, what):
        wait_until(condition, f"{what}; the page shows: {self.text('body')[:2000]!r}")

    def wait_text(self, text, selector="main"):
        self.wait(lambda: text in self.text(selector), repr(text))

    def press(self, label):
        """The button or link of that text, as a person would."""
        def pressed():
            found = self.run("""
                return [...document.querySelectorAll("button, a, summary")]
                    .filter((e) => e.innerText.trim() === arguments[0] && e.getClientRects().length).at(-1) ?? null""", label)
            if found:
                found.click()
            return found

        self.wait(self.patiently(pressed), f"a button {label!r}")

    @staticmethod
    def patiently(condition):
        """A page that is drawn anew takes elements away while they are looked at."""
        def tried():
            try:
                return condition()
            except (StaleElementReferenceException, ElementNotInteractableException, ElementClickInterceptedException):
                return None

        return tried

    def key(self, *keys):
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def shot(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))

    def complaints(self):
        """What the browser wrote to its console: errors of scripts, refusals of the policy."""
        return [line["message"] for line in self.driver.get_log("browser") if line["level"] == "SEVERE"]

    def wire_bytes(self):
        """What the page's own files took on the wire."""
        return json.loads(self.run("""
            return JSON.stringify(performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation"))
                .filter((e) => !new URL(e.name).pathname.startsWith("/v1/")).map((e) => [e.name, e.transferSize]))"""))


__all__ = ["Browser", "Keys"]
