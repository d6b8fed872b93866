"""One connected page: its task, and the answers to its messages. This module knows nothing of sockets.

The imports of a map come first, those of plans only after the first map has been shown.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from saplan.errors import InputError
from saplan.render.start import Start, start
from saplan.viewer import protocol as messages
from saplan.viewer.worlds import Worlds

if TYPE_CHECKING:
    from saplan.render.task import Task

Answer = dict[str, Any]


class Session:
    """A page, which shows one task at a time."""

    def __init__(self, worlds: Worlds) -> None:
        """Start without a task."""
        self.worlds = worlds
        self.task: Task | None = None
        self.number = 0
        self.rehearsal: Callable[[], object] | None = None
        """Takes the first step on a copy of the task, so that its programs are compiled before the page asks."""

    def answers(self, text: str) -> Iterator[Answer]:
        """Answers to one message, the quick ones first. A wrong message is answered, never raised."""
        try:
            said = messages.read(text)
        except InputError as error:
            yield messages.refusal(None, str(error))
            return
        try:
            yield from self._answered(said)
        except InputError as error:
            yield messages.refusal(said.id, str(error))

    def _answered(self, said: messages.Message) -> Iterator[Answer]:
        if isinstance(said, messages.Open):
            return self._open(said)
        return self._step(said) if isinstance(said, messages.Step) else self._retarget(said)

    def _open(self, asked: messages.Open) -> Iterator[Answer]:
        self.task, self.number = None, asked.id
        world = self.worlds.find(asked.world)
        begin = start(world.game, asked.seed)
        yield messages.map_message(asked, world.game, begin)

        from saplan.render.plane import plane_of
        from saplan.viewer.task_messages import changes_message, plane_message, spans_message

        yield spans_message(asked.id, world.game, begin.rho)
        agent = self.worlds.agent(asked.world, asked.method)
        yield changes_message(asked.id, agent)
        plane = plane_of(agent)
        if plane is not None:
            yield plane_message(asked.id, plane)
        if asked.goal.strip():
            yield self._plan(asked, agent, begin)

    def _plan(self, asked: messages.Open, agent: Any, begin: Start) -> Answer:
        from saplan.render.task import Task
        from saplan.viewer.task_messages import task_message

        try:
            task = Task(agent, begin, asked.goal, asked.seed)
        except InputError as error:
            return messages.refusal(asked.id, str(error), "impossible")
        task.skip_to(asked.step)
        self.task = task
        self.rehearsal = lambda: Task(agent, begin, asked.goal, asked.seed).forward()
        return task_message(asked.id, task)

    def _retarget(self, asked: messages.Retarget) -> Iterator[Answer]:
        if self.task is None:
            raise InputError("no task is open: open one first")
        self.number = asked.id

        from saplan.viewer.task_messages import spans_message, task_message

        yield spans_message(asked.id, self.task.game, self.task.history[-1])
        try:
            following = self.task.turned_to(asked.goal)
        except InputError as error:
            yield messages.refusal(asked.id, str(error), "impossible")
            return
        following.skip_to(asked.step)
        before, self.task = self.task.step, following
        yield task_message(asked.id, following, before)

    def _step(self, asked: messages.Step) -> Iterator[Answer]:
        if self.task is None or asked.id != self.number:
            raise InputError("no task is open under this number: set a goal first")

        from saplan.viewer.task_messages import step_message

        yield step_message(asked.id, self.task.forward())
