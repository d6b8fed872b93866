"""The page in a real Chromium, operated by mouse and keyboard against a real server."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("playwright")
from playwright.sync_api import expect

from saplan.viewer.worlds import EXAMPLES
from tests.viewer.conftest import Server, found

EASY = {"game": "switches", "method": "structured", "seed": 7, "goal": "red=1 green=1"}


def visit(page: Any, server: Server, **task: Any) -> None:
    page.goto(f"{server.address}#{urlencode({**EASY, **task})}")


def planned(page: Any) -> Any:
    """The page, as soon as it shows a plan."""
    page.wait_for_selector("#path .current")
    return page


def fast_forward(page: Any) -> None:
    page.locator("#speed").fill("60")


def steps(page: Any) -> int:
    return int(found(r"(\d+)", page.inner_text("#status"))[1])


def settled_steps(page: Any) -> int:
    """The steps once the page is at rest: a step that was under way when the player stopped still arrives."""
    shown = -1
    while steps(page) != shown:
        shown = steps(page)
        page.wait_for_timeout(1000)
    return shown


def row(page: Any, name: str) -> Any:
    return page.locator(f'.row[data-name="{name}"]')


def says(page: Any, where: str, words: str, seconds: float = 40) -> None:
    """Wait until an element contains these words."""
    expect(page.locator(where)).to_contain_text(words, timeout=1000 * seconds)


def holds(page: Any, where: str, value: str) -> None:
    """Wait until a field has this value."""
    expect(page.locator(where)).to_have_value(value, timeout=40_000)


def reached(page: Any) -> None:
    says(page, "#status", "Goal reached in")


def test_open_and_watch_a_goal_reached(tab: Any, server: Server) -> None:
    visit(tab, server)
    tab.wait_for_selector("#map .agent")
    planned(tab)
    names = tab.locator("#path .planned .text").all_inner_texts()
    assert {"pick up red", "pick up green"} <= set(names)
    assert re.fullmatch(r"(\d\d\.\d|100) %", tab.inner_text("#path .current .percent"))
    assert re.fullmatch(r"~(1 step|\d+ steps)", tab.inner_text("#path .current .steps"))
    assert re.fullmatch(r"\d+ transitions to go; [\d.]+ % that none of them fails", tab.inner_text("#plan-summary"))
    says(tab, "#options-summary", "those that the agent expects, and more where it may fail")
    assert re.fullmatch(r"≈ \d+ steps", tab.inner_text("#options .chosen .cost"))
    assert tab.locator("#options .chosen").count() == 1
    before = tab.get_attribute("#map .agent", "data-cell")
    fast_forward(tab)
    tab.click("#play")
    reached(tab)
    assert tab.get_attribute("#map .agent", "data-cell") != before
    assert row(tab, "red").locator(".value").inner_text() == "1 → 1"
    assert "met" in row(tab, "red").get_attribute("class")
    assert tab.locator("#path .past.good").count() >= 2
    assert tab.inner_text("#scores").startswith("structured")


def test_a_goal_is_set_with_the_mouse(tab: Any, server: Server) -> None:
    visit(tab, server, goal="")
    tab.wait_for_selector("#map .agent")
    assert "Set a goal" in tab.inner_text("#status")
    row(tab, "blue").locator('[data-value="1"]').click()
    planned(tab)
    assert tab.input_value("#goal") == "blue=1"
    face = row(tab, "switch").locator(".dial-face").bounding_box()
    tab.mouse.click(face["x"] + face["width"] / 2, face["y"] + 0.22 * face["height"])  # the position at the top
    holds(tab, "#goal", "blue=1 switch=0")
    planned(tab)
    fast_forward(tab)
    tab.click("#play")
    reached(tab)
    row(tab, "blue").locator('[data-value="1"]').click()  # a second click clears it
    holds(tab, "#goal", "switch=0")


def test_a_slider_is_dragged_and_the_plane_is_clicked(tab: Any, server: Server) -> None:
    visit(tab, server, game="mining", seed=3, goal="")
    tab.wait_for_selector("#plane-card:not([hidden])")
    track = row(tab, "m1").locator(".track").bounding_box()
    middle = track["y"] + track["height"] / 2
    tab.mouse.move(track["x"] + 0.2 * track["width"], middle)
    tab.mouse.down()
    tab.mouse.move(track["x"] + 0.5 * track["width"], middle, steps=4)
    tab.mouse.up()
    planned(tab)
    assert tab.input_value("#goal") == "m1=6.50"
    plane = tab.locator("#plane").bounding_box()
    x, y = (4.0 + 0.7) / 14, (8.3 - 5.0) / 9  # m1 = 4, m2 = 5
    tab.mouse.click(plane["x"] + x * plane["width"], plane["y"] + y * plane["height"])
    holds(tab, "#goal", "m1=4.00 m2=5.00")
    planned(tab)
    assert tab.locator("#plane-lines .goal").count() == 1
    assert len(tab.get_attribute("#plane-lines .planned", "points").split()) > 3
    middle_of_s = "c => c.getContext('2d').getImageData(c.width / 4, c.height / 3, 1, 1).data[3]"
    assert tab.eval_on_selector("#heatmap", middle_of_s) == 255
    chosen = tab.inner_text("#options .chosen .text")
    assert tab.locator("#layer option").first.text_content() == f"the next transition ({chosen})"
    tab.keyboard.press(".")
    says(tab, "#status", "step 1 of")


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("red=9", "red can become at most"),
        ("switch=7", "outside ℤ/3"),
        ("reed=1", "did you mean 'red'"),
        ("red", "write conditions as"),
    ],
)
def test_an_impossible_goal_says_why_at_once(tab: Any, server: Server, goal: str, words: str) -> None:
    visit(tab, server)
    tab.wait_for_selector("#map .agent")
    tab.keyboard.press("g")
    tab.keyboard.type(goal)
    tab.keyboard.press("Enter")
    says(tab, "#goal-problem", words, seconds=3)
    says(tab, "#status", "no plan for this goal", seconds=3)
    assert tab.is_disabled("#play")


def test_an_unreachable_bead_says_why(tab: Any, server: Server) -> None:
    visit(tab, server, goal="")
    tab.wait_for_selector("#map .agent")
    row(tab, "red").locator(".unreachable").last.click()
    says(tab, "#goal-problem", "red can become at most", seconds=3)


def test_a_new_map_keeps_the_goal(tab: Any, server: Server) -> None:
    visit(tab, server, goal="red=1")
    planned(tab)
    before = tab.inner_html("#map")
    tab.click("#new-map")
    holds(tab, "#seed", "8")
    planned(tab)
    assert tab.inner_html("#map") != before
    assert tab.input_value("#goal") == "red=1"
    tab.fill("#seed", "7")
    tab.keyboard.press("Enter")
    planned(tab)
    assert tab.inner_html("#map") == before, "the same seed gives the same map"


def test_switching_the_game(tab: Any, server: Server) -> None:
    visit(tab, server)
    planned(tab)
    tab.select_option("#world", "exchange")
    expect(tab.locator(".row")).to_have_count(6, timeout=40_000)
    planned(tab)
    assert "game=exchange" in tab.url


def test_a_baseline_fails_at_the_same_task(tab: Any, server: Server) -> None:
    visit(tab, server, game="mining", seed=2, goal="m1=8 m2=6")
    planned(tab)
    fast_forward(tab)
    tab.click("#play")
    reached(tab)
    tab.select_option("#method", "curriculum")
    says(tab, "#status", "step 0 of")
    assert tab.input_value("#seed") == "2"
    assert tab.input_value("#goal") == "m1=8.00 m2=6.00"
    tab.click("#play")
    says(tab, "#status", "Goal not reached within 150 steps")
    says(tab, "#scores .good", "structured")
    says(tab, "#scores .bad", "curriculum failed after 150 steps")
    says(tab, "#failure", "The budget is spent: m")
    says(tab, "#failure", "This method makes no plans. It made")


def test_the_oracle_plans_as_well(tab: Any, server: Server) -> None:
    visit(tab, server, method="oracle")
    planned(tab)
    says(tab, "#options-summary", "the expected steps to the goal")
    fast_forward(tab)
    tab.click("#play")
    reached(tab)


def test_a_reload_continues_at_the_same_step(tab: Any, server: Server) -> None:
    visit(tab, server)
    planned(tab)
    fast_forward(tab)
    tab.click("#play")
    expect(tab.locator("#status")).to_have_text(re.compile(r"step ([3-9]|[1-9]\d) of"), timeout=40_000)
    tab.click("#play")
    says(tab, "#play", "play")
    stopped, cell = settled_steps(tab), tab.get_attribute("#map .agent", "data-cell")
    tab.reload()
    says(tab, "#status", f"step {stopped} of")
    assert tab.get_attribute("#map .agent", "data-cell") == cell
    assert tab.input_value("#goal") == "red=1 green=1"
    tab.click("#play")
    reached(tab)


def test_a_goal_is_changed_on_the_way_and_the_agent_goes_on(tab: Any, server: Server) -> None:
    visit(tab, server, goal="red=1")
    planned(tab)
    tab.locator("#speed").fill("8")
    tab.click("#play")
    expect(tab.locator("#status")).to_have_text(re.compile(r"step [3-9] of"), timeout=40_000)
    row(tab, "blue").locator('[data-value="1"]').click()
    says(tab, "#path", "new goal: red=1 blue=1")
    says(tab, "#play", "pause")  # it goes on playing
    reached(tab)
    assert [row(tab, name).locator("b").inner_text() for name in ("red", "blue")] == ["1", "1"]
    green = int(row(tab, "green").locator("b").inner_text())  # it may have picked one up on its way
    row(tab, "green").locator(f'[data-value="{green + 1}"]').click()
    says(tab, "#status", "step 0 of 150 for this goal")
    assert row(tab, "red").locator("b").inner_text() == "1", "it goes on from where it is"
    tab.locator("body").press(".")
    says(tab, "#status", "step 1 of")
    cell, path = tab.get_attribute("#map .agent", "data-cell"), tab.inner_text("#path")
    tab.reload()
    says(tab, "#status", "step 1 of 150 for this goal")
    assert tab.get_attribute("#map .agent", "data-cell") == cell
    assert tab.inner_text("#path") == path
    tab.click("#restart")
    says(tab, "#status", "step 0 of 150")
    assert row(tab, "red").locator("b").inner_text() == "0", "a restart begins with the map"


def test_an_impossible_goal_on_the_way_loses_nothing(tab: Any, server: Server) -> None:
    visit(tab, server, goal="red=1")
    planned(tab)
    tab.locator("body").press(".")
    says(tab, "#status", "step 1 of")
    cell = tab.get_attribute("#map .agent", "data-cell")
    tab.fill("#goal", "red=9")
    tab.keyboard.press("Enter")
    says(tab, "#goal-problem", "red can become at most")
    tab.fill("#goal", "green=1")
    tab.keyboard.press("Enter")
    planned(tab)
    assert tab.get_attribute("#map .agent", "data-cell") == cell
    assert tab.inner_text("#goal-problem") == ""


@pytest.mark.parametrize("game", ["switches", "exchange", "mining", "arm", "tiles"])
def test_every_game_says_what_one_looks_at(browser: Any, server: Server, game: str) -> None:
    """Rules, symbols and the agent's changes are on the page, and the lower third of a usual screen is used."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    visit(page, server, game=game, seed=0, goal=EXAMPLES[game])
    planned(page)
    expect(page.locator("#rules li")).not_to_have_count(0)
    expect(page.locator("#changes li")).not_to_have_count(0)
    assert page.locator("#symbols li").count() >= 3
    assert page.locator("#way li").count() >= 2
    assert page.is_visible("#arm-card") == (game == "arm")
    ends = page.eval_on_selector_all(
        ".column", "all => all.map(c => Math.max(...[...c.children].map(x => x.getBoundingClientRect().bottom)))"
    )
    assert min(ends) > 600, "every column reaches the lower third"
    page.close()


