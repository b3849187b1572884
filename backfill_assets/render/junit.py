"""Write audit results as JUnit XML, which CI systems show beside their tests."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets.models.audit_result import AuditResult


def junit_xml(results: Mapping[str, Iterable[AuditResult]]) -> bytes:
    """Give one suite per model and one case per audit; a warning passes, and its numbers are its output.

    Args:
        results: by model.
    """
    root = ET.Element("testsuites", name="backfill audit")
    for model, audited in results.items():
        suite = ET.SubElement(root, "testsuite", name=model)
        listed = list(audited)
        for result in listed:
            case = ET.SubElement(suite, "testcase", classname=model, name=result.audit)
            text = _text(result)
            if result.blocks:
                ET.SubElement(case, "failure", message=text).text = "\n".join(
                    (text, *result.sample)
                )
            else:
                ET.SubElement(case, "system-out").text = text
        suite.set("tests", str(len(listed)))
        suite.set("failures", str(sum(result.blocks for result in listed)))
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True)


def _text(result: AuditResult) -> str:
    where = f" in {', '.join(result.cells)}" if result.cells else ""
    warning = "" if result.passed or result.blocks else "warning: "
    return f"{warning}found {result.found}, allowed {result.allowed}{where}"
