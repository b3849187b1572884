"""Write audit results as JUnit XML, which CI systems show beside their tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets.models.audit_result import AuditResult


def junit_xml(results: Mapping[str, Iterable[AuditResult]], unreadable: Mapping[str, str]) -> bytes:
    """Give one suite per model and one case per audit; a warning passes, and its numbers are its output.

    Args:
        results: by model.
        unreadable: why a model can't be audited, by model: a case of its own, which has an error.
    """
    root = ET.Element("testsuites", name="backfill audit")
    for model, audited in results.items():
        suite = ET.SubElement(root, "testsuite", name=model)
        listed = list(audited)
        for result in listed:
            case = ET.SubElement(suite, "testcase", classname=model, name=result.audit)
            text = _text(result)
            if result.blocks:
                told = _written("\n".join((text, *result.sample)))
                ET.SubElement(case, "failure", message=text).text = told
            else:
                ET.SubElement(case, "system-out").text = text
        suite.set("tests", str(len(listed)))
        suite.set("failures", str(sum(result.blocks for result in listed)))
    for model, why in unreadable.items():
        suite = ET.SubElement(root, "testsuite", name=model, tests="1", failures="0", errors="1")
        case = ET.SubElement(suite, "testcase", classname=model, name="readable")
        ET.SubElement(case, "error", message=_written(why))
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True)


def _text(result: AuditResult) -> str:
    where = f" in {', '.join(result.cells)}" if result.cells else ""
    warning = "" if result.passed or result.blocks else "warning: "
    return _written(f"{warning}found {result.found}, allowed {result.allowed}{where}")


_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _written(text: str) -> str:
    """Replace what XML has no character for, such as a control character in a query or a value."""
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
