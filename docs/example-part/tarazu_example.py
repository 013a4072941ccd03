"""A part of tarazu that is alive, to copy from: mdsd counts the greetings of clients, and answers each."""

from __future__ import annotations

from typing import Any

import msgspec

from tarazu.config.check import section, setting
from tarazu.part import Asker, InMdsd, MdsdFacts, Part


@section(frozen=True)
class Example:
    word: str = setting("hello", "what a greeting is answered with")


class Greeting(msgspec.Struct, frozen=True, tag="greeting"):
    name: str


class Greeter(InMdsd):
    def __init__(self, word: str, mdsd: MdsdFacts) -> None:
        self.asks, self.word, self.note, self.greetings = {Greeting: "client"}, word, mdsd.note, 0

    def answer(self, asker: Asker, message: Greeting, now: float) -> Greeting:
        self.greetings += 1
        self.note({"uid": asker.uid})
        return Greeting(f"{self.word} {message.name}")

    def status(self, now: float) -> dict[str, Any]:
        return {"greetings": self.greetings}


class ExamplePart(Part):
    name, settings = "example", Example

    def in_mdsd(self, mdsd: MdsdFacts) -> Greeter:
        return Greeter(self.own(mdsd.settings).word, mdsd)


PART = ExamplePart()