def test_two_tabs_do_not_disturb_each_other(tab: Any, browser: Any, server: Server) -> None:
    visit(tab, server)
    other = tab.context.new_page()
    visit(other, server, goal="blue=1", seed=9)
    for page in (planned(tab), planned(other)):
        fast_forward(page)
        page.click("#play")
    for page in (tab, other):
        reached(page)
    assert tab.input_value("#goal") == "red=1 green=1"
    assert other.input_value("#goal") == "blue=1"


def test_the_keyboard_is_enough(tab: Any, server: Server) -> None:
    visit(tab, server, goal="")
    tab.wait_for_selector("#map .agent")
    row(tab, "green").locator(".control").focus()
    tab.keyboard.press("ArrowRight")
    planned(tab)
    assert tab.input_value("#goal") == "green=1"
    assert row(tab, "green").locator(".control").get_attribute("aria-valuetext") == "now 0, goal 1"
    assert tab.evaluate("document.activeElement.ariaLabel") == "goal for green", "the next key goes there too"
    tab.keyboard.press(".")
    says(tab, "#status", "step 1 of")
    tab.keyboard.press("+")
    assert tab.input_value("#speed") == "7"
    tab.keyboard.press("?")
    assert tab.is_visible("#help-text")
    assert tab.evaluate("document.querySelector('#help-text').scrollTop") == 0, "the help begins with its first line"
    assert tab.evaluate("document.activeElement.id") == "help-title"
    tab.keyboard.press("Escape")
    expect(tab.locator("#help-text")).to_be_hidden()
    tab.keyboard.press(" ")
    expect(tab.locator("#status")).not_to_contain_text("step 1 of", timeout=40_000)  # it plays
    tab.keyboard.press("n")
    holds(tab, "#seed", "8")


