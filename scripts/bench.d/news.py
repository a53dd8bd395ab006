"""Generates what a browser fetches of nine news sites' front pages every five minutes: FOLDER [--fetches N] [--seed N].

Each response is a file FOLDER/NUMBER-SITE, with its header, in the order in which they come; `about` says how they were
made. The same seed and number of fetches give the same bytes. This stands in for the traces of Wanax (section 4.2), which are not
public: how much repeats was set by the constants below, to about the 72 % that the paper measured. At which
lengths it repeats follows from what pages are made of: templates that stay, stories that stay and move, numbers, times and
tokens within them that change, advertisements that rotate, and pictures, which a browser fetches once.
"""

import argparse
import pathlib
import random

from pairs import Words

SITES = 9
# Of new stories, how many there are in five minutes; and how many change their places.
NEW_STORIES, MOVES = 1.2, 3
# Bytes: a template's three parts together, a picture of a new story, a banner; and how many banners a site has in turn.
TEMPLATE, PICTURE, BANNER, BANNERS = (25_000, 60_000), (3_000, 16_000), (4_000, 14_000), 40
# The sites whose links have a token that differs in each fetch, and those that say how old each story is.
TOKENS, AGES = (0, 3, 6), (1, 3, 5, 7)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--fetches", type=int, default=48, help="of each site, five minutes apart")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    sites = [Site(n, random.Random(f"news {n} {given.seed}")) for n in range(SITES)]
    count = 0
    for fetch in range(given.fetches):
        for site in sites:
            for response in site.fetch(fetch):
                (given.folder / f"{count:05}-{site.name}").write_bytes(response)
                count += 1
    (given.folder / "about").write_text(f"news\ngenerated, {given.fetches} fetches of {SITES} sites, seed {given.seed}\n")


class Site:
    """A site between fetches."""

    def __init__(self, number, chance):
        self.chance, self.words = chance, Words(chance)
        self.name = f"site-{number}"
        size = chance.randint(*TEMPLATE)
        self.head, self.middle, self.foot = (self.template(int(size * share)) for share in (0.6, 0.15, 0.25))
        self.has_tokens, self.has_ages = number in TOKENS, number in AGES
        self.stories = [self.story(-chance.randrange(300)) for _ in range(chance.randint(50, 110))]
        self.banners = [chance.randbytes(chance.randint(*BANNER)) for _ in range(BANNERS)]

    def template(self, size):
        """Navigation, styles and scripts, whose lines are alike but not equal."""
        lines, length = [], 0
        while length < size:
            a, b, c = self.words.take(3)
            lines.append(self.chance.choice((
                f'<li class="nav-{a}"><a href="/{b}/{c}.html" title="{b.title()}">{c.title()}</a></li>',
                f".{a}-{b} {{ margin: {self.chance.randrange(40)}px; float: left; background: url(/i/{c}.gif) }}",
                f"if (window.{a}) {{ {a}.{b}('{c}', {self.chance.randrange(10_000)}); }}")))
            length += len(lines[-1]) + 1
        return "\n".join(lines)

    def story(self, minute):
        """A story: its number, when it appeared, its text, and how many comments it has."""
        words, chance = self.words, self.chance
        return {"id": chance.randrange(10**7, 10**8), "since": minute, "title": " ".join(words.take(chance.randint(5, 10))).capitalize(),
                "text": " ".join(words.sentence() for _ in range(chance.randint(1, 4))), "section": words.take(1)[0],
                "comments": chance.randrange(80), "pace": chance.choice((0, 0, 0, 1, 3))}

    def fetch(self, number):
        """The responses of a fetch: the page, a banner, and pictures that the browser does not have."""
        minute, new = 5 * number, self.advance(number)
        yield self.response("text/html; charset=utf-8", self.page(minute).encode(), minute)
        yield self.response("image/gif", self.chance.choice(self.banners), minute)
        for _ in range(new):
            yield self.response("image/jpeg", self.chance.randbytes(self.chance.randint(*PICTURE)), minute)

    def advance(self, number):
        """Five minutes go by; how many stories are new."""
        if number == 0:
            return 0
        new = int(NEW_STORIES) + (self.chance.random() < NEW_STORIES % 1)
        for _ in range(new):
            self.stories.insert(self.chance.randrange(12), self.story(5 * number))
            self.stories.pop(self.chance.randrange(30, len(self.stories)))
        for _ in range(MOVES):
            self.stories.insert(self.chance.randrange(len(self.stories)), self.stories.pop(self.chance.randrange(len(self.stories))))
        for story in self.stories:
            story["comments"] += self.chance.randint(0, story["pace"])
        return new

    def page(self, minute):
        middle = len(self.stories) // 3
        stories = [self.shown(story, minute) for story in self.stories]
        return "\n".join(["<!DOCTYPE html><html><head>", self.head, "</head><body>", self.advertisement(), *stories[:middle], self.middle,
                          self.advertisement(), *stories[middle:], self.advertisement(), self.foot,
                          f"<!-- {self.name} {self.token(12)} {self.clock(minute)} --></body></html>\n"])

    def shown(self, story, minute):
        token = f"?s={self.token(16)}" if self.has_tokens else ""
        link = f'/{story["section"]}/{story["id"]}.html'
        age = f'<span class="age">{self.age(minute - story["since"])} ago</span>' if self.has_ages else ""
        return (f'<div class="story" id="s{story["id"]}"><a href="{link}{token}"><img src="/p/{story["id"]}.jpg" width="120" height="80" alt=""></a>'
                f'<h3><a href="{link}{token}">{story["title"]}</a></h3>{age}<p>{story["text"]}</p>'
                f'<a class="more" href="{link}#comments">{story["comments"]} comments</a></div>')

    def age(self, minutes):
        """As pages say it: minutes, and then hours."""
        return f"{minutes} minutes" if minutes < 60 else f"{minutes // 60} hours"

    def advertisement(self):
        """A piece of script with numbers that are drawn for each fetch."""
        slot, campaign = self.chance.randrange(9), self.words.take(1)[0]
        return (f'<script type="text/javascript">var ord = {self.chance.randrange(10**15)}; document.write(\'<script src="http://ad.example/adj/'
                f'{self.name}/{campaign};tile={slot};sz=300x250;u={self.token(24)};ord=\' + ord + \'?"><\\/script>\');</script>')

    def token(self, length):
        return "".join(self.chance.choices("0123456789abcdef", k=length))

    def clock(self, minute):
        return f"Mon, 06 Oct 2008 {8 + minute // 60:02}:{minute % 60:02}:{self.chance.randrange(60):02} GMT"

    def response(self, kind, body, minute):
        header = (f"HTTP/1.1 200 OK\r\nDate: {self.clock(minute)}\r\nServer: Apache\r\nSet-Cookie: visit={self.token(32)}; path=/\r\n"
                  f"Cache-Control: private\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n")
        return header.encode() + body


main()
