"""Advise on your own data; plan, run, watch, judge, report and publish studies; compare any table of results; list
backbones; show what this machine has and how fast it is."""

import os
import re
import warnings
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import fpt
from fpt import tasks
from fpt.cli import advise, compare, here, study
from fpt.cli.tables import console, printable, stderr
from fpt.errors import FptError, SpecError

FOLDERS = ("FPT_DATA", "FPT_WEIGHTS", tasks.CODE)  # environment variables that name a folder


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as people read it, without the place in our code that Python would print."""
    stderr.print(printable(f"warning: {message}"), style="yellow", markup=False, soft_wrap=True)


class Commands(TyperGroup):
    """Every FptError, and every refusal by the system, such as a full disk, becomes its message and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warn
                return super().invoke(ctx)
        except BrokenPipeError:
            raise  # whoever reads what is printed wants no more: click ends in silence
        except (FptError, OSError) as error:
            stderr.print(printable(f"error: {error}"), style="red", markup=False, soft_wrap=True)
            raise typer.Exit(2) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Refuses empty words: no study, column, file or name is called so, and none means that nothing was given."""
        for before, word in pairwise(["fpt", *args]):
            if not word or re.fullmatch("--[a-z-]+=", word):
                raise SpecError(f"{word or before} is followed by an empty word: give a value, or leave it out")
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=Commands, help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        console.print(f"fpt {fpt.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    for name in FOLDERS:  # as they are meant here: commands work in the folder of the workspace
        if given := os.environ.get(name):
            os.environ[name] = os.path.abspath(os.path.expanduser(given))


for command in (
    study.init, study.plan, study.run, study.status, study.publish, study.report, compare.compare, advise.advise,
    here.bench, study.judge, here.models, here.doctor,
):  # fmt: skip
    app.command()(command)
app.command("list")(here.list_)
app.command()(study.clean)
