"""The `rag-pipeline` command: its groups of commands, and how an error ends it.

Standard output carries only the result, with `--json` one JSON document; everything else goes to
standard error. Exit codes: 0 done, 1 the work fell short, 2 bad usage or configuration.
"""

from __future__ import annotations

import sys

import typer

from rag_pipeline.cli import asking, evaluating, ingesting
from rag_pipeline.cli.output import INTERRUPTED, end_output, tell_failure
from rag_pipeline.core.errors import RagPipelineError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Turn a Docusaurus book into cited answers.",
)
for group in (ingesting.commands, asking.commands, evaluating.commands):
    app.add_typer(group)


def run_command() -> None:
    """Run the command. An error is one line that says what is wrong and what to do."""
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # typer's answer to an interrupt
            raise KeyboardInterrupt  # noqa: TRY301  # reported like one from elsewhere
    except RagPipelineError as error:
        code = tell_failure(error.code, str(error), error.exit_code)
    except typer.Exit as stop:
        code = stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        goes_on = "; the next ingest goes on from here" if _is_ingesting() else ""
        code = tell_failure("INTERRUPTED", f"stopped{goes_on}", INTERRUPTED)
    except BrokenPipeError:
        code = 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        advice = "Check disk space and permissions"
        code = tell_failure("SYSTEM_ERROR", f"{place}{error.strerror or error}. {advice}", 1)
    except Exception as error:
        usage = getattr(error, "format_message", None)  # click's usage errors, by any click
        if usage is None:
            raise
        told = usage()  # empty if the help was shown instead
        code = tell_failure("USAGE", f"{told} See `rag-pipeline --help`", 2) if told else 2
    end_output()
    sys.exit(code or 0)


def _is_ingesting() -> bool:
    return sys.argv[1:2] in (["ingest"], ["ingest-doc"])
