"""SSH signatures as people make them: by a key in a file, against a file of allowed signers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from backfill_assets.cli.signing import NotSignedError, signer_of
from backfill_assets.engine.project import ssh_signatures
from backfill_assets.engine.project.gate import gate_of
from backfill_assets.engine.project.ssh_signatures import (
    AllowedSigners,
    SignatureError,
    SignersMissingError,
    SshKeygenMissingError,
)
from backfill_assets.planning.review.policy import PolicyError
from backfill_assets.settings import Settings
from backfill_assets_tests.signing import Keys

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
TEXT = '{"plan": "p1"}\n'


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


def signature(keys: Keys, who: str, text: str = TEXT) -> str:
    return signer_of(Settings(signing_key=str(keys.path(who))))(text)


def test_a_signature_proves_the_principal_of_its_key(keys: Keys):
    signers = keys.allow(["ann@shop", "bob@shop"])

    assert signers.principals() == ("ann@shop", "bob@shop")
    assert signers.principal(TEXT, signature(keys, "bob@shop")) == "bob@shop"


def test_a_signature_of_another_text_or_key_or_namespace_proves_none(keys: Keys):
    signers = keys.allow(["ann@shop"])
    keys.make("eve@shop")
    of_git = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-n", "git", "-f", str(keys.path("ann@shop"))],
        input=TEXT, capture_output=True, check=True, text=True,
    ).stdout  # fmt: skip
    wrong = (
        ("", TEXT),
        ("no signature", TEXT),
        (signature(keys, "ann@shop"), TEXT + " "),
        (signature(keys, "eve@shop"), TEXT),
        (of_git, TEXT),
    )

    for given, text in wrong:
        with pytest.raises(SignatureError, match="not that of an allowed signer"):
            signers.principal(text, given)


@pytest.mark.parametrize("name", ["ann@shop,bob@shop", "*@shop"])
def test_a_key_for_several_principals_proves_none(keys: Keys, name: str):
    keys.allow(["ann@shop"])
    public = Path(f"{keys.path('ann@shop')}.pub").read_text()
    keys.allowed.write_text(f"{name} {public}")

    with pytest.raises(SignatureError, match="must be listed for exactly one"):
        AllowedSigners(keys.allowed).principal(TEXT, signature(keys, "ann@shop"))
    assert AllowedSigners(keys.allowed).principals() == ()


def test_a_key_whose_time_has_passed_proves_none(keys: Keys):
    keys.allow(["ann@shop"])
    public = Path(f"{keys.path('ann@shop')}.pub").read_text()
    keys.allowed.write_text(f'ann@shop valid-before="20200101" {public}')

    with pytest.raises(SignatureError):
        AllowedSigners(keys.allowed).principal(TEXT, signature(keys, "ann@shop"))


def test_a_missing_file_of_signers_is_named(tmp_path: Path):
    with pytest.raises(SignersMissingError, match="allowed_signers can't be read: No such file"):
        AllowedSigners(tmp_path / "allowed_signers").principal(TEXT, "")


def test_a_missing_program_is_named(keys: Keys, monkeypatch: pytest.MonkeyPatch):
    signers = keys.allow(["ann@shop"])
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(ssh_signatures.subprocess, "run", _not_there)

    with pytest.raises(SshKeygenMissingError, match="Install OpenSSH's client"):
        signers.principal(TEXT, "")


def _not_there(*_: object, **__: object) -> None:
    raise FileNotFoundError


def test_without_a_key_nothing_is_signed(keys: Keys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.chdir(keys.folder)

    with pytest.raises(NotSignedError, match="no key is named"):
        signer_of(Settings(signing_key=""))(TEXT)
    with pytest.raises(NotSignedError, match="No such file or directory"):
        signer_of(Settings(signing_key=str(keys.folder / "lost")))(TEXT)


def test_the_key_of_git_signs_where_the_settings_name_none(
    keys: Keys, monkeypatch: pytest.MonkeyPatch
):
    signers = keys.allow(["ann@shop"])
    config = keys.folder / "gitconfig"
    config.write_text(f"[user]\n\tsigningkey = {keys.path('ann@shop')}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.chdir(keys.folder)

    assert signers.principal(TEXT, signer_of(Settings(signing_key=""))(TEXT)) == "ann@shop"


def test_an_agent_signs_for_a_public_key(keys: Keys, monkeypatch: pytest.MonkeyPatch):
    if shutil.which("ssh-agent") is None:
        pytest.skip("needs ssh-agent")
    signers = keys.allow(["ann@shop"])
    socket = str(keys.folder / "agent")
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    try:
        while not Path(socket).exists():
            assert agent.poll() is None
        monkeypatch.setenv("SSH_AUTH_SOCK", socket)
        private = keys.path("ann@shop")
        subprocess.run(["ssh-add", "-q", str(private)], check=True, capture_output=True)
        private.unlink()
        literal = Path(f"{private}.pub").read_text().strip()

        assert signers.principal(TEXT, signer_of(Settings(signing_key=literal))(TEXT)) == "ann@shop"
    finally:
        agent.terminate()
        agent.wait()


def test_a_policy_that_is_named_and_not_there_is_an_error_and_none_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert gate_of(Settings(policy="")) is None
    with pytest.raises(PolicyError, match=r"the policy lost.toml can't be used: No such file"):
        gate_of(Settings(policy="lost.toml"))
    (tmp_path / "backfill_policy.toml").write_text("allowed_signers = 'keys/signers'\n")
    gate = gate_of(Settings(policy=""))

    assert gate is not None
    assert gate.signers == AllowedSigners(Path("keys/signers"))
