"""The Typer application of the `rag-pipeline` command, and its error handling.

Standard output contains only the result; with `--json` it is one JSON document. Progress and errors
go to standard error. Exit codes: 0 success; 1 the command ran but failed, for example because a
document failed; 2 wrong usage or configuration; 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from rag_pipeline.cli import asking, evaluating, ingesting, initializing, serving
from rag_pipeline.cli.output import INTERRUPTED, end_output, tell_failure, write_text
from rag_pipeline.core.errors import RagPipelineError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=(
        "Index a Docusaurus book and answer questions about it with citations.\n\nStart with "
        "`rag-pipeline ingest`. Settings come from environment variables, the file .env, and the "
        "file rag-pipeline.toml, which `rag-pipeline init` writes for a Docusaurus site."
    ),
)
for group in (
    initializing.commands,
    ingesting.commands,
    asking.commands,
    serving.commands,
    evaluating.commands,
):
    app.add_typer(group)


def _print_version(requested: bool) -> None:
    """Print the version of the installed package and end the command, if it was requested."""
    if requested:
        from importlib.metadata import version  # noqa: PLC0415  # other commands do not need it

        write_text(f"rag-pipeline {version('rag-pipeline')}\n")
        raise typer.Exit


@app.callback()
def _declare_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Declare the options of the command itself, which come before the name of a subcommand."""


def run_command() -> None:
    """Run the command that `sys.argv` names and exit with its exit code.

    A known error is reported as one line on standard error. The line says what is wrong and what to
    do about it. An unexpected exception keeps its traceback.
    """
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # Typer returns this code after an interrupt
            raise KeyboardInterrupt  # noqa: TRY301  # handled below like any other interrupt
    except RagPipelineError as error:
        code = tell_failure(error.code, str(error), error.exit_code)
    except typer.Exit as stop:
        code = stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        is_ingesting = sys.argv[1:2] in (["ingest"], ["ingest-doc"])
        progress = "; the next ingest continues from here" if is_ingesting else ""
        code = tell_failure("INTERRUPTED", f"stopped{progress}", INTERRUPTED)
    except BrokenPipeError:
        code = 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        advice = "Check disk space and permissions"
        code = tell_failure("SYSTEM_ERROR", f"{place}{error.strerror or error}. {advice}", 1)
    except Exception as error:
        # Typer may contain its own copy of click, so the class of a usage error is not fixed.
        usage = getattr(error, "format_message", None)
        if usage is None:
            raise
        message = usage()  # empty if the help text was shown instead
        advice = _advise_usage(message, getattr(error, "ctx", None))
        code = tell_failure("USAGE", advice, 2) if message else 2
    end_output()
    sys.exit(code or 0)


def _advise_usage(message: str, context: Any) -> str:  # noqa: ANN401  # click's, see above
    """Return a message about wrong usage as a sentence, with the help that explains the command."""
    text = message if message.endswith((".", "?")) else f"{message}."
    if "unexpected extra argument" in message:
        text = text.replace("argument(s)", "argument") + " Put an argument with spaces in quotes."
    names: list[str] = []
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name)
        context = context.parent
    return f"{text} See `{' '.join(['rag-pipeline', *names])} --help`"
