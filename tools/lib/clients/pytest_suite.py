# SPDX-License-Identifier: Apache-2.0
"""Test files that pytest runs, one process a file."""
import ast
import xml.etree.ElementTree

from .case import Case, as_text, counts

TEST_SECONDS = 180
PACKAGES = ("pytest==9.2.0", "pytest-timeout==2.4.0")


def cases_of(junit, file):
    """The test functions of a class are named FILE::CLASS::NAME, those of a module FILE::NAME."""
    stem = file.rpartition("/")[2].removesuffix(".py")
    for case in xml.etree.ElementTree.parse(junit).iter("testcase"):
        children = {child.tag: child for child in case}
        holder = (case.get("classname") or "").rpartition(".")[2]
        name = "::".join(word for word in (file, holder, case.get("name")) if word and word != stem)
        bad = children.get("failure", children.get("error"))
        skipped = children.get("skipped")
        if bad is not None:
            yield Case(name, "failed", first_line(bad))
        elif skipped is not None:
            xfail = skipped.get("type") == "pytest.xfail"
            yield Case(name, "skipped", ("the suite expects a failure: " if xfail else "") + (reason_of(skipped) or "no reason given"))
        else:
            yield Case(name, "passed")


def first_line(element):
    return (element.get("message") or "").strip().split("\n")[0][:160]


def reason_of(skipped):
    """Why a test was skipped. Of a skipped file, pytest gives the reason in the text, as (path, line, reason)."""
    if skipped.get("message") != "collection skipped":
        return first_line(skipped)
    return ast.literal_eval(skipped.text)[2].removeprefix("Skipped: ")


def run_own_programs(job, packages):
    """Cases of the test files in tests/clients/NAME, with these packages."""
    files = sorted(path.name for path in job.tests.glob("test_*.py"))
    selection = ["-k", " or ".join(job.only)] if job.only else []
    yield from run_files(job, [job.python(packages)], files, lambda file: ["-W", "ignore", *selection, file], lambda file: {}, job.tests)


def run_files(job, python, files, arguments, variables, folder=None):
    """Cases of all files; FILE::TEST is one test of a file. arguments(file): what pytest is given; variables(file): its environment; python: the
    interpreter, as the words of a command."""
    results = job.work("results")

    def run(file):
        name = file.removesuffix(".py").replace("/", ".").replace(":", "-")
        junit = results / f"{name}.xml"
        command = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={TEST_SECONDS}", f"--junitxml={junit}", *arguments(file)]
        ended = job.run(command, results / f"{name}.log", folder or results, {"PYTHONDONTWRITEBYTECODE": "1"} | variables(file))
        if junit.exists():
            return list(cases_of(junit, file.partition("::")[0])), ended
        return [Case(file, "failed", f"pytest ended with {ended.status}, without results")], ended

    for file, (cases, ended) in job.side_by_side(run, files):
        print(f"{file:<50} {as_text(counts(cases))} in {ended.seconds:.0f} s", flush=True)
        yield from cases