def test_keys_work_while_the_speed_has_the_focus(tab: Any, server: Server) -> None:
    visit(tab, server)
    planned(tab)
    assert "press play" in tab.inner_text("#status")
    tab.locator("#speed").focus()
    tab.keyboard.press("ArrowRight")
    assert tab.input_value("#speed") == "7", "arrows move the slider"
    tab.keyboard.press(".")
    says(tab, "#status", "step 1 of")


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_names_are_whole_and_beads_stay_on_one_line(browser: Any, server: Server, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    visit(page, server, game="exchange", seed=0, goal="red=1")
    planned(page)
    cut = "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"
    assert page.eval_on_selector_all(".row .name span", cut) == []
    if width == 1440:
        tops = "all => new Set(all.map(e => Math.round(e.getBoundingClientRect().top / 8))).size"
        assert page.eval_on_selector_all('.row[data-name="map_red"] .bead', tops) == 1
    page.close()


def test_every_control_has_a_name(tab: Any, server: Server) -> None:
    visit(tab, server)
    planned(tab)
    unnamed = tab.evaluate(
        """() => [...document.querySelectorAll("button, select, input, [role=slider]")]
            .filter(e => !(e.labels?.length || e.ariaLabel || e.textContent.trim() || e.title)).map(e => e.id)"""
    )
    assert unnamed == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_width(browser: Any, server: Server, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme, has_touch=True)
    page = context.new_page()
    visit(page, server)
    planned(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360, "nothing sticks out"
    current = page.locator("#path .current").bounding_box()
    assert current["y"] + current["height"] <= 740, "the plan is on the screen, with the map"
    colours = page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    light = [sum(map(int, re.findall(r"\d+", colour)[:3])) / 3 for colour in colours]
    assert (light[0] > light[1]) == (scheme == "light")
    assert abs(light[0] - light[1]) > 120, "readable"
    row(page, "blue").locator('[data-value="1"]').tap()
    expect(page.locator("#goal")).to_have_value(re.compile("blue=1"))
    context.close()
